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
use object::read::elf::{
    Dyn, FileHeader, GnuHashTable, HashTable, ProgramHeader, SectionHeader, Sym,
};
use object::read::{ReadCache, ReadRef};

/// Longest name that is read; C++ names of a few thousand bytes exist.
const LONGEST_NAME: usize = 8192;

/// Bytes read at a time while searching.
const CHUNK: usize = 256 * 1024;

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
        "{}: not an ELF file; name the shared object itself (such as libssl.so.3), not an archive, \
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
    class: Class,
    machine: Machine,
    kind: Kind,
    soname: Option<String>,
    needed: Vec<String>,
    symbols: Vec<Symbol>,
    strings: Box<[u8]>,
    read_only: Vec<Range<u64>>,
}

#[derive(Debug, Clone, Copy)]
struct Symbol {
    name: u32,
    defined: bool,
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
        Ok(Self {
            path: path.to_owned(),
            file: data.into_inner(),
            class: parsed.class,
            machine: parsed.machine,
            kind: parsed.kind,
            soname: parsed.soname,
            needed: parsed.needed,
            symbols: parsed.symbols,
            strings: parsed.strings,
            read_only: parsed.read_only,
        })
    }

    /// Whether the running program could load this file as a library.
    ///
    /// # Errors
    /// [`ElfError::WrongClass`], [`ElfError::WrongMachine`] or [`ElfError::NotShared`].
    pub fn check_loadable(&self) -> Result<(), ElfError> {
        if self.class != Class::host() {
            return Err(ElfError::WrongClass {
                path: self.path.clone(),
                found: self.class,
                wanted: Class::host(),
            });
        }
        if let Some(wanted) = Machine::host()
            && self.machine != wanted
        {
            return Err(ElfError::WrongMachine {
                path: self.path.clone(),
                found: self.machine,
                wanted,
            });
        }
        if self.kind != Kind::Shared {
            return Err(ElfError::NotShared { path: self.path.clone(), found: self.kind });
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
        self.class
    }

    /// Processor.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Program, shared library or neither.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name other objects ask for it by (DT_SONAME).
    #[must_use]
    pub fn soname(&self) -> Option<&str> {
        self.soname.as_deref()
    }

    /// The libraries it was linked with (DT_NEEDED), in order.
    #[must_use]
    pub fn needed(&self) -> &[String] {
        &self.needed
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
        scan(&self.file, &self.read_only, overlap, visit).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                ElfError::Truncated { path: self.path.clone(), what: "read-only data" }
            }
            _ => ElfError::Read { path: self.path.clone(), source: error },
        })
    }

    fn names(&self, defined: bool) -> impl Iterator<Item = &[u8]> {
        self.symbols
            .iter()
            .filter(move |symbol| symbol.defined == defined)
            .filter_map(|symbol| text_at(&self.strings, symbol.name as usize))
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

/// What is wrong with a file, before its path is known.
enum Flaw {
    Truncated(&'static str),
    Malformed(&'static str),
}

impl Flaw {
    fn at(self, path: &Path) -> ElfError {
        let path = path.to_owned();
        match self {
            Self::Truncated(what) => ElfError::Truncated { path, what },
            Self::Malformed(what) => ElfError::Malformed { path, what },
        }
    }
}

struct Parsed {
    class: Class,
    machine: Machine,
    kind: Kind,
    soname: Option<String>,
    needed: Vec<String>,
    symbols: Vec<Symbol>,
    strings: Box<[u8]>,
    read_only: Vec<Range<u64>>,
}

/// A loadable segment: where it is in the file and where in memory.
struct Segment {
    file: Range<u64>,
    address: u64,
    writable: bool,
}

fn parse<H: FileHeader<Endian = Endianness>>(
    data: &ReadCache<File>,
    length: u64,
) -> Result<Parsed, Flaw> {
    if length < size_of::<H>() as u64 {
        return Err(Flaw::Truncated("the file header"));
    }
    let header = H::parse(data).map_err(|_| Flaw::Malformed("the file header"))?;
    let endian = header.endian().map_err(|_| Flaw::Malformed("the byte order"))?;
    let kind = match header.e_type(endian) {
        elf::ET_EXEC => Kind::Program,
        elf::ET_DYN => Kind::Shared,
        _ => Kind::Other,
    };
    let table = header.e_phoff(endian).into();
    let entries = u64::from(header.e_phnum(endian)) * size_of::<H::ProgramHeader>() as u64;
    if table.checked_add(entries).is_none_or(|end| end > length) {
        return Err(Flaw::Truncated("the table of segments"));
    }
    let headers = header
        .program_headers(endian, data)
        .map_err(|_| Flaw::Malformed("the table of segments"))?;

    let mut segments = Vec::new();
    let mut dynamic = None;
    for header in headers {
        let (offset, size) = header.file_range(endian);
        let range = offset..offset.checked_add(size).ok_or(Flaw::Malformed("a segment"))?;
        match header.p_type(endian) {
            elf::PT_LOAD if range.end > length => return Err(Flaw::Truncated("a segment")),
            elf::PT_LOAD => segments.push(Segment {
                file: range,
                address: header.p_vaddr(endian).into(),
                writable: header.p_flags(endian).0 & elf::PF_W.0 != 0,
            }),
            elf::PT_DYNAMIC if range.end > length => {
                return Err(Flaw::Truncated("the dynamic segment"));
            }
            elf::PT_DYNAMIC => dynamic = Some(range),
            _ => {}
        }
    }

    // The linker does not look at section headers; where they are damaged or gone, neither do we.
    let sections = header.section_headers(endian, data).unwrap_or_default();
    let mut parsed = Parsed {
        class: if header.is_class_64() { Class::Bits64 } else { Class::Bits32 },
        machine: Machine {
            number: header.e_machine(endian).0,
            little_endian: header.is_little_endian(),
        },
        kind,
        soname: None,
        needed: Vec::new(),
        symbols: Vec::new(),
        strings: Box::default(),
        read_only: read_only::<H>(endian, sections, &segments, length),
    };
    if let Some(range) = dynamic {
        read_dynamic::<H>(endian, data, &range, &segments, sections, &mut parsed)?;
    }
    Ok(parsed)
}

/// Where read-only data is: its sections, or the segments that are not writable.
fn read_only<H: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    sections: &[H::SectionHeader],
    segments: &[Segment],
    length: u64,
) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = sections
        .iter()
        .filter(|section| {
            let flags = section.sh_flags(endian).0;
            section.sh_type(endian) == elf::SHT_PROGBITS
                && flags & elf::SHF_ALLOC.0 != 0
                && flags & (elf::SHF_WRITE.0 | elf::SHF_EXECINSTR.0) == 0
        })
        .filter_map(|section| {
            let (offset, size) = section.file_range(endian)?;
            Some(offset..offset.checked_add(size)?)
        })
        .collect();
    if ranges.is_empty() {
        let constant = segments.iter().filter(|segment| !segment.writable);
        ranges.extend(constant.map(|segment| segment.file.clone()));
    }
    ranges.retain(|range| range.start < range.end && range.end <= length);
    // Headers that name the same bytes again and again must not make the search longer than the file.
    ranges.sort_unstable_by_key(|range| range.start);
    let mut end = 0;
    for range in &mut ranges {
        range.start = range.start.max(end).min(range.end);
        end = end.max(range.end);
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

fn read_dynamic<H: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    data: &ReadCache<File>,
    range: &Range<u64>,
    segments: &[Segment],
    sections: &[H::SectionHeader],
    parsed: &mut Parsed,
) -> Result<(), Flaw> {
    let count = usize::try_from((range.end - range.start) / size_of::<H::Dyn>() as u64)
        .map_err(|_| Flaw::Malformed("the dynamic segment"))?;
    let entries: &[H::Dyn] = data
        .read_slice_at(range.start, count)
        .map_err(|()| Flaw::Truncated("the dynamic segment"))?;

    let (mut needed, mut soname) = (Vec::new(), None);
    let (mut string_table, mut string_size, mut symbol_table) = (None, 0, None);
    let (mut hash, mut gnu_hash) = (None, None);
    for entry in entries {
        let value = entry.val(endian);
        match entry.tag(endian) {
            elf::DT_NULL => break,
            elf::DT_NEEDED => needed.push(value),
            elf::DT_SONAME => soname = Some(value),
            elf::DT_STRTAB => string_table = Some(value),
            elf::DT_STRSZ => string_size = value,
            elf::DT_SYMTAB => symbol_table = Some(value),
            elf::DT_HASH => hash = Some(value),
            elf::DT_GNU_HASH => gnu_hash = Some(value),
            _ => {}
        }
    }

    let Some(string_table) = string_table else { return Ok(()) };
    let strings = rest_of_segment(segments, string_table)
        .filter(|rest| rest.end - rest.start >= string_size)
        .ok_or(Flaw::Malformed("the table of names"))?;
    parsed.strings = data
        .read_bytes_at(strings.start, string_size)
        .map_err(|()| Flaw::Truncated("the table of names"))?
        .into();
    let text = |offset: u64| {
        let text = text_at(&parsed.strings, usize::try_from(offset).ok()?)?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    parsed.needed = needed.into_iter().filter_map(text).collect();
    parsed.soname = soname.and_then(text);

    let Some(symbols) = symbol_table.and_then(|address| rest_of_segment(segments, address)) else {
        return Ok(());
    };
    let room = (symbols.end - symbols.start) / size_of::<H::Sym>() as u64;
    let from_sections = || {
        let section = sections.iter().find(|section| {
            section.sh_type(endian) == elf::SHT_DYNSYM
                && section.sh_offset(endian).into() == symbols.start
        })?;
        Some(section.sh_size(endian).into() / size_of::<H::Sym>() as u64)
    };
    let from_gnu_hash = || {
        let rest = rest_of_segment(segments, gnu_hash?)?;
        let bytes = data.read_bytes_at(rest.start, rest.end - rest.start).ok()?;
        let table = GnuHashTable::<H>::parse(endian, bytes).ok()?;
        table.symbol_table_length(endian).map(u64::from)
    };
    let from_hash = || {
        let rest = rest_of_segment(segments, hash?)?;
        let bytes = data.read_bytes_at(rest.start, rest.end - rest.start).ok()?;
        Some(u64::from(HashTable::<H>::parse(endian, bytes).ok()?.symbol_table_length()))
    };
    // Linkers put the names right behind the symbols.
    let from_layout = || {
        let size = strings.start.checked_sub(symbols.start)?;
        Some(size / size_of::<H::Sym>() as u64)
    };
    let count = from_sections().or_else(from_hash).or_else(from_gnu_hash).or_else(from_layout);
    let count = usize::try_from(count.unwrap_or(0).min(room))
        .map_err(|_| Flaw::Malformed("the table of symbols"))?;
    let table: &[H::Sym] = data
        .read_slice_at(symbols.start, count)
        .map_err(|()| Flaw::Truncated("the table of symbols"))?;
    parsed.symbols = table
        .iter()
        .filter(|symbol| symbol.st_bind() != elf::STB_LOCAL)
        .map(|symbol| Symbol {
            name: symbol.st_name(endian),
            defined: symbol.st_shndx(endian) != elf::SHN_UNDEF,
        })
        .collect();
    Ok(())
}

/// The part of the file from `address` to the end of the segment that holds it.
fn rest_of_segment(segments: &[Segment], address: u64) -> Option<Range<u64>> {
    segments.iter().find_map(|segment| {
        let start = segment.file.start.checked_add(address.checked_sub(segment.address)?)?;
        (start < segment.file.end).then_some(start..segment.file.end)
    })
}

/// The NUL-terminated text at `offset`.
fn text_at(strings: &[u8], offset: usize) -> Option<&[u8]> {
    let rest = strings.get(offset..)?;
    let window = &rest[..rest.len().min(LONGEST_NAME)];
    let end = window.iter().position(|&byte| byte == 0)?;
    Some(&window[..end])
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
