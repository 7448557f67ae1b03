//! The only door to libcrypto: finds every one that is loaded, binds it, and hides how versions differ.
//!
//! Never loads a library. What is bound is pinned for the life of the process. A library that cannot
//! be driven is kept on a list with the reason ([`refused`]). Callable from any thread, not from a
//! signal handler.

use std::path::PathBuf;

mod blind;
mod calibrate;
mod census;
mod entry;
pub mod inspect;
mod layout;
mod library;
mod line;
pub mod locking;
mod look;
pub mod memory;
mod reader;
mod registry;
pub mod survey;
mod symbols;

pub use blind::{BlindReason, BlindSpot, blind_spots};
pub use census::Census;
pub use entry::{Entry, Reason};
pub use library::{FULL, Library, Mark, QueueSource, ThreadState};
pub use line::Line;
pub use look::{Bound, Glance};
pub use registry::{MOST, bound, forked, libraries, look_again, refused, searches};

/// Why a libcrypto that is loaded cannot be driven.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// It exports ERR_clear_error but lacks a call that the guard needs. Report the version.
    #[error("{} does not export {symbol}: its error queue cannot be swept", library.display())]
    MissingSymbol {
        /// The library.
        library: PathBuf,
        /// The missing symbol.
        symbol: &'static str,
    },
    /// It has no call that tells its version.
    #[error("{} does not say its version: its thread states cannot be read safely", library.display())]
    NoVersion {
        /// The library.
        library: PathBuf,
    },
    /// The process has more libraries than a guard has room for.
    #[error("more than {MOST} libcryptos are loaded: this one and those after it are not swept")]
    TooMany,
}
