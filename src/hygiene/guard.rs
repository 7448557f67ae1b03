//! The guard around one task.

use std::marker::PhantomData;

use super::sweep::{Left, Queue};
use super::task::{Policy, Release, Task};
use super::thread::{self, Current, Depths};
use crate::libcrypto::{self, Library, ThreadState};

/// Wraps one task on the calling thread; sweeps when dropped.
///
/// Guards nest: one that is entered while another is active on the thread takes back only what was
/// added since, whatever its policy says, so that it is safe in a library and in a callback.
/// It also sweeps when the task panics, and never panics itself.
///
/// It is bound to its thread (`!Send`): the error queue is the thread's. Forgetting it
/// ([`std::mem::forget`]) leaves the thread's later guards nested for ever.
#[must_use = "a guard that is dropped at once guards nothing: bind it to a name"]
pub struct Guard {
    task: Task,
    entered: Entered,
    finished: bool,
    /// The queue belongs to the thread.
    _thread: PhantomData<*const ()>,
}

/// How the queues were when the guard was entered.
pub(super) struct Entered {
    pub(super) policy: Policy,
    pub(super) outermost: bool,
    depths: Depths,
    marks: u16,
}

impl Entered {
    pub(super) fn keep(&mut self, position: usize, depth: usize, marked: bool) {
        if let Some(kept) = self.depths.get_mut(position) {
            *kept = u8::try_from(depth).unwrap_or(u8::MAX);
            self.marks |= u16::from(marked) << position;
        }
    }

    pub(super) fn kept(&self, position: usize) -> usize {
        self.depths.get(position).copied().map_or(0, usize::from)
    }

    pub(super) fn marked(&self, position: usize) -> bool {
        self.marks & (1 << position) != 0
    }
}

const _: () = assert!(libcrypto::MOST <= 16);

impl Guard {
    /// Enters a task on the calling thread: records what is in the error queues already as arrivals,
    /// and clears it (or leaves it, as the task's policy says).
    #[inline]
    pub fn enter(task: impl Into<Task>) -> Self {
        let task = task.into();
        thread::with(|current| {
            let active = current.active.get();
            current.active.set(active + 1);
            let outermost = active == 0;
            if outermost {
                current.begin();
            }
            let policy = match task.policy {
                Policy::Clear if !outermost => Policy::RollBack,
                policy => policy,
            };
            let mut entered = Entered { policy, outermost, depths: [0; libcrypto::MOST], marks: 0 };
            for (position, library) in libcrypto::bound().iter().enumerate() {
                let depth = library.depth();
                if depth > 0 {
                    Queue { task, library, position, depth, current }.arrive(&mut entered);
                }
            }
            Self { task, entered, finished: false, _thread: PhantomData }
        })
    }

    /// Ends the task now.
    ///
    /// # Errors
    /// With [`Policy::Assert`]: the task left errors. They have been recorded and cleared.
    #[inline]
    pub fn finish(mut self) -> Result<(), Dirty> {
        let left = self.leave();
        if left.meanings.is_empty() {
            return Ok(());
        }
        Err(Dirty { label: self.task.label.text(), errors: left.meanings })
    }

    #[inline]
    fn leave(&mut self) -> Left {
        self.finished = true;
        thread::with(|current| {
            let left = self.sweep(current);
            if let Some(counters) = current.counters() {
                counters.count_task(self.task.label);
            }
            current.active.set(current.active.get().saturating_sub(1));
            left
        })
    }

    #[inline]
    fn sweep(&self, current: &Current) -> Left {
        let mut left = Left::default();
        let mut states = 0;
        for (position, library) in libcrypto::bound().iter().enumerate() {
            let state = library.state();
            let depth = state.depth();
            if depth > 0 || self.entered.kept(position) > 0 {
                let queue = Queue { task: self.task, library, position, depth, current };
                let more = queue.leave(&self.entered, left.count == 0);
                left.count += more.count;
                left.meanings.extend(more.meanings);
            }
            if self.entered.policy == Policy::Observe {
                observe(current, position, depth);
            }
            if state == ThreadState::Absent {
                continue;
            }
            if self.entered.outermost && self.releases(library) {
                library.release();
            } else {
                states |= 1 << position;
            }
        }
        if self.entered.outermost
            && let Some(counters) = current.counters()
        {
            counters.note_states(states);
        }
        left
    }

    #[inline]
    fn releases(&self, library: &Library) -> bool {
        match self.task.release {
            None => library.shares_states(),
            Some(release) => release == Release::EveryTask,
        }
    }
}

/// Remembers that errors up to `depth` are recorded, though they are still in the queue.
#[cold]
fn observe(current: &Current, position: usize, depth: usize) {
    let mut observed = current.observed.get();
    if let Some(known) = observed.get_mut(position) {
        *known = u8::try_from(depth).unwrap_or(u8::MAX);
    }
    current.observed.set(observed);
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if !self.finished {
            self.leave();
        }
    }
}

/// Runs `work` as a task, and sweeps when it returns or panics.
///
/// # Panics
/// If `work` does. With [`Policy::Assert`] also when it left errors, after they were cleared.
#[inline]
pub fn run<R>(task: impl Into<Task>, work: impl FnOnce() -> R) -> R {
    let guard = Guard::enter(task);
    let result = work();
    if let Err(dirty) = guard.finish() {
        panic!("{dirty}");
    }
    result
}

/// A task left errors in the error queue, and its policy is [`Policy::Assert`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task `{label}` left {} error(s) in the error queue: {}", errors.len(), errors.join("; "))]
pub struct Dirty {
    /// The task's label.
    pub label: &'static str,
    /// What the errors mean, oldest first.
    pub errors: Vec<String>,
}
