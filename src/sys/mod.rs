//! The process as the dynamic linker and the C library see it. No OpenSSL words here.

pub mod dl;
pub mod elf;
pub mod exit;
pub mod fork;
pub mod heap;
pub mod memory;
pub mod mutex;
pub mod objects;
pub mod pin;
pub mod process;
pub mod thread;
pub mod walk;
