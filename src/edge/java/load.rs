//! What happens when a JVM loads the library.
//!
//! A process must have one copy of it. Two would sweep each other's queues and not know each other's tasks: what
//! one records the other does not find, and each figure is half of the truth. A copy that comes second therefore
//! refuses, with a text that names both. It stays mapped all the same (it is never unmapped), so that a copy says
//! of itself whether it is one that refused.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use jni::sys::{JNI_ERR, JNI_VERSION_1_8, jint};
use jni::{JavaVM, jni_str};

use super::env::{JavaError, throw_new};
use crate::edge::export;
use crate::sys::dl::Handle;
use crate::sys::objects::{self, Object};

static REFUSED: AtomicBool = AtomicBool::new(false);

/// Whether this copy has refused to serve a JVM.
pub(in crate::edge) fn is_refused() -> bool {
    REFUSED.load(Ordering::Relaxed)
}

/// Called by the JVM when it loads the library for a class loader. On an error an exception is pending, whose
/// text the JVM passes on.
///
/// # Safety
/// `vm` is the JVM that calls.
// SAFETY: the JVM looks for this name in the library that it loads, and the name is no other library's to take:
// the JVM asks each library for its own.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn JNI_OnLoad(vm: *mut jni::sys::JavaVM, _reserved: *mut u8) -> jint {
    let answer = export::caught("JNI_OnLoad", || -> Result<jint, JavaError> {
        let (own, other) = copies();
        let Some(other) = other else {
            REFUSED.store(false, Ordering::Relaxed);
            return Ok(JNI_VERSION_1_8);
        };
        REFUSED.store(true, Ordering::Relaxed);
        let text = format!(
            "{} is not used: this process has another copy of libsslsweep, {}. Keep one: name the same file \
             everywhere (LD_PRELOAD, -Dorg.sslsweep.library, java.library.path), and load one jar once",
            own.display(),
            other.display()
        );
        // SAFETY: the JVM that calls; the caller vouches for it.
        let vm = unsafe { JavaVM::from_raw(vm) };
        vm.with_top_local_frame(|env| {
            throw_new(env, jni_str!("java/lang/UnsatisfiedLinkError"), &text)
        })?;
        Ok(JNI_ERR)
    });
    answer.unwrap_or(JNI_ERR)
}

/// Files of this copy and of another one that serves the process.
fn copies() -> (PathBuf, Option<PathBuf>) {
    // Of something that is not exported: a name that is may lead to the copy that was loaded first.
    let own = copies as *const () as usize;
    let (mut this, mut other) = (PathBuf::new(), None);
    for object in objects::loaded() {
        if object.contains(own) {
            this = object.path;
        } else if other.is_none() && is_in_use(&object) {
            other = Some(object.path);
        }
    }
    (this, other)
}

/// Whether an object is a copy of this library that has not refused.
fn is_in_use(object: &Object) -> bool {
    let handle = if object.is_program { Handle::program() } else { Handle::loaded(&object.path) };
    let Some(handle) = handle else { return false };
    // In its own segments: a handle also finds what the object was linked with.
    let own =
        |name| handle.symbol(name).filter(|address| object.contains(address.as_ptr() as usize));
    if own(c"sslsweep_version").is_none() {
        return false;
    }
    let Some(refused) = own(c"sslsweep_refused") else { return true };
    // SAFETY: the name is ours, and this is its prototype in each copy that has it (include/sslsweep.h).
    let refused =
        unsafe { std::mem::transmute::<NonNull<c_void>, extern "C" fn() -> c_int>(refused) };
    refused() == 0
}
