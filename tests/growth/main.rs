//! What grows in a process and what does not, on real libraries: the memory accounting, the snapshot,
//! and the cases 21 to 27 of docs/cases.md.
//!
//! Each test runs its check in a process of its own for each line: memory functions are installed
//! once in a process, before anything else, and what is counted is the whole process.

mod common;

mod accounting;
mod snapshot;

mod case_21_states_of_short_threads;
mod case_22_threads_that_a_runtime_ends;
mod case_24_destructor_order;
mod case_25_left_after_exit;
mod case_26_objects_not_freed;
mod case_27_contexts_and_digests;
