//! The guard around one task.

use std::marker::PhantomData;

use super::ledger::Origin;
use super::sweep::Queue;
use super::task::{Policy, Release, Task};
use super::thread::{self, Current, Depths};
use crate::libcrypto::{self, Bound, Glance, Mark, Only};

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
    /// Errors that the task had left by its last checkpoint.
    pub(super) left: u16,
    /// A bit for each library.
    marks: u16,
    shared_marks: u16,
}

impl Entered {
    /// What is in the queues already when the guard is entered. A call of its own: the path of a clean task is
    /// short, since servers run it from a cold cache.
    #[cold]
    #[inline(never)]
    fn arrivals(mut self, task: Task) -> Self {
        for (position, bound) in libcrypto::bound().iter().enumerate() {
            if bound.glance() == Glance::Dirty {
                self = Queue::new(task, bound, position).arrive(self);
            }
        }
        self
    }

    pub(super) fn keep(&mut self, position: usize, depth: usize, mark: Mark) {
        let bit = 1 << position;
        self.kept.set(position, depth);
        self.marks = self.marks & !bit | u16::from(mark != Mark::None) << position;
        self.shared_marks = self.shared_marks & !bit | u16::from(mark == Mark::Shared) << position;
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
        let mut guard = Self::begin(task.into());
        if any_dirty() {
            // By value: a guard whose address was taken is copied through memory, and stalls.
            guard.entered = guard.entered.arrivals(guard.task);
        }
        guard
    }

    /// The first half of [`Self::enter`], for a guard that is kept in memory: [`Self::arrive`] has to follow
    /// there.
    #[inline(always)]
    pub(crate) fn begin(task: Task) -> Self {
        let entered = Entered {
            outermost: thread::with(Current::begin),
            kept: Depths::default(),
            seen: if libcrypto::only().is_some() { 1 } else { libcrypto::bound().len() as u8 },
            left: 0,
            marks: 0,
            shared_marks: 0,
        };
        Self { task, entered, _thread: PhantomData }
    }

    /// The second half.
    #[inline(always)]
    pub(crate) fn arrive(&mut self) {
        if any_dirty() {
            self.entered = self.entered.arrivals(self.task);
        }
    }

    /// Records what the task has left so far as its leftovers, and applies its policy, while the task goes
    /// on: before something that empties the queue by itself, as many programs do before they call into
    /// TLS. Returns how many errors that were.
    ///
    /// The task counts once however often this is called, and each of its errors is recorded once.
    #[inline]
    pub fn checkpoint(&mut self) -> u64 {
        if !self.keeps() && !any_dirty() {
            return 0;
        }
        let left = self.settle();
        self.keep();
        left
    }

    /// The first half of a checkpoint, as on leaving the task; returns how many errors it has left since the
    /// last one. Where several tasks have one together, the innermost begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle(&mut self) -> u64 {
        let before = self.entered.left;
        self.each_queue(Queue::settle_so_far);
        u64::from(self.entered.left - before)
    }

    /// The second half, as on entering the task. Where several tasks have one together, the outermost begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep(&mut self) {
        self.each_queue(Queue::keep);
    }

    /// After a task inside this one has ended: errors that were there before, and that somebody took out of the
    /// queue meanwhile, do not hide later ones.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep_no_more(&mut self) {
        self.each_queue(Queue::keep_no_more);
    }

    fn each_queue(&mut self, work: impl Fn(&Queue, Entered) -> Entered) {
        for (position, bound) in libcrypto::bound().iter().enumerate() {
            if bound.glance() == Glance::Dirty || self.keeps() {
                self.entered = work(&Queue::new(self.task, bound, position), self.entered);
            }
        }
    }

    /// Whether there were errors that are not the task's, or no more its own, when it was entered or had its last
    /// checkpoint.
    #[inline]
    pub(crate) fn keeps(&self) -> bool {
        !self.entered.kept.is_empty()
    }

    /// Ends the task now, as a drop does, and tells how many errors it left, those of its checkpoints
    /// included.
    #[inline(always)]
    pub fn close(self) -> u64 {
        let left = self.leave(&mut |_| {});
        std::mem::forget(self);
        left
    }

    /// As [`Self::close`], for a guard that is kept in memory: the caller forgets it.
    #[inline(always)]
    pub(crate) fn close_in_place(&self) -> u64 {
        self.leave(&mut |_| {})
    }

    /// Ends the task now.
    ///
    /// # Errors
    /// With [`Policy::Assert`]: the task left errors. They have been recorded and cleared.
    #[inline(always)]
    pub fn finish(self) -> Result<(), Dirty> {
        let mut meanings = Vec::new();
        self.leave(&mut |meaning| meanings.push(meaning));
        let (task, earlier) = (self.task, self.entered.left);
        std::mem::forget(self);
        let clean = meanings.is_empty() && (earlier == 0 || task.policy != Policy::Assert);
        if clean { Ok(()) } else { Err(Dirty::new(task, meanings, earlier)) }
    }

    /// Sweeps, and counts the task; returns how many errors it left. Tells `meaning` of each that was not
    /// recorded at a checkpoint, where the policy is to fail.
    #[inline(always)]
    fn leave(&self, meaning: &mut dyn FnMut(String)) -> u64 {
        if self.entered.kept.is_empty()
            && self.task.release != Some(Release::EveryTask)
            && let Some(glance) = libcrypto::only().and_then(Only::glance)
            && glance != Glance::Dirty
        {
            let states = u32::from(glance == Glance::Clean);
            thread::with(|current| current.end(self.task.label, self.entered.outermost, states));
            return u64::from(self.entered.left);
        }
        self.leave_all(meaning)
    }

    #[inline(never)]
    fn leave_all(&self, meaning: &mut dyn FnMut(String)) -> u64 {
        let mut left = u64::from(self.entered.left);
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
                left += queue.leave(self.entered, left == 0, meaning);
                empty = bound.glance() != Glance::Dirty;
            }
            if empty && self.entered.outermost && releases(self.task, bound) {
                thread::with(|current| current.release(bound));
            } else {
                states |= 1 << position;
            }
        }
        thread::with(|current| current.end(self.task.label, self.entered.outermost, states));
        left
    }
}

