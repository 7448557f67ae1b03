//! What an ELF file says about itself, without loading it.
//!
//! Reads what the dynamic linker reads: program headers and the dynamic segment. Section headers,
//! which a file may lack, are only a help. The symbols are those of `.dynsym`; a debugger's
//! `.symtab` is not looked at.
//!
//! Files are read in pieces and never mapped: a file that shrinks while it is read is an error here,
//! and would be a SIGBUS in a mapping. Nothing panics on malformed input, and nothing larger than the
//! file is allocated for it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::ReadCache;

mod error;
mod parse;

pub use error::ElfError;
use parse::{Flaw, Parsed, parse, text_at};

/// Bytes read at a time while searching.
const CHUNK: usize = 256 * 1024;

/// Word size of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// ELFCLASS32.
    Bits32,
    /// ELFCLASS64.
    Bits64,
}

impl Class {
    /// The class of the running program.
    #[must_use]
    pub const fn host() -> Self {
        if cfg!(target_pointer_width = "64") { Self::Bits64 } else { Self::Bits32 }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bits32 => "32-bit",
            Self::Bits64 => "64-bit",
        })
    }
}

/// Processor an ELF file is for (`e_machine`), with its byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    number: u16,
    little_endian: bool,
}

impl Machine {
    /// The processor of the running program; `None` where this module does not know its number.
    #[must_use]
    pub const fn host() -> Option<Self> {
        let number = if cfg!(target_arch = "x86_64") {
            elf::EM_X86_64
        } else if cfg!(target_arch = "aarch64") {
            elf::EM_AARCH64
        } else if cfg!(target_arch = "x86") {
            elf::EM_386
        } else if cfg!(target_arch = "arm") {
            elf::EM_ARM
        } else if cfg!(target_arch = "powerpc64") {
            elf::EM_PPC64
        } else if cfg!(target_arch = "s390x") {
            elf::EM_S390
        } else if cfg!(target_arch = "riscv64") {
            elf::EM_RISCV
        } else {
            return None;
        };
        Some(Self { number: number.0, little_endian: cfg!(target_endian = "little") })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match elf::Machine(self.number) {
            elf::EM_X86_64 => "x86-64",
            elf::EM_AARCH64 => "AArch64",
            elf::EM_386 => "x86",
            elf::EM_ARM => "ARM",
            elf::EM_PPC64 => "POWER",
            elf::EM_S390 => "S/390",
            elf::EM_RISCV => "RISC-V",
            _ => return write!(f, "machine number {}", self.number),
        };
        f.write_str(name)?;
        if self.little_endian { Ok(()) } else { f.write_str(" (big-endian)") }
    }
}

/// What kind of ELF file it is (`e_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program at a fixed address (ET_EXEC).
    Program,
    /// A shared library, or a position-independent program (ET_DYN).
    Shared,
    /// An object file, a core dump or something else that is not loaded.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "a program",
            Self::Shared => "a shared library",
            Self::Other => "an object file or a core dump",
        })
    }
}

/// An ELF file, its dynamic symbols read.
#[derive(Debug)]
pub struct Elf {
    path: PathBuf,
    file: File,
    parsed: Parsed,
}

impl Elf {
    /// Opens and reads the file at `path`.
    ///
    /// Files of any word size and machine are read; [`Elf::check_loadable`] tells whether this
    /// program could load it.
    ///
    /// # Errors
    /// [`ElfError`], each variant with what the caller can do.
    pub fn open(path: &Path) -> Result<Self, ElfError> {
        // O_NONBLOCK: a named pipe must be refused, not waited for.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| read_error(path, error))?;
        Self::read(path, file)
    }

    /// Reads an open file; `path` is what messages call it.
    ///
    /// # Errors
    /// As [`Elf::open`].
    pub fn read(path: &Path, file: File) -> Result<Self, ElfError> {
        let metadata = file.metadata().map_err(|error| read_error(path, error))?;
        if !metadata.is_file() {
            return Err(ElfError::NotAFile { path: path.to_owned() });
        }
        let mut start = [0; 16];
        let length = read_up_to(&file, &mut start, 0).map_err(|error| read_error(path, error))?;
        if length < 4 || start[..4] != elf::ELFMAG {
            return Err(ElfError::NotElf { path: path.to_owned() });
        }
        let data = ReadCache::new(file);
        let parsed = match elf::FileClass(start[4]) {
            elf::ELFCLASS32 => parse::<FileHeader32<Endianness>>(&data, metadata.len()),
            elf::ELFCLASS64 => parse::<FileHeader64<Endianness>>(&data, metadata.len()),
            _ if length < start.len() => Err(Flaw::Truncated("the file header")),
            _ => Err(Flaw::Malformed("the file header")),
        };
        let parsed = parsed.map_err(|flaw| flaw.at(path))?;
        Ok(Self { path: path.to_owned(), file: data.into_inner(), parsed })
    }

