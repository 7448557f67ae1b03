//! What a guard does about errors that it finds. Never on the path of a clean task.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::guard::Entered;
use super::ledger::{self, Origin};
use super::task::{Policy, Task};
use super::thread::{self, oldest};
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

    /// In the middle of a task, as on leaving it. [`Self::keep`] has to follow.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_so_far(&self, mut entered: Entered) -> Entered {
        let _errno = ErrnoKept::new();
        contain(|| {
            let count = self.settle(&entered, entered.left == 0, &mut |_| {}).unwrap_or(0);
            entered.left = entered.left.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
        });
        entered
    }

    /// In the middle of a task, as on entering it: what is there now is not looked at again.
    #[cold]
    #[inline(never)]
    pub(super) fn keep(&self, mut entered: Entered) -> Entered {
        let _errno = ErrnoKept::new();
        contain(|| {
            if !self.is_judged(&entered) {
                return;
            }
            let mark = match self.task.policy {
                Policy::Observe => Mark::None,
                // Nothing to keep: a mark on an empty queue is none.
                _ if self.depth == 0 => Mark::None,
                _ => self.library.mark(),
            };
            entered.keep(self.position, self.depth, mark);
        });
        entered
    }

    /// Where the queue has become shorter than what the task is not to look at, somebody has emptied it.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_no_more(&self, entered: Entered) -> Entered {
        if entered.kept.get(self.position) > self.depth { self.keep(entered) } else { entered }
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

    /// Whether it can be told what is the caller's and what the task's: a library that was bound during the
    /// task is left to the root, which clears all.
    fn is_judged(&self, entered: &Entered) -> bool {
        let root = entered.outermost && matches!(self.task.policy, Policy::Clear | Policy::Assert);
        root || self.position < usize::from(entered.seen)
    }

    /// Records what the task has left and applies its policy; returns how many errors it left, or none
    /// where the queue is not the task's to judge.
    fn settle(
        &self,
        entered: &Entered,
        first_of_task: bool,
        meaning: &mut dyn FnMut(String),
    ) -> Option<u64> {
        if !self.is_judged(entered) {
            return None;
        }
        let kept = entered.kept.get(self.position);
        Some(match self.task.policy {
            Policy::Observe => self.observe(kept, Origin::Task, first_of_task, meaning),
            Policy::Clear | Policy::Assert if entered.outermost => {
                self.empty(Origin::Task, first_of_task, meaning)
            }
            Policy::RollBack | Policy::Clear | Policy::Assert => {
                let recorded = self.recorded();
                let count = self.look(kept, Origin::Task, first_of_task, meaning);
                self.library.roll_back(entered.mark(self.position), kept);
                thread::set_recorded(self.position, recorded & oldest(kept));
                count
            }
        })
    }

    /// Places of errors that a guard has recorded and left where they were.
    fn recorded(&self) -> u16 {
        thread::recorded(self.position) & oldest(self.depth)
    }

    /// Records what nobody has recorded yet, and empties the queue.
    fn empty(&self, origin: Origin, first: bool, meaning: &mut dyn FnMut(String)) -> u64 {
        if self.recorded() == 0 {
            return self.take(origin, first, meaning);
        }
        let count = self.look(0, origin, first, meaning);
        self.library.clear();
        thread::set_recorded(self.position, 0);
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
        let recorded = self.recorded();
        let count = self.look(kept, origin, first, meaning);
        // What an outer task has left is recorded at that task's own end or checkpoint.
        let own = oldest(self.depth) & !oldest(kept);
        thread::set_recorded(self.position, recorded | own);
        count
    }

    /// Records the errors and takes them out of the queue.
    fn take(&self, origin: Origin, first: bool, meaning: &mut dyn FnMut(String)) -> u64 {
        self.record(origin, first, meaning, |add| {
            self.library.drain(add);
            // An entry that constant-time code took back counts in the ring, but is never given out.
            self.library.clear();
        })
    }

    /// Records the errors after the first `kept` that nobody has recorded yet, and leaves them where they are.
    fn look(
        &self,
        kept: usize,
        origin: Origin,
        first: bool,
        meaning: &mut dyn FnMut(String),
    ) -> u64 {
        let places = oldest(self.depth) & !oldest(kept) & !self.recorded();
        if places == 0 {
            return 0;
        }
        self.record(origin, first, meaning, |add| {
            for place in (0..self.depth).filter(|place| places >> place & 1 != 0) {
                self.library.entries(place..place + 1, add);
            }
        })
    }

    fn record(
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
