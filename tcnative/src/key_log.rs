//! The TLS secrets of all connections, for those who set `SSLKEYLOGFILE` to debug: whoever reads the file reads
//! the traffic.

use std::ffi::{CStr, c_char};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::catch_unwind;
use std::sync::{PoisonError, RwLock};

use crate::ffi::SSL;

static FILE: RwLock<Option<File>> = RwLock::new(None);

/// Opens the file that the environment names, to add to it. One that cannot be opened is said so on the log.
pub(crate) fn open() {
    let Some(path) = std::env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty()) else {
        return;
    };
    match OpenOptions::new().append(true).create(true).mode(0o600).open(&path) {
        Ok(file) => *FILE.write().unwrap_or_else(PoisonError::into_inner) = Some(file),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "SSLKEYLOGFILE cannot be opened");
        }
    }
}

pub(crate) fn close() {
    *FILE.write().unwrap_or_else(PoisonError::into_inner) = None;
}

pub(crate) fn is_open() -> bool {
    FILE.read().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Called by OpenSSL with each secret.
pub(crate) unsafe extern "C" fn write(_ssl: *const SSL, line: *const c_char) {
    let _ = catch_unwind(|| {
        if line.is_null() {
            return;
        }
        // SAFETY: not null: a text that ends with a NUL and stays during the call,
        // SSL_CTX_set_keylog_callback(3).
        let line = unsafe { CStr::from_ptr(line) };
        if let Some(mut file) = FILE.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            // In one write: lines of other threads and processes must not come between.
            let _ = file.write_all(&[line.to_bytes(), b"\n"].concat());
        }
    });
}
