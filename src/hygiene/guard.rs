//! The guard around one task.

use std::marker::PhantomData;

use super::sweep::Queue;
use super::task::{Policy, Release, Task};
use super::thread::{self, Current, Depths};
use crate::libcrypto::{self, Bound, Glance, Mark};

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
    /// The queue belongs to the thread.
    _thread: PhantomData<*const ()>,
}

/// How the queues were when the guard was entered. Small enough for registers: it is made for each
/// task, and nearly always says that all queues were empty.
#[derive(Clone, Copy)]
pub(super) struct Entered {
    pub(super) outermost: bool,
    pub(super) kept: Depths,
    /// Libraries that were bound then. One that came later was not looked at.
    pub(super) seen: u8,
    /// A bit for each library.
    marks: u16,
    shared_marks: u16,
}

impl Entered {
    pub(super) fn keep(&mut self, position: usize, depth: usize, mark: Mark) {
        self.kept.set(position, depth);
        self.marks |= u16::from(mark != Mark::None) << position;
        self.shared_marks |= u16::from(mark == Mark::Shared) << position;
    }

    pub(super) fn mark(&self, position: usize) -> Mark {
        let bit = 1 << position;
        match (self.marks & bit != 0, self.shared_marks & bit != 0) {
            (false, _) => Mark::None,
            (true, false) => Mark::Own,
            (true, true) => Mark::Shared,
        }
    }
}

impl Guard {
    /// Enters a task on the calling thread: records what is in the error queues already as arrivals,
    /// and clears it (or leaves it, as the task's policy says).
    // Always: as a call, the guard would be returned through memory, and its first use stall on
    // stores that are narrower than the loads (10 ns, half the cost of a clean task).
    #[inline(always)]
    pub fn enter(task: impl Into<Task>) -> Self {
        let task = task.into();
        let outermost = thread::with(Current::begin);
        let libraries = libcrypto::bound();
        let mut entered = Entered {
            outermost,
            kept: Depths::default(),
            seen: libraries.len() as u8,
            marks: 0,
            shared_marks: 0,
        };
        for (position, bound) in libraries.iter().enumerate() {
            if bound.glance() == Glance::Dirty {
                // By value: a guard whose address was taken is copied through memory, and stalls.
                entered = Queue::new(task, bound, position).arrive(entered);
            }
        }
        Self { task, entered, _thread: PhantomData }
    }

    /// Ends the task now.
    ///
    /// # Errors
    /// With [`Policy::Assert`]: the task left errors. They have been recorded and cleared.
    #[inline(always)]
    pub fn finish(self) -> Result<(), Dirty> {
        let mut meanings = Vec::new();
        self.leave(&mut |meaning| meanings.push(meaning));
        let task = self.task;
        std::mem::forget(self);
        if meanings.is_empty() { Ok(()) } else { Err(Dirty::new(task, meanings)) }
    }

    /// Sweeps, and counts the task. Tells `meaning` of each leftover where the policy is to fail.
    #[inline(always)]
    fn leave(&self, meaning: &mut dyn FnMut(String)) {
        let mut dirty = false;
        let mut states = 0;
        for (position, bound) in libcrypto::bound().iter().enumerate() {
            let glance = bound.glance();
            if glance == Glance::Absent {
                continue;
            }
            // Errors of the caller's, or errors that were to be looked at only, live in the state.
            let mut empty = true;
            if glance == Glance::Dirty || !self.entered.kept.is_empty() {
                let queue = Queue::new(self.task, bound, position);
                dirty |= queue.leave(self.entered, !dirty, meaning);
                empty = bound.glance() != Glance::Dirty;
            }
            if empty && self.entered.outermost && self.releases(bound) {
                thread::with(|current| current.release(bound));
            } else {
                states |= 1 << position;
            }
        }
        if self.task.policy == Policy::Observe {
            thread::observed_to_here();
        }
        thread::with(|current| current.end(self.task.label, self.entered.outermost, states));
    }

    #[inline]
    fn releases(&self, bound: &Bound) -> bool {
        match self.task.release {
            None => bound.shares_states(),
            Some(release) => release == Release::EveryTask,
        }
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        self.leave(&mut |_| {});
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
        dirty.fail();
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

impl Dirty {
    #[cold]
    fn new(task: Task, errors: Vec<String>) -> Self {
        Self { label: task.label.text(), errors }
    }

    #[cold]
    #[track_caller]
    fn fail(self) -> ! {
        panic!("{self}");
    }
}
