//! What a process, this one or another, has of OpenSSL: libraries by line, and blind spots.

pub use crate::libcrypto::survey::{Found, Survey, survey};
pub use crate::libcrypto::{BlindReason, BlindSpot, Line};
pub use crate::sys::process::{Process, ProcessError};
