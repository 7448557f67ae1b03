//! Keeps this code mapped for the life of the process.
//!
//! Hooks for thread end, fork and exit, and functions that were given to a libcrypto, point into this
//! code: it must not be unmapped when a host closes the plug-in that it is part of (CASES.md, 37). The
//! shim's own shared object is linked NODELETE; an object that has the crate inside is pinned here.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pins the object that this code is part of; once is enough. To be called before any address in it is
/// given away. Takes the dynamic linker's lock.
pub fn ourselves() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Acquire) {
        return;
    }
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    let own = ourselves as *const c_void;
    // SAFETY: any address may be asked for; `found` is a valid place for the answer.
    if unsafe { libc::dladdr(own, found.as_mut_ptr()) } != 0 {
        // SAFETY: dladdr has filled it in (and it was zeroed before).
        let found = unsafe { found.assume_init() };
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the linker's own name of a mapped object, NUL-terminated. It loads nothing; null
        // (for the program, which is never unmapped) needs nothing.
        let _ = unsafe { libc::dlopen(found.dli_fname, flags) };
    }
    DONE.store(true, Ordering::Release);
}

/// Whether `address` lies in an object that is mapped now. Takes the dynamic linker's lock.
#[must_use]
pub fn is_in_an_object(address: usize) -> bool {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for; `found` is a valid place for the answer, which is not used.
    unsafe { libc::dladdr(address as *const c_void, found.as_mut_ptr()) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_texts_are_in_an_object_and_heap_is_not() {
        ourselves();
        assert!(is_in_an_object(c"static".as_ptr() as usize));
        let heap = Box::new(7);
        assert!(!is_in_an_object(std::ptr::from_ref(&*heap) as usize));
    }
}
