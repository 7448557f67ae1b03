//! One error of a queue, and what its code says.

use std::ffi::{CStr, c_ulong};

use super::Line;

/// An error in a thread's queue, borrowed from libcrypto for as long as it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The packed code, as ERR_peek_error(3) gives it.
    pub code: c_ulong,
    /// Source file of libcrypto that raised it.
    pub file: Option<&'a CStr>,
    /// Line in that file.
    pub line: u32,
    /// Function that raised it (3.0 and later).
    pub function: Option<&'a CStr>,
    /// Text that was attached to it.
    pub data: Option<&'a CStr>,
}

/// ERR_LIB_SYS.
const SYSTEM: u32 = 2;
/// ERR_LIB_PEM.
const PEM: u32 = 9;
/// PEM_R_NO_START_LINE; 108 means something else to BoringSSL and AWS-LC.
const NO_START_LINE: u32 = 108;
/// PEM_R_NO_START_LINE of BoringSSL and AWS-LC.
const NO_START_LINE_BORING: u32 = 110;

/// A code taken apart: which part of libcrypto raised it, and why. See ERR_GET_LIB(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reason {
    /// Number of the part (ERR_LIB_SSL is 20).
    pub library: u32,
    /// Number of the reason in that part; an errno where the part is ERR_LIB_SYS.
    pub reason: u32,
}

impl Reason {
    /// Takes `code` apart as releases of `line` pack it.
    #[must_use]
    pub fn of(code: c_ulong, line: Line) -> Self {
        let code = u32::try_from(code & 0xffff_ffff).unwrap_or(0);
        match line {
            Line::V3 | Line::V4 | Line::Unknown if code & 0x8000_0000 != 0 => {
                Self { library: SYSTEM, reason: code & 0x7fff_ffff }
            }
            Line::V3 | Line::V4 | Line::Unknown => {
                Self { library: (code >> 23) & 0xff, reason: code & 0x7f_ffff }
            }
            _ => Self { library: code >> 24, reason: code & 0xfff },
        }
    }

    /// Whether it is an error of the operating system.
    #[must_use]
    pub fn is_system(self) -> bool {
        self.library == SYSTEM
    }

    /// Why this leftover is no sign of a fault, where it is known to be none. It poisons the thread
    /// all the same.
    #[must_use]
    pub fn benign(self, line: Line) -> Option<&'static str> {
        let no_start_line = match line {
            Line::BoringSsl | Line::AwsLc => NO_START_LINE_BORING,
            _ => NO_START_LINE,
        };
        (self.library == PEM && self.reason == no_start_line)
            .then_some("a PEM file was read to its end: each such loop leaves this")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_taken_apart_as_each_line_packs_them() {
        let no_start_line = Reason { library: 9, reason: 108 };
        assert_eq!(Reason::of(0x0906_d06c, Line::V1_0), no_start_line);
        assert_eq!(Reason::of(0x0906_d06c, Line::V1_1), no_start_line);
        assert_eq!(Reason::of(0x0480_006c, Line::V3), no_start_line);
        assert!(no_start_line.benign(Line::V3).is_some());
        assert!(no_start_line.benign(Line::AwsLc).is_none(), "it is another fault there");
        assert_eq!(Reason::of(0x8000_0002, Line::V3), Reason { library: 2, reason: 2 });
        assert_eq!(Reason::of(0x0200_1002, Line::V1_0), Reason { library: 2, reason: 2 });
        assert!(Reason::of(0x8000_0002, Line::V4).is_system());
    }
}
