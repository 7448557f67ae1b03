//! What crosses into other languages: the C interface that `include/sslsweep.h` declares, and the natives of
//! `org.sslsweep` in Java.
//!
//! One file owns the boundary (`export`): a panic never crosses it, and an error becomes the value
//! that the header or `Natives.java` promises. Tasks are entered and left by two calls, since C has no
//! destructors and Java's are late; the guards in between wait on a stack of the calling thread (`stack`).

#[macro_use]
mod export;
mod c;
mod java;
mod stack;

pub use c::{
    sslsweep_enter, sslsweep_exit, sslsweep_refused, sslsweep_snapshot_json, sslsweep_version,
};
use export::EdgeError;
