//! The C interface of the shared object: what `include/sslsweep.h` declares.
//!
//! One macro owns the boundary (`export`): a panic never crosses it, and an error becomes the value
//! that the header promises. Tasks are entered and left by two calls, since C has no destructors; the
//! guards in between wait on a stack of the calling thread (`stack`).

#[macro_use]
mod export;
mod c;
mod stack;

pub use c::{sslsweep_enter, sslsweep_exit, sslsweep_snapshot_json, sslsweep_version};
use export::EdgeError;
