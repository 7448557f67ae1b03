//! The C interface of the shared object.
