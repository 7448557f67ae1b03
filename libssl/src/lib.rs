//! A libssl that is chosen at run time, from OpenSSL 1.0.2 to 4.0, with its libcrypto.
//!
//! For programs that choose their library: the server under test (`sslsweep serve`) and the tests.
//! The shim itself needs no libssl and uses nothing of this crate.
