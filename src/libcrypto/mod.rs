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
pub use locking::HasLocks;
pub use look::{Bound, Glance, Only};
pub use registry::{Look, MOST, bound, libraries, look_again, look_in_passing, only, refused};

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
    /// OpenSSL 1.0.x that its application has given no locks: nobody but the application's only thread
    /// may touch it. It is bound once it has been given some (CRYPTO_set_locking_callback).
    #[error(
        "{} has been given no locks (CRYPTO_set_locking_callback): it cannot be used from two threads, nor looked at from another one",
        library.display()
    )]
    NoLocks {
        /// The library.
        library: PathBuf,
        /// Tells whether it has some now.
        locks: HasLocks,
    },
    /// The process has more libraries than a guard has room for.
    #[error("more than {MOST} libcryptos are loaded: this one and those after it are not swept")]
    TooMany,
}

impl BindError {
    /// Whether the reason is gone, so that binding is worth another try.
    fn is_mended(&self) -> bool {
        matches!(self, Self::NoLocks { locks, .. } if locks.now())
    }
}