    /// Whether the running program could load this file as a library.
    ///
    /// # Errors
    /// [`ElfError::WrongClass`], [`ElfError::WrongMachine`] or [`ElfError::NotShared`].
    pub fn check_loadable(&self) -> Result<(), ElfError> {
        if self.parsed.class != Class::host() {
            return Err(ElfError::WrongClass {
                path: self.path.clone(),
                found: self.parsed.class,
                wanted: Class::host(),
            });
        }
        if let Some(wanted) = Machine::host()
            && self.parsed.machine != wanted
        {
            return Err(ElfError::WrongMachine {
                path: self.path.clone(),
                found: self.parsed.machine,
                wanted,
            });
        }
        if self.parsed.kind != Kind::Shared {
            return Err(ElfError::NotShared { path: self.path.clone(), found: self.parsed.kind });
        }
        Ok(())
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Word size.
    #[must_use]
    pub fn class(&self) -> Class {
        self.parsed.class
    }

    /// Processor.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.parsed.machine
    }

    /// Program, shared library or neither.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.parsed.kind
    }

    /// The name other objects ask for it by (DT_SONAME).
    #[must_use]
    pub fn soname(&self) -> Option<&str> {
        self.parsed.soname.as_deref()
    }

    /// The libraries it was linked with (DT_NEEDED), in order.
    #[must_use]
    pub fn needed(&self) -> &[String] {
        &self.parsed.needed
    }

    /// Names of the dynamic symbols that this file defines.
    pub fn defined(&self) -> impl Iterator<Item = &[u8]> {
        self.names(true)
    }

    /// Names of the dynamic symbols that this file wants from others.
    pub fn imported(&self) -> impl Iterator<Item = &[u8]> {
        self.names(false)
    }

    /// Whether this file defines the dynamic symbol `name`.
    #[must_use]
    pub fn defines(&self, name: &str) -> bool {
        self.defined().any(|defined| defined == name.as_bytes())
    }

    /// Shows the read-only data to `visit`, a piece at a time, until it returns false; see [`scan`].
    ///
    /// # Errors
    /// [`ElfError::Read`] when the operating system fails a read, [`ElfError::Truncated`] when the
    /// file has become shorter meanwhile.
    pub fn scan(
        &self,
        overlap: usize,
        visit: impl FnMut(Piece<'_>) -> bool,
    ) -> Result<(), ElfError> {
        scan(&self.file, &self.parsed.read_only, overlap, visit).map_err(|error| {
            match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    ElfError::Truncated { path: self.path.clone(), what: "read-only data" }
                }
                _ => ElfError::Read { path: self.path.clone(), source: error },
            }
        })
    }

    fn names(&self, defined: bool) -> impl Iterator<Item = &[u8]> {
        self.parsed
            .symbols
            .iter()
            .filter(move |symbol| symbol.defined == defined)
            .filter_map(|symbol| text_at(&self.parsed.strings, symbol.name as usize))
            .filter(|name| !name.is_empty())
    }
}

/// A piece of a file; see [`scan`].
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether a range of the file starts here: what precedes the bytes is not data.
    pub is_first: bool,
    /// Whether the range ends here.
    pub is_last: bool,
}

/// Shows ranges of a file to `visit`, a piece at a time, until it returns false.
///
/// Pieces overlap by `overlap` bytes within a range, so that what is no longer than that is seen
/// whole at least once (and perhaps twice).
///
/// # Errors
/// The operating system's, and `UnexpectedEof` where the file ends before a range does.
pub fn scan(
    file: &File,
    ranges: &[Range<u64>],
    overlap: usize,
    mut visit: impl FnMut(Piece<'_>) -> bool,
) -> io::Result<()> {
    let overlap = overlap.min(CHUNK / 2);
    let mut buffer = vec![0; CHUNK];
    for range in ranges {
        let mut start = range.start;
        while start < range.end {
            let length = usize::try_from(range.end - start).map_or(CHUNK, |rest| rest.min(CHUNK));
            let bytes = &mut buffer[..length];
            file.read_exact_at(bytes, start)?;
            let end = start + length as u64;
            let (is_first, is_last) = (start == range.start, end == range.end);
            if !visit(Piece { bytes, is_first, is_last }) {
                return Ok(());
            }
            start = if is_last { end } else { end - overlap as u64 };
        }
    }
    Ok(())
}

fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn read_error(path: &Path, source: io::Error) -> ElfError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ElfError::Missing { path },
        io::ErrorKind::PermissionDenied => ElfError::NoPermission { path },
        io::ErrorKind::IsADirectory => ElfError::NotAFile { path },
        _ if source.raw_os_error() == Some(libc::ENXIO) => ElfError::NotAFile { path },
        _ => ElfError::Read { path, source },
    }
}
