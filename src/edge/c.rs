//! The functions of `include/sslsweep.h`.

use std::ffi::{CStr, c_char, c_int};

use super::stack;
use crate::hygiene::{Label, Task};

/// Label of a task that was entered without one.
const UNNAMED: &str = "(unnamed)";

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

    /// The version of this library, a text that lives as long as the process.
    fn sslsweep_version() -> *const c_char {
        const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
        Ok(VERSION.as_ptr().cast())
    }
}

/// The label of a text from C.
fn interned(text: &CStr) -> Label {
    let bytes = text.to_bytes();
    // Characters have up to 4 bytes: cut with room, decode, then cut between characters.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_LABEL + 4)]);
    Label::intern(cut(&text))
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
}
