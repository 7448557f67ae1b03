//! Errors taken out of the queue, and put in again.

use std::ffi::{CStr, CString, c_int, c_ulong};
use std::ptr;

use crate::ffi;

/// One error, with all that OpenSSL keeps of it.
pub(super) struct Entry {
    code: c_ulong,
    file: CString,
    line: c_int,
    function: CString,
    data: Option<CString>,
}

impl Entry {
    /// The oldest error of the queue, which is taken out.
    fn pop() -> Option<Self> {
        let (mut file, mut function, mut data) = (ptr::null(), ptr::null(), ptr::null());
        let (mut line, mut flags) = (0, 0);
        // SAFETY: the places are ours and writable; ERR_get_error_all(3).
        let code = unsafe {
            ffi::ERR_get_error_all(&mut file, &mut line, &mut function, &mut data, &mut flags)
        };
        if code == 0 {
            return None;
        }
        let has_data = flags & ffi::ERR_TXT_STRING != 0;
        Some(Self {
            code,
            file: copied(file).unwrap_or_default(),
            line,
            function: copied(function).unwrap_or_default(),
            data: if has_data { copied(data) } else { None },
        })
    }

    fn push(&self) {
        let (library, reason) = if self.code & ffi::SYSTEM_ERROR != 0 {
            (ffi::ERR_LIB_SYS, self.code & !ffi::SYSTEM_ERROR)
        } else {
            ((self.code >> 23 & 0xff) as c_int, self.code & 0x7f_ffff)
        };
        // SAFETY: takes nothing; ERR_new(3).
        unsafe { ffi::ERR_new() };
        // SAFETY: both texts end with a NUL, and OpenSSL copies them.
        unsafe { ffi::ERR_set_debug(self.file.as_ptr(), self.line, self.function.as_ptr()) };
        match &self.data {
            // SAFETY: the format takes one text, which ends with a NUL; it is copied.
            Some(data) => unsafe {
                ffi::ERR_set_error(library, reason as c_int, c"%s".as_ptr(), data.as_ptr());
            },
            // SAFETY: without a format nothing else is read.
            None => unsafe { ffi::ERR_set_error(library, reason as c_int, ptr::null()) },
        }
    }
}

fn copied(text: *const std::ffi::c_char) -> Option<CString> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, so a text of OpenSSL's that ends with a NUL and stays until the next error.
    Some(unsafe { CStr::from_ptr(text) }.to_owned())
}

/// Empties the queue, the oldest error first.
pub(super) fn take() -> Vec<Entry> {
    std::iter::from_fn(Entry::pop).collect()
}

pub(super) fn put(entries: &[Entry]) {
    entries.iter().for_each(Entry::push);
}
