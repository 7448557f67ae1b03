//! Why an ELF file could not be read or used.

use std::io;
use std::path::PathBuf;

use super::{Class, Kind, Machine};

/// Why an ELF file could not be read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// There is nothing at the path.
    #[error("{}: no such file; check the path", path.display())]
    Missing {
        /// The path as given.
        path: PathBuf,
    },
    /// The file is there and this user may not read it.
    #[error("{}: no permission to read it; run as its owner or as root", path.display())]
    NoPermission {
        /// The path as given.
        path: PathBuf,
    },
    /// A directory, a pipe or a device.
    #[error("{}: not a regular file; name the shared object itself", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
    },
    /// The file does not start as an ELF file does.
    #[error(
        "{}: not an ELF file; name the shared object itself (libNAME.so.N), not an archive, \
         a linker script or a program of another system",
        path.display()
    )]
    NotElf {
        /// The path as given.
        path: PathBuf,
    },
    /// The file ends before what its headers promise.
    #[error(
        "{}: truncated, {what} lies behind the end of the file; copy or install it again",
        path.display()
    )]
    Truncated {
        /// The path as given.
        path: PathBuf,
        /// The part that is missing.
        what: &'static str,
    },
    /// The headers contradict themselves.
    #[error("{}: damaged, {what} cannot be read; copy or install it again", path.display())]
    Malformed {
        /// The path as given.
        path: PathBuf,
        /// The part that makes no sense.
        what: &'static str,
    },
    /// A file of the other word size.
    #[error(
        "{}: a {found} object, and this is a {wanted} program; name the {wanted} library",
        path.display()
    )]
    WrongClass {
        /// The path as given.
        path: PathBuf,
        /// The file's class.
        found: Class,
        /// The class that can be loaded here.
        wanted: Class,
    },
    /// A file for another processor.
    #[error("{}: built for {found}, and this machine is {wanted}; name a library built for it", path.display())]
    WrongMachine {
        /// The path as given.
        path: PathBuf,
        /// The file's machine.
        found: Machine,
        /// The machine this program runs on.
        wanted: Machine,
    },
    /// A program or an object file where a shared library is wanted.
    #[error("{}: {found}, not a shared library; name the .so file", path.display())]
    NotShared {
        /// The path as given.
        path: PathBuf,
        /// What the file is.
        found: Kind,
    },
    /// The operating system failed the read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The path as given.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}
