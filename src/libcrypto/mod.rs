//! The only door to libcrypto: finds every one that is loaded, binds it, and hides how versions differ.

mod line;

pub use line::Line;
