//! Hooks that run around a fork, on the thread that forks.

use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// More pairs of hooks than this are not taken. A child runs through all of them.
const MOST: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Hooks {
    before: fn(),
    after: fn(),
    in_child: fn(),
}

static HOOKS: [OnceLock<Hooks>; MOST] = [const { OnceLock::new() }; MOST];

/// Runs `before` when a thread is about to fork, `after` on that thread when it has forked, and
/// `in_child` in the child, on its only thread, before fork returns there; each after the hooks that
/// were given earlier. Hooks that are given again (told by `in_child`) still run once. Returns false
/// where there is no room for them.
///
/// `in_child` may touch atomics and thread-locals of its thread and nothing else: locks that other
/// threads held at the time of the fork stay locked in the child for ever. What takes a lock must be
/// done by `before`. See pthread_atfork(3).
pub fn around(before: fn(), after: fn(), in_child: fn()) -> bool {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    // Nobody waits for the thread that registers: it may be waiting for one that forks, and not be
    // there in the child.
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        super::pin::ourselves();
        // SAFETY: the handlers have the signature asked for and stay mapped: their object was pinned
        // above. Failure (no memory) leaves the process without the hooks: docs/guard.md, Fork.
        unsafe { libc::pthread_atfork(Some(run_before), Some(run_after), Some(run_in_child)) };
    }
    // By address: the functions given are few, not generic, and each named in one place.
    HOOKS.iter().any(|place| {
        place.get_or_init(|| Hooks { before, after, in_child }).in_child as usize
            == in_child as usize
    })
}

/// As [`around`], with nothing to do in the parent.
pub fn on_child(in_child: fn()) -> bool {
    around(|| {}, || {}, in_child)
}

extern "C" fn run_before() {
    run(|hooks| hooks.before);
}

extern "C" fn run_after() {
    run(|hooks| hooks.after);
}

extern "C" fn run_in_child() {
    run(|hooks| hooks.in_child);
}

fn run(hook: impl Fn(&Hooks) -> fn()) {
    // A place that another thread was filling at the time of the fork reads as empty.
    for hooks in HOOKS.iter().filter_map(OnceLock::get) {
        // A panic must not unwind into the C library.
        let _ = catch_unwind(hook(hooks));
    }
}

/// Forks, and answers what `work` says in the child. For tests: the program has threads, so that `work`
/// must get along without their locks.
///
/// # Panics
/// The system cannot fork, or the child ended in another way.
#[cfg(test)]
pub(crate) fn child_says(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work` alone, and ends without running anything else of this program.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let said = catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: ends the child at once, without handlers of the program.
        unsafe { libc::_exit(i32::from(!said)) };
    }
    let mut status = 0;
    // SAFETY: the child is ours, and `status` is a valid place.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status:#x}");
    libc::WEXITSTATUS(status) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    static RUNS: AtomicUsize = AtomicUsize::new(0);

    fn first() {
        RUNS.fetch_add(1, Ordering::Relaxed);
    }

    fn second() {
        // Sees what the first has done.
        RUNS.fetch_add(10 * RUNS.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    #[test]
    fn each_hook_runs_once_in_a_child_and_in_the_order_given() {
        for hook in [first as fn(), second, first, second] {
            assert!(on_child(hook));
        }
        assert!(child_says(|| RUNS.load(Ordering::Relaxed) == 11));
        assert_eq!(RUNS.load(Ordering::Relaxed), 0, "nothing runs in the parent");
    }
}
