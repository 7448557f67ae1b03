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
        // What a guard has observed is recorded already: it left it there, and is no arrival.
        let observed = thread::with(|current| current.observed.get().get(self.position));
        contain(|| match self.task.policy {
            Policy::Observe => {
                if entered.outermost && self.depth > observed {
                    self.look(Origin::Before, observed, false, &mut |_| {});
                }
                entered.keep(self.position, self.depth, Mark::None);
            }
            Policy::Clear | Policy::Assert if entered.outermost && observed > 0 => {
                if self.depth > observed {
                    self.look(Origin::Before, observed, false, &mut |_| {});
                }
                self.library.clear();
                thread::observed_to_here();
            }
            Policy::Clear | Policy::Assert if entered.outermost => {
                self.take(Origin::Before, false, &mut |_| {});
            }
            // They belong to the caller.
            Policy::RollBack | Policy::Clear | Policy::Assert => {
                entered.keep(self.position, self.depth, self.library.mark());
            }
        });
        entered
    }

    /// On leaving a guard; returns whether the task left errors. Tells `meaning` of each where the
    /// policy is to fail.
    #[cold]
    #[inline(never)]
    pub(super) fn leave(
        &self,
        entered: Entered,
        first_of_task: bool,
        meaning: &mut dyn FnMut(String),
    ) -> bool {
        let _errno = ErrnoKept::new();
        let mut count = 0;
        contain(|| {
            let kept = entered.kept.get(self.position);
            let root =
                entered.outermost && matches!(self.task.policy, Policy::Clear | Policy::Assert);
            if self.position >= usize::from(entered.seen) && !root {
                // Bound during the task: what is the caller's and what the task's cannot be told.
                return;
            }
            match self.task.policy {
                Policy::Observe if self.depth > kept => {
                    count = self.look(Origin::Task, kept, first_of_task, meaning);
                }
                Policy::Observe => {}
                Policy::Clear | Policy::Assert if entered.outermost => {
                    count = self.take(Origin::Task, first_of_task, meaning);
                }
                Policy::RollBack | Policy::Clear | Policy::Assert => {
                    if self.depth > kept {
                        count = self.look(Origin::Task, kept, first_of_task, meaning);
                    }
                    self.library.roll_back(entered.mark(self.position), kept);
                }
            }
        });
        count > 0
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
