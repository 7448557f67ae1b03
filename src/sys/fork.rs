//! A hook that runs in the child of a fork, before fork returns there.

use std::panic::catch_unwind;
use std::sync::OnceLock;

static HOOK: OnceLock<fn()> = OnceLock::new();

/// Runs `hook` in each child, on its only thread; the first hook given counts.
///
/// The hook may touch atomics and thread-locals of its thread and nothing else: locks that other
/// threads held at the time of the fork stay locked in the child for ever.
/// See pthread_atfork(3).
pub fn on_child(hook: fn()) {
    let mut first = false;
    HOOK.get_or_init(|| {
        first = true;
        hook
    });
    if first {
        // SAFETY: the handler has the signature asked for and stays mapped, since the shared object
        // is linked NODELETE. Failure (no memory) leaves the child without the hook, as documented
        // in docs/guard.md.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

extern "C" fn in_child() {
    if let Some(hook) = HOOK.get() {
        // A panic must not unwind into the C library.
        let _ = catch_unwind(hook);
    }
}
