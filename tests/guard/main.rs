//! The guard on real libraries, each test in a process of its own.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod checkpoints;
mod exit;
mod fork;
mod late_libraries;
mod nesting;
mod policies;
mod several_libraries;
mod thread_ends;
mod thread_states;
mod tokens;
