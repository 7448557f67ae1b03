//! The process as the dynamic linker and the C library see it. No OpenSSL words here.

pub mod dl;
pub mod objects;
