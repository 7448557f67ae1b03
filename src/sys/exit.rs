//! A hook that runs when the process exits.

use std::panic::catch_unwind;
use std::sync::OnceLock;

static HOOK: OnceLock<fn()> = OnceLock::new();

/// Runs `hook` at exit(3), before the handlers that were registered before this call.
///
/// Calling it again registers the same hook again, so that it also precedes what has been
/// registered since. The first function given counts.
pub fn before_earlier_handlers(hook: fn()) {
    HOOK.get_or_init(|| hook);
    super::pin::ourselves();
    // SAFETY: the handler has the signature asked for and stays mapped: its object was
    // pinned above.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    if let Some(hook) = HOOK.get() {
        // A panic must not unwind into the C library.
        let _ = catch_unwind(hook);
    }
}
