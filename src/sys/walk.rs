//! Keeps walks of the dynamic linker's list and forks apart.
//!
//! dl_iterate_phdr(3) takes a lock of the linker's, and a child inherits that lock as it is: if another
//! thread was walking when the process forked, it is taken in the child for ever. So the thread that
//! forks waits for walks of ours to end, and keeps new ones from beginning. What others do with the
//! linker (dlopen in another thread) is not seen here.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Nobody waits longer: a walk takes a microsecond, a fork some milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

static WALKS: AtomicUsize = AtomicUsize::new(0);
static FORKS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The thread is forking: what its other handlers do must not wait for itself.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// A walk that is under way, until dropped.
#[derive(Debug)]
pub(super) struct Walk(());

impl Walk {
    /// Begins a walk, when no other thread is forking.
    pub(super) fn begin() -> Self {
        let mut begun = None;
        loop {
            // One total order: either the fork sees this walk, or this walk sees the fork.
            WALKS.fetch_add(1, Ordering::SeqCst);
            if FORKS.load(Ordering::SeqCst) == 0
                || FORKING.get()
                || begun.get_or_insert_with(Instant::now).elapsed() > PATIENCE
            {
                return Self(());
            }
            drop(Self(()));
            std::thread::yield_now();
        }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        WALKS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Before a fork, on the thread that forks.
pub fn before_fork() {
    FORKING.set(true);
    FORKS.fetch_add(1, Ordering::SeqCst);
    let begun = Instant::now();
    while WALKS.load(Ordering::SeqCst) > 0 && begun.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
}

/// After a fork, in the parent.
pub fn after_fork() {
    FORKS.fetch_sub(1, Ordering::SeqCst);
    FORKING.set(false);
}

/// After a fork, in the child, which has one thread.
pub fn in_child() {
    FORKS.store(0, Ordering::SeqCst);
    WALKS.store(0, Ordering::SeqCst);
    FORKING.set(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_fork_waits_for_walks_and_keeps_new_ones_waiting() {
        let walk = Walk::begin();
        let (ending, forked) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                before_fork();
                assert!(ending.load(Ordering::SeqCst), "it has waited for the walk");
                // The thread itself does not wait for itself.
                drop(Walk::begin());
                forked.store(true, Ordering::SeqCst);
                after_fork();
            });
            while FORKS.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            ending.store(true, Ordering::SeqCst);
            drop(walk);
            drop(Walk::begin());
            assert!(forked.load(Ordering::SeqCst), "it has waited for the fork");
        });
    }
}
