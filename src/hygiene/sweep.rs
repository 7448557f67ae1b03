//! What a guard does about errors that it finds. Never on the path of a clean task.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::guard::Entered;
use super::ledger::{self, Origin};
use super::task::{Policy, Task};
use super::thread::Current;
use crate::libcrypto::{Entry, Library};
use crate::sys::thread::ErrnoKept;

/// A queue that is not as a clean task leaves it.
pub(super) struct Queue<'a> {
    pub(super) task: Task,
    pub(super) library: &'static Library,
    /// The library's place in the list of bound ones.
    pub(super) position: usize,
    pub(super) depth: usize,
    pub(super) current: &'a Current,
}

impl Queue<'_> {
    /// On entering a guard: errors that are there already.
    #[cold]
    pub(super) fn arrive(&self, entered: &mut Entered) {
        let _errno = ErrnoKept::new();
        contain(|| match entered.policy {
            Policy::Clear | Policy::Assert if entered.outermost => {
                self.take(Origin::Before, false);
            }
            Policy::Observe => {
                let observed = self.observed();
                if entered.outermost && self.depth > observed {
                    self.look(Origin::Before, observed, false);
                }
                entered.keep(self.position, self.depth, false);
            }
            // They belong to the caller.
            Policy::RollBack | Policy::Clear | Policy::Assert => {
                entered.keep(self.position, self.depth, self.library.set_mark());
            }
        });
    }

    /// On leaving a guard: returns the leftovers' meanings where the policy is to fail on them.
    #[cold]
    pub(super) fn leave(&self, entered: &Entered, first_of_task: bool) -> Left {
        let _errno = ErrnoKept::new();
        let mut left = Left::default();
        contain(|| {
            let kept = entered.kept(self.position);
            match entered.policy {
                Policy::Observe => {
                    if self.depth > kept {
                        left = self.look(Origin::Task, kept, first_of_task);
                    }
                }
                _ if entered.outermost && kept == 0 && entered.policy != Policy::RollBack => {
                    left = self.take(Origin::Task, first_of_task);
                }
                _ => {
                    if self.depth > kept {
                        left = self.look(Origin::Task, kept, first_of_task);
                    }
                    if entered.marked(self.position) {
                        self.library.pop_to_mark();
                    } else if kept == 0 {
                        self.library.clear();
                    }
                }
            }
        });
        left
    }

    /// Records the errors and takes them out of the queue.
    fn take(&self, origin: Origin, first_of_task: bool) -> Left {
        self.recorded(origin, first_of_task, |add| {
            self.library.drain(add);
            // An entry that constant-time code took back counts in the ring, but is never given out.
            self.library.clear();
        })
    }

    /// Records the errors from `skip` on and leaves them where they are.
    fn look(&self, origin: Origin, skip: usize, first_of_task: bool) -> Left {
        self.recorded(origin, first_of_task, |add| {
            self.library.entries(skip, add);
        })
    }

    fn recorded(
        &self,
        origin: Origin,
        first_of_task: bool,
        read: impl FnOnce(&mut dyn FnMut(&Entry<'_>)),
    ) -> Left {
        // A thread that is ending must not allocate: its errors go, and are counted as late.
        let record = match self.current.counters() {
            Some(_) => ledger::record(self.task, self.library, origin, self.depth),
            None => None,
        };
        let Some(mut record) = record else {
            ledger::count_late();
            read(&mut |_| {});
            return Left::default();
        };
        let mut left = Left::default();
        let wanted = self.task.policy == Policy::Assert && origin == Origin::Task;
        read(&mut |entry| {
            record.add(entry);
            if wanted {
                left.meanings.push(self.library.reason(entry.code));
            }
        });
        left.count = record.close(first_of_task);
        left
    }

    fn observed(&self) -> usize {
        self.current.observed.get().get(self.position).copied().map_or(0, usize::from)
    }
}

/// What a task left in one queue.
#[derive(Default)]
pub(super) struct Left {
    pub(super) count: u64,
    pub(super) meanings: Vec<String>,
}

/// Runs in a guard's drop, perhaps while a panic unwinds already: nothing may panic out of it.
fn contain(work: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(work));
}