/// Whether there are errors in one of the calling thread's queues.
#[inline]
pub(crate) fn any_dirty() -> bool {
    match libcrypto::only().and_then(Only::glance) {
        Some(glance) => glance == Glance::Dirty,
        None => any_of_all_dirty(),
    }
}

#[inline(never)]
fn any_of_all_dirty() -> bool {
    libcrypto::bound().iter().any(|bound| bound.glance() == Glance::Dirty)
}

#[inline]
fn releases(task: Task, bound: &Bound) -> bool {
    match task.release {
        None => bound.shares_states(),
        Some(release) => release == Release::EveryTask,
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

/// Sweeps a thread that is in no task: records what is in its queues as left by the task's label, empties
/// them (or leaves them, with [`Policy::Observe`]) and releases as the task's end would. No task is counted.
/// Returns how many errors there were; none, and does nothing, inside a guard.
///
/// For code that runs on threads which nobody can guard, right after it has used OpenSSL.
pub fn sweep(task: impl Into<Task>) -> Option<u64> {
    outside(task.into(), Origin::Task)
}

/// As [`sweep`], of errors that others have left: they count as arrivals of the label. Releases nothing.
pub fn sweep_arrivals(task: impl Into<Task>) -> Option<u64> {
    outside(task.into(), Origin::Before)
}

#[inline]
fn outside(task: Task, origin: Origin) -> Option<u64> {
    if !thread::with(Current::begin) {
        thread::with(Current::end_inner);
        return None;
    }
    let (mut count, mut states) = (0, 0);
    for (position, bound) in libcrypto::bound().iter().enumerate() {
        let mut glance = bound.glance();
        if glance == Glance::Dirty {
            count += Queue::new(task, bound, position).outside(origin);
            glance = bound.glance();
        }
        if glance == Glance::Clean && origin == Origin::Task && releases(task, bound) {
            thread::with(|current| current.release(bound));
        } else if glance != Glance::Absent {
            states |= 1 << position;
        }
    }
    thread::with(|current| current.end_outermost(states));
    Some(count)
}

/// A task left errors in the error queue, and its policy is [`Policy::Assert`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task `{label}` left {} error(s) in the error queue: {}", usize::from(*earlier) + errors.len(), self.meanings())]
pub struct Dirty {
    /// The task's label.
    pub label: &'static str,
    /// What the errors mean, oldest first, that were there at its end.
    pub errors: Vec<String>,
    /// Errors that were recorded at its checkpoints; the ledger says what they mean.
    pub earlier: u16,
}

impl Dirty {
    #[cold]
    fn new(task: Task, errors: Vec<String>, earlier: u16) -> Self {
        Self { label: task.label.text(), errors, earlier }
    }

    fn meanings(&self) -> String {
        let earlier = (self.earlier > 0).then(|| format!("{} before a checkpoint", self.earlier));
        earlier.into_iter().chain(self.errors.iter().cloned()).collect::<Vec<_>>().join("; ")
    }

    #[cold]
    #[track_caller]
    fn fail(self) -> ! {
        panic!("{self}");
    }
}
