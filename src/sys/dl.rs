//! Handles of loaded shared objects, and addresses of symbols in them.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// A reference to an object that is mapped into this process.
///
/// The dynamic linker counts references: while a handle lives, the object stays mapped.
/// See dlopen(3).
#[derive(Debug)]
pub struct Handle(NonNull<c_void>);

// SAFETY: a dlopen handle is a reference to linker data that the linker guards with its own lock;
// no thread owns it.
unsafe impl Send for Handle {}
// SAFETY: as above; dlsym on one handle from several threads is allowed (dlsym(3), MT-Safe).
unsafe impl Sync for Handle {}

impl Handle {
    /// The program itself and, through it, what it was linked with.
    #[must_use]
    pub fn program() -> Option<Self> {
        // SAFETY: a null name asks for the program, which is loaded; nothing is run.
        let handle = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_NOW) };
        NonNull::new(handle).map(Self)
    }

    /// A further reference to an object that is loaded already; loads nothing.
    ///
    /// Returns `None` when no object of that name is loaded (any more).
    #[must_use]
    pub fn loaded(path: &Path) -> Option<Self> {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: `name` is NUL-terminated and outlives the call; with RTLD_NOLOAD no initialiser
        // of a new object is run.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        NonNull::new(handle).map(Self)
    }

    /// Loads an object, with its symbols kept to itself (RTLD_LOCAL).
    ///
    /// For a program that chooses its libraries, as the `sslsweep` command does. The shim itself
    /// never loads anything into its host.
    ///
    /// # Errors
    /// The dynamic linker's own message.
    ///
    /// # Safety
    /// Initialisers of the object run: it must be a library that the caller trusts with the process.
    pub unsafe fn load(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| "the path contains a NUL byte".to_owned())?;
        // SAFETY: `name` is NUL-terminated and outlives the call; the caller vouches for the
        // initialisers.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Self).ok_or_else(last_error)
    }

    /// Address of `name` in this object or, where it has none, in what it was linked with.
    #[must_use]
    pub fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is live (we hold a reference) and `name` is NUL-terminated.
        let address = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(address)
    }

    /// Keeps the object mapped for the life of the process.
    pub fn pin(self) {
        std::mem::forget(self);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from dlopen and is given back once.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

fn last_error() -> String {
    // SAFETY: dlerror has no preconditions; its result belongs to this thread until its next call.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the dynamic linker gave no reason".to_owned();
    }
    // SAFETY: not null, so a NUL-terminated text that stays valid until this thread's next dl call.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}
