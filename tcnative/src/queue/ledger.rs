//! Who keeps the ledger of leftovers: the shim where it serves the process, as there must be one ledger; else the
//! copy of its code in this library.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use sslsweep::hygiene::{Guard, Label};
use sslsweep::sys::dl::Handle;
use sslsweep::sys::objects::{self, Generation};

use super::{clear, entries};

/// `sslsweep_enter` of `include/sslsweep.h`.
type Enter = unsafe extern "C" fn(*const c_char) -> c_int;
/// `sslsweep_exit`, `sslsweep_refused`.
type Ask = extern "C" fn() -> c_int;

/// The shim's functions: once loaded, it is never unloaded.
#[derive(Clone, Copy)]
struct Shim {
    enter: Enter,
    exit: Ask,
}

/// Records what the native `name` has left, and clears it.
#[cold]
#[inline(never)]
pub(super) fn left(name: &'static CStr) {
    // Taken out and put in again inside a task of the native's name: the errors are that task's then.
    let entries = entries::take();
    in_task(name, || entries::put(&entries));
    clear();
}

/// Records what the native `name` has found, and clears it.
#[cold]
#[inline(never)]
pub(super) fn found(name: &'static CStr) {
    in_task(name, || {});
    clear();
}

fn in_task(name: &'static CStr, work: impl FnOnce()) {
    if let Some(shim) = shim() {
        // SAFETY: the name ends with a NUL; the task is left below, on the same thread.
        unsafe { (shim.enter)(name.as_ptr()) };
        work();
        (shim.exit)();
        return;
    }
    // Names are UTF-8: they are those of Java's natives.
    let _guard = Guard::enter(Label::from(name.to_str().unwrap_or("(native)")));
    work();
}

/// Looks for the shim, again whenever something was loaded since.
fn shim() -> Option<Shim> {
    static SEEN: Mutex<Option<(Generation, Option<Shim>)>> = Mutex::new(None);
    let now = objects::generation();
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    match *seen {
        Some((_, Some(shim))) => return Some(shim),
        Some((generation, None)) if generation == now => return None,
        _ => {}
    }
    let found = objects::loaded().iter().find_map(|object| functions(&object.path));
    *seen = Some((now, found));
    found
}

/// Those of an object, where it is the shim.
fn functions(path: &std::path::Path) -> Option<Shim> {
    let handle = Handle::loaded(path)?;
    let enter = handle.symbol(c"sslsweep_enter")?;
    let exit = handle.symbol(c"sslsweep_exit")?;
    let refused = handle.symbol(c"sslsweep_refused")?;
    if asked(refused)() != 0 {
        // A copy that came second and serves nobody.
        return None;
    }
    // SAFETY: the name is the shim's own, and this is its type in the header.
    let enter = unsafe { std::mem::transmute::<NonNull<_>, Enter>(enter) };
    // It is linked so that it is never unmapped.
    handle.pin();
    Some(Shim { enter, exit: asked(exit) })
}

fn asked(address: NonNull<std::ffi::c_void>) -> Ask {
    // SAFETY: both names are the shim's own, and this is their type in the header.
    unsafe { std::mem::transmute::<NonNull<_>, Ask>(address) }
}
