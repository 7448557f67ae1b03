//! Release lines: libraries that keep their per-thread state in the same way.

use std::fmt;

use serde::Serialize;

/// A release line of libcrypto.
///
/// Told apart by the version text (OpenSSL_version(3)), never by which symbols are exported:
/// BoringSSL and AWS-LC report the version number of OpenSSL 1.1.1, and OpenSSL 1.1.0 to 3.6 export
/// the release calls of 1.0.x, which do nothing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub enum Line {
    /// OpenSSL 1.0.0 to 1.0.2: all thread states in one table behind one lock.
    #[serde(rename = "1.0.x")]
    V1_0,
    /// OpenSSL 1.1.0 and 1.1.1: thread-local storage.
    #[serde(rename = "1.1.x")]
    V1_1,
    /// OpenSSL 3.x.
    #[serde(rename = "3.x")]
    V3,
    /// OpenSSL 4.x.
    #[serde(rename = "4.x")]
    V4,
    /// LibreSSL.
    #[serde(rename = "LibreSSL")]
    LibreSsl,
    /// BoringSSL.
    #[serde(rename = "BoringSSL")]
    BoringSsl,
    /// AWS-LC.
    #[serde(rename = "AWS-LC")]
    AwsLc,
    /// A version text that is none of these.
    #[serde(rename = "unknown")]
    Unknown,
}

impl Line {
    /// Reads the line off a version text such as `OpenSSL 3.0.19 27 Jan 2026`.
    #[must_use]
    pub fn from_version_text(text: &str) -> Self {
        let Some((name, rest)) = text.trim_start().split_once([' ', '\0']) else {
            return if text.trim() == "BoringSSL" { Self::BoringSsl } else { Self::Unknown };
        };
        match name {
            "AWS-LC" => Self::AwsLc,
            "BoringSSL" => Self::BoringSsl,
            "LibreSSL" => Self::LibreSsl,
            "OpenSSL" if rest.starts_with("1.0.") => Self::V1_0,
            "OpenSSL" if rest.starts_with("1.1.") => Self::V1_1,
            "OpenSSL" if rest.starts_with("3.") => Self::V3,
            "OpenSSL" if rest.starts_with("4.") => Self::V4,
            _ => Self::Unknown,
        }
    }

    /// What a server's threads need on this line, in a sentence.
    #[must_use]
    pub fn needs(self) -> &'static str {
        match self {
            Self::V1_0 => {
                "sweep after each task, and release the thread state with it: all states share one table"
            }
            Self::LibreSsl => {
                "sweep after each task; old releases (2.x) need the release of 1.0.x too"
            }
            Self::V1_1 | Self::V3 => {
                "sweep after each task; never release per task, thread exit does it"
            }
            Self::V4 => {
                "sweep after each task (fatal paths are still misread); never release per task"
            }
            Self::BoringSsl | Self::AwsLc => {
                "little: I/O calls clear the queue themselves; sweep what is left between tasks"
            }
            Self::Unknown => "unknown: it is watched through the public interface only",
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_0 => "1.0.x",
            Self::V1_1 => "1.1.x",
            Self::V3 => "3.x",
            Self::V4 => "4.x",
            Self::LibreSsl => "LibreSSL",
            Self::BoringSsl => "BoringSSL",
            Self::AwsLc => "AWS-LC",
            Self::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_off_the_version_text() {
        for (text, line) in [
            ("OpenSSL 1.0.2o  27 Mar 2018", Line::V1_0),
            ("OpenSSL 1.1.1g  21 Apr 2020", Line::V1_1),
            ("OpenSSL 3.0.19 27 Jan 2026", Line::V3),
            ("OpenSSL 4.0.3 9 Jun 2026", Line::V4),
            ("LibreSSL 2.1.6", Line::LibreSsl),
            ("BoringSSL", Line::BoringSsl),
            ("AWS-LC 1.61.0", Line::AwsLc),
            ("OpenSSL 5.0.0", Line::Unknown),
            ("OpenSSL 10.0.1", Line::Unknown),
            ("", Line::Unknown),
        ] {
            assert_eq!(Line::from_version_text(text), line, "{text:?}");
        }
    }
}
