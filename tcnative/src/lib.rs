//! The native API of tomcat-native 2 (`org.apache.tomcat.jni`) over OpenSSL, for an unmodified Tomcat:
//! `libtcnative-2.so`. See `docs/dropin.md`.
//!
//! What Java holds are handles (`handle`), never pointers. Each native leaves the calling thread's error
//! queue empty (`queue`); what Java asks for by `getLastErrorNumber` is kept beside it.
// The FFI is this crate's own; nothing here is an interface for Rust programs.
#![allow(missing_docs)]

mod certificate;
mod conf;
mod connection;
mod context;
mod ffi;
mod handle;
#[macro_use]
mod java;
mod key_log;
mod life;
mod natives;
mod pool;
mod queue;
mod verify;
