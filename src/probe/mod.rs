//! Looks at a live process: error queues, thread states, memory, locks. Never changes what it measures.
#![forbid(unsafe_code)]

pub use crate::libcrypto::{Census, Library, Line, ThreadState, libraries, locking as locks};
pub mod survey;
