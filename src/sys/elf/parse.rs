//! Headers, the dynamic segment and the dynamic symbols of an ELF file.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use object::Endianness;
use object::elf;
use object::read::elf::{
    Dyn, FileHeader, GnuHashTable, HashTable, ProgramHeader, SectionHeader, Sym,
};
use object::read::{ReadCache, ReadRef};

use super::{Class, ElfError, Kind, Machine};

/// Longest name that is read; C++ names of a few thousand bytes exist.
const LONGEST_NAME: usize = 8192;

/// What is wrong with a file, before its path is known.
pub(super) enum Flaw {
    Truncated(&'static str),
    Malformed(&'static str),
}

impl Flaw {
    pub(super) fn at(self, path: &Path) -> ElfError {
        let path = path.to_owned();
        match self {
            Self::Truncated(what) => ElfError::Truncated { path, what },
            Self::Malformed(what) => ElfError::Malformed { path, what },
        }
    }
}

/// What the headers of a file say.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) class: Class,
    pub(super) machine: Machine,
    pub(super) kind: Kind,
    pub(super) soname: Option<String>,
    pub(super) needed: Vec<String>,
    pub(super) symbols: Vec<Symbol>,
    pub(super) strings: Box<[u8]>,
    pub(super) read_only: Vec<Range<u64>>,
}

/// A dynamic symbol: where its name is, and whether this file defines it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    pub(super) name: u32,
    pub(super) defined: bool,
}

/// A loadable segment: where it is in the file and where in memory.
struct Segment {
    file: Range<u64>,
    address: u64,
    writable: bool,
}

pub(super) fn parse<H: FileHeader<Endian = Endianness>>(
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
pub(super) fn text_at(strings: &[u8], offset: usize) -> Option<&[u8]> {
    let rest = strings.get(offset..)?;
    let window = &rest[..rest.len().min(LONGEST_NAME)];
    let end = window.iter().position(|&byte| byte == 0)?;
    Some(&window[..end])
}
