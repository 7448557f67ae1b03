//! What a guard does about errors that it finds. Never on the path of a clean task.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::guard::Entered;
use super::ledger::{self, Origin};
use super::task::{Policy, Task};
use super::thread;
use crate::libcrypto::{Bound, Entry, Library, Mark};
use crate::sys::thread::ErrnoKept;

/// A queue that is not as a clean task leaves it.
pub(super) struct Queue {
    pub(super) task: Task,
    pub(super) library: &'static Library,
    /// The library's place in the list of bound ones.
    pub(super) position: usize,
    pub(super) depth: usize,
}

impl Queue {
    #[cold]
    #[inline(never)]
    pub(super) fn new(task: Task, bound: &Bound, position: usize) -> Self {
        Self { task, library: bound.library(), position, depth: bound.library().depth() }
    }

    /// On entering a guard: errors that are there already.
    #[cold]
    #[inline(never)]
    pub(super) fn arrive(&self, mut entered: Entered) -> Entered {
        let _errno = ErrnoKept::new();
        contain(|| match self.task.policy {
            Policy::Observe => {
                if entered.outermost {
                    self.observe(0, Origin::Before, false, &mut |_| {});
                }
                entered.keep(self.position, self.depth, Mark::None);
            }
            Policy::Clear | Policy::Assert if entered.outermost => {
                self.empty(Origin::Before, false, &mut |_| {});
            }
            // They belong to the caller.
            Policy::RollBack | Policy::Clear | Policy::Assert => {
                entered.keep(self.position, self.depth, self.library.mark());
            }
        });
        entered
    }

    /// On leaving a guard; returns how many errors the task left. Tells `meaning` of each where the
    /// policy is to fail.
    #[cold]
    #[inline(never)]
    pub(super) fn leave(
        &self,
        entered: Entered,
        first_of_task: bool,
        meaning: &mut dyn FnMut(String),
    ) -> u64 {
        let _errno = ErrnoKept::new();
        let mut count = 0;
        contain(|| count = self.settle(&entered, first_of_task, meaning).unwrap_or(0));
        count
    }

    /// In the middle of a task: as on leaving it, and then as on entering it.
    #[cold]
    #[inline(never)]
    pub(super) fn checkpoint(&self, mut entered: Entered) -> Entered {
        let _errno = ErrnoKept::new();
        contain(|| {
            let Some(count) = self.settle(&entered, entered.left == 0, &mut |_| {}) else { return };
            entered.left = entered.left.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
            let depth = self.library.depth();
            let mark = match self.task.policy {
                Policy::Observe => Mark::None,
                // Nothing to keep: a mark on an empty queue is none.
                _ if depth == 0 => Mark::None,
                _ => self.library.mark(),
            };
            entered.keep(self.position, depth, mark);
        });
        entered
    }

    /// On a thread without a guard: records what is there, and empties the queue unless it is only to be
    /// observed.
    #[cold]
    #[inline(never)]
    pub(super) fn outside(&self, origin: Origin) -> u64 {
        let _errno = ErrnoKept::new();
        let mut count = 0;
        contain(|| {
            count = match self.task.policy {
                Policy::Observe => self.observe(0, origin, false, &mut |_| {}),
                Policy::Clear | Policy::RollBack | Policy::Assert => {
                    self.empty(origin, false, &mut |_| {})
                }
            };
        });
        count
    }

    /// Records what the task has left and applies its policy; returns how many errors it left, or none
    /// where the queue is not the task's to judge.
    fn settle(
        &self,
        entered: &Entered,
        first_of_task: bool,
        meaning: &mut dyn FnMut(String),
    ) -> Option<u64> {
        let kept = entered.kept.get(self.position);
        let root = entered.outermost && matches!(self.task.policy, Policy::Clear | Policy::Assert);
        if self.position >= usize::from(entered.seen) && !root {
            // Bound during the task: what is the caller's and what the task's cannot be told.
            return None;
        }
        Some(match self.task.policy {
            Policy::Observe => self.observe(kept, Origin::Task, first_of_task, meaning),
            Policy::Clear | Policy::Assert if entered.outermost => {
                self.empty(Origin::Task, first_of_task, meaning)
            }
            Policy::RollBack | Policy::Clear | Policy::Assert => {
                let observed = self.observed();
                let skip = kept.max(observed);
                let mut count = 0;
                if self.depth > skip {
                    count = self.look(Origin::Task, skip, first_of_task, meaning);
                }
                self.library.roll_back(entered.mark(self.position), kept);
                if observed > kept {
                    thread::observed(self.position, kept);
                }
                count
            }
        })
    }

    /// How many of the oldest errors a guard has recorded and left where they were.
    fn observed(&self) -> usize {
        thread::with(|current| current.observed.get().get(self.position)).min(self.depth)
    }

    /// Records what nobody has recorded yet, and empties the queue.
    fn empty(&self, origin: Origin, first: bool, meaning: &mut dyn FnMut(String)) -> u64 {
        let observed = self.observed();
        if observed == 0 {
            return self.take(origin, first, meaning);
        }
        let mut count = 0;
        if self.depth > observed {
            count = self.look(origin, observed, first, meaning);
        }
        self.library.clear();
        thread::observed(self.position, 0);
        count
    }

    /// Records what came after the first `kept` and nobody has recorded yet, and leaves all as it is.
    fn observe(
        &self,
        kept: usize,
        origin: Origin,
        first: bool,
        meaning: &mut dyn FnMut(String),
    ) -> u64 {
        let observed = self.observed();
        let skip = kept.max(observed);
        let mut count = 0;
        if self.depth > skip {
            count = self.look(origin, skip, first, meaning);
        }
        // What an outer task has left is recorded at that task's own end or checkpoint.
        let all = kept <= observed;
        thread::observed(self.position, if all { self.depth } else { observed });
        count
    }

    /// Records the errors and takes them out of the queue.
    fn take(&self, origin: Origin, first: bool, meaning: &mut dyn FnMut(String)) -> u64 {
        self.recorded(origin, first, meaning, |add| {
            self.library.drain(add);
            // An entry that constant-time code took back counts in the ring, but is never given out.
            self.library.clear();
        })
    }

    /// Records the errors from `skip` on and leaves them where they are.
    fn look(
        &self,
        origin: Origin,
        skip: usize,
        first: bool,
        meaning: &mut dyn FnMut(String),
    ) -> u64 {
        self.recorded(origin, first, meaning, |add| {
            self.library.entries(skip, add);
        })
    }

    fn recorded(
        &self,
        origin: Origin,
        first_of_task: bool,
        meaning: &mut dyn FnMut(String),
        read: impl FnOnce(&mut dyn FnMut(&Entry<'_>)),
    ) -> u64 {
        // A thread that is ending must not allocate: its errors go, and are counted as late.
        let alive = thread::with(|current| current.counters().is_some());
        let record =
            alive.then(|| ledger::record(self.task, self.library, origin, self.depth)).flatten();
        let Some(mut record) = record else {
            ledger::count_late();
            read(&mut |_| {});
            return 0;
        };
        let wanted = self.task.policy == Policy::Assert && origin == Origin::Task;
        read(&mut |entry| {
            record.add(entry);
            if wanted {
                meaning(self.library.reason(entry.code));
            }
        });
        record.close(first_of_task)
    }
}

/// Runs in a guard's drop, perhaps while a panic unwinds already: nothing may panic out of it.
fn contain(work: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(work));
}
