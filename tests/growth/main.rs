//! What grows in a process and what does not, on real libraries: the memory accounting, the snapshot,
//! and the cases 21 to 27 of docs/cases.md.
//!
//! Each test runs its check in a process of its own for each line: memory functions are installed
//! once in a process, before anything else, and what is counted is the whole process.

mod common;

mod accounting;
mod snapshot;
