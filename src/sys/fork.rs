//! Hooks that run around a fork, on the thread that forks.

use std::panic::catch_unwind;
use std::sync::OnceLock;

#[derive(Debug)]
struct Hooks {
    before: fn(),
    in_child: fn(),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Runs `before` when a thread is about to fork, and `in_child` in the child, on its only thread,
/// before fork returns there; the first hooks given count.
///
/// `in_child` may touch atomics and thread-locals of its thread and nothing else: locks that other
/// threads held at the time of the fork stay locked in the child for ever. What takes a lock must be
/// done by `before`. See pthread_atfork(3).
pub fn around(before: fn(), in_child: fn()) {
    let mut first = false;
    HOOKS.get_or_init(|| {
        first = true;
        Hooks { before, in_child }
    });
    if first {
        // SAFETY: the handlers have the signature asked for and stay mapped, since the shared object
        // is linked NODELETE. Failure (no memory) leaves the process without the hooks, as documented
        // in docs/guard.md.
        unsafe { libc::pthread_atfork(Some(run_before), None, Some(run_in_child)) };
    }
}

extern "C" fn run_before() {
    run(|hooks| hooks.before);
}

extern "C" fn run_in_child() {
    run(|hooks| hooks.in_child);
}

fn run(hook: impl FnOnce(&Hooks) -> fn()) {
    if let Some(hooks) = HOOKS.get() {
        // A panic must not unwind into the C library.
        let _ = catch_unwind(hook(hooks));
    }
}
