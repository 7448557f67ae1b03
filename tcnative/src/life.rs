//! From `Library.initialize` to `Library.terminate`, any number of times.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::java::Refusal;
use crate::{conf, connection, context, ffi, key_log, pool};

static INITIALIZED: AtomicBool = AtomicBool::new(false);
static SSL_INITIALIZED: AtomicBool = AtomicBool::new(false);

/// `Library.initialize`.
pub(crate) fn initialize() {
    INITIALIZED.store(true, Ordering::Release);
}

/// Refuses what belongs between `initialize` and `terminate` at other times: it would belong to nobody.
pub(crate) fn initialized() -> Result<(), Refusal> {
    if INITIALIZED.load(Ordering::Acquire) {
        Ok(())
    } else {
        Err(Refusal::exception("Library.initialize has not been called, or Library.terminate has"))
    }
}

/// `SSL.initialize`; once until the library is terminated.
pub(crate) fn initialize_ssl() -> Result<(), Refusal> {
    initialized()?;
    if SSL_INITIALIZED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    // SAFETY: no settings are given; OPENSSL_init_ssl(3) may be called from any thread at any time.
    let done = unsafe { ffi::OPENSSL_init_ssl(0, ptr::null()) };
    if done != 1 || connection_index() < 0 {
        SSL_INITIALIZED.store(false, Ordering::Release);
        return Err(Refusal::exception(format!(
            "OpenSSL cannot be initialised: {}",
            crate::queue::pop_text()
        )));
    }
    key_log::open();
    Ok(())
}

/// `Library.terminate`. Java frees nothing after it, so that all that is left goes now; a connection that another
/// thread is using goes when that thread's native returns.
pub(crate) fn terminate() {
    if !INITIALIZED.swap(false, Ordering::AcqRel) {
        return;
    }
    connection::clear();
    conf::CONFS.clear();
    context::CONTEXTS.clear();
    pool::clear();
    key_log::close();
    SSL_INITIALIZED.store(false, Ordering::Release);
}

/// Where OpenSSL keeps the pointer from an `SSL` to its connection; negative where it has no room for it.
pub(crate) fn connection_index() -> c_int {
    static INDEX: OnceLock<c_int> = OnceLock::new();
    const CLASS: c_int = ffi::CRYPTO_EX_INDEX_SSL;
    let nothing: *mut c_void = ptr::null_mut();
    // SAFETY: without callbacks; CRYPTO_get_ex_new_index(3) is thread-safe.
    *INDEX.get_or_init(|| unsafe {
        ffi::CRYPTO_get_ex_new_index(CLASS, 0, nothing, None, None, None)
    })
}

#[cfg(test)]
mod tests;
