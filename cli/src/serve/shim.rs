//! What the server takes from the shim's libraries.

pub use sslsweep::libcrypto::{Library, Line, ThreadState};
