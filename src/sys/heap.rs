//! The C library's heap, for those who stand in for it.

use std::ffi::c_void;

/// `size` bytes, or null where there is no memory. See malloc(3).
#[inline]
#[must_use]
pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: no preconditions.
    unsafe { libc::malloc(size) }
}

/// The block with another size, perhaps elsewhere; null where there is no memory, and then the block is
/// as it was. See realloc(3).
///
/// # Safety
/// `block` must be a block of this heap that the caller may give away, and `size` not 0.
#[inline]
pub unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promises.
    unsafe { libc::realloc(block, size) }
}

/// Gives a block back; null is none. See free(3).
///
/// # Safety
/// `block` must be null or a block of this heap that the caller may give away.
#[inline]
pub unsafe fn free(block: *mut c_void) {
    // SAFETY: the caller's promises.
    unsafe { libc::free(block) };
}

/// The address of the C library's malloc, as all objects of the process see it.
#[must_use]
pub fn address_of_malloc() -> *const c_void {
    libc::malloc as *const c_void
}
