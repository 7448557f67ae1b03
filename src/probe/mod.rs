//! Reads queues, thread states, memory and locks, and says what they mean.
//!
//! A [`Probe`] takes the figures at its start, and each [`Snapshot`] it makes says what has grown since.
//! Looking changes nothing: it makes no thread state and touches no queue, so that any thread may look,
//! a monitor's above all. Where that is not possible, the snapshot leaves the figure out and says why.
//!
//! ```
//! let probe = sslsweep::probe::Probe::new();
//! let snapshot = probe.snapshot();
//! for finding in &snapshot.findings {
//!     println!("{finding}");
//! }
//! # let _ = (snapshot.to_json()?, snapshot.to_prometheus());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod after_exit;
mod findings;
mod growth;
mod json;
mod prometheus;
mod snapshot;
pub mod survey;

pub use after_exit::{LeftAfterExit, left_after_exit};
pub use findings::{
    BYTES_RISEN, Finding, Kind, LABELS_NAMED, LONG_CHAIN, Level, STATES_OF_NO_THREAD, STATES_RISEN,
};
pub use growth::{FileGrowth, Growth, LibraryGrowth};
pub use prometheus::{LEFTOVER_SERIES, TEXT_FORMAT};
pub use snapshot::{
    Blind, FILES_NAMED, KnownBy, LibraryFigures, Memory, OtherFiles, Probe, ProcessFigures, Queue,
    Refused, Snapshot, THREADS_NAMED, Table, ThreadQueue, ThreadStates,
};

pub use crate::libcrypto::{
    Census, Library, Line, ThreadState, libraries, locking as locks, memory,
};
