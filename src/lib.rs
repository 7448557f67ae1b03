//! Keeps worker threads clean of what tasks leave in OpenSSL's per-thread state.
//!
//! A [`Guard`] wraps one task on one worker thread. When it ends it looks at the error queue of
//! every libcrypto that the process has loaded, records what the task left, and clears it, so that
//! the next task on the thread starts with a clean queue.
//!
//! The crate loads no OpenSSL and links to none: it binds to what is there, and does nothing where
//! nothing is there.

pub mod edge;
pub mod hygiene;
pub mod libcrypto;
pub mod probe;
pub mod sys;

pub use hygiene::{Guard, Label, Policy, Release, Task, run};

/// The example of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
