//! The functions of `include/sslsweep.h`.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::slice;
use std::sync::OnceLock;

use super::{EdgeError, java, stack};
use crate::hygiene::{Label, Task};
use crate::probe::{Probe, Snapshot};

/// Label of a task that was entered without one.
pub(super) const UNNAMED: &str = "(unnamed)";

/// So many bytes of a label are kept.
const LONGEST_LABEL: usize = 128;

c_export! {
    /// Enters a task on the calling thread. Returns 0, or a negative number of the header; the task must
    /// be left by one `sslsweep_exit` on the same thread whatever is returned.
    ///
    /// # Safety
    /// `label` is null or a NUL-terminated text. It is copied.
    fn sslsweep_enter(label: *const c_char) -> c_int {
        let label = if label.is_null() {
            None
        } else {
            // SAFETY: not null, so that the caller vouches for a NUL-terminated text, which nobody
            // changes during the call.
            Some(unsafe { CStr::from_ptr(label) })
        };
        stack::push(Task::new(label.map_or_else(|| Label::from(UNNAMED), interned)))?;
        Ok(0)
    }

    /// Leaves the task that the calling thread entered last, and sweeps. Returns 0, or a negative number of
    /// the header.
    fn sslsweep_exit() -> c_int {
        stack::pop()?;
        Ok(0)
    }

    /// Writes what the probe sees now into `buffer` as JSON, as snprintf(3) does: at most `size` bytes with
    /// the NUL, and returns the length of the whole text without it; 0 on an error.
    ///
    /// # Safety
    /// `buffer` is null, or has room for `size` bytes that nobody else uses during the call.
    fn sslsweep_snapshot_json(buffer: *mut c_char, size: usize) -> usize {
        let json = serde_json::to_string(&snapshot()).map_err(|_| EdgeError::Internal)?;
        if !buffer.is_null() {
            let room = size.min(json.len() + 1);
            // SAFETY: the caller vouches for `size` bytes, which are its own during the call. They
            // may not be initialised, and are only written to.
            let buffer = unsafe { slice::from_raw_parts_mut(buffer.cast::<MaybeUninit<u8>>(), room) };
            copy_cut(&json, buffer);
        }
        Ok(json.len())
    }

    /// The version of this library, a text that lives as long as the process.
    fn sslsweep_version() -> *const c_char {
        const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
        Ok(VERSION.as_ptr().cast())
    }

    /// 1 where this copy of the library has refused to serve a JVM, since another copy was there first;
    /// 0 otherwise.
    fn sslsweep_refused() -> c_int {
        Ok(java::is_refused().into())
    }
}

/// What there is, and what has grown since this process asked first.
pub(super) fn snapshot() -> Snapshot {
    static FIRST: OnceLock<(u32, Probe)> = OnceLock::new();
    let own = std::process::id();
    let (process, probe) = FIRST.get_or_init(|| (own, Probe::new()));
    // In the child of a fork the probe's lock may be held by a thread that is not there.
    if *process == own { probe.snapshot() } else { Probe::new().snapshot() }
}

/// The label of a text from C.
fn interned(text: &CStr) -> Label {
    let bytes = text.to_bytes();
    // Characters have up to 4 bytes: cut with room, decode, then cut between characters.
    label(&String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_LABEL + 4)]))
}

/// The label of a text, of which [`LONGEST_LABEL`] bytes are kept.
pub(super) fn label(text: &str) -> Label {
    Label::intern(cut(text))
}

/// Copies as much of `text` as fits, with a NUL behind it.
fn copy_cut(text: &str, buffer: &mut [MaybeUninit<u8>]) {
    let Some(room) = buffer.len().checked_sub(1) else { return };
    let bytes = text.bytes().take(room).chain([0]);
    for (place, byte) in buffer.iter_mut().zip(bytes) {
        place.write(byte);
    }
}

/// The beginning of a text, ended between characters where it is too long.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_LABEL);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_are_cut_between_characters() {
        let most = "x".repeat(LONGEST_LABEL - 1);
        assert_eq!(cut("read"), "read");
        assert_eq!(cut(&format!("{most}yz")), format!("{most}y"));
        assert_eq!(cut(&format!("{most}\u{e4}")), most);
    }

    #[test]
    fn what_does_not_fit_is_cut_and_ended() {
        for (size, expected) in [(0, ""), (1, "\0"), (3, "ab\0"), (4, "abc\0"), (9, "abc\0")] {
            let mut buffer = vec![MaybeUninit::new(b'?'); size];
            copy_cut("abc", &mut buffer);
            // SAFETY: all bytes were initialised above.
            let bytes: Vec<_> = buffer.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            assert!(bytes.starts_with(expected.as_bytes()), "{size}: {bytes:?}");
            assert!(bytes[expected.len()..].iter().all(|&byte| byte == b'?'), "{size}: {bytes:?}");
        }
    }
}
