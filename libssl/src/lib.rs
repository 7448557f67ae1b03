//! A libssl that is chosen at run time, from OpenSSL 1.0.2 to 4.0, with its libcrypto.
//!
//! For programs that choose their library: the server under test (`sslsweep serve`) and the tests.
//! The shim itself needs no libssl and uses nothing of this crate.
//!
//! [`Tls::load`] loads a pair of libraries; several pairs can be loaded in one process. A
//! [`Context`] holds a certificate and settings, a [`Connection`] is one TLS connection over a
//! socket or in memory. Every call into the library is one method, and asking for the class of a
//! result ([`Connection::classify`], which looks at the thread's error queue) is a call of its own:
//! this crate never looks at the queue, and never clears it, unless it says so.
//!
//! What is left out: whatever a server under test does not need (ALPN, OCSP, client certificates).

mod connection;
mod context;
mod elf;
pub mod exercise;
pub mod faults;
pub mod idle;
mod lines;
mod load;
mod memory;
mod pem;
mod session;
mod symbols;

pub use connection::{Connection, ConnectionError, Outcome, Returned};
pub use context::{Context, ContextBuilder, ContextError, Protocol, VerifyCallback};
pub use lines::{HiddenFile, LineFiles, LinesError, hidden, lines};
pub use load::{LoadError, Tls};
pub use memory::{Memory, Pair, Wire};
pub use session::Session;
