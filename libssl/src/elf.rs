//! Looks at a library's file before the dynamic linker does, so that the message says what is wrong.
//!
//! dlopen(3) maps a truncated file and lets the process die of SIGBUS, and says "cannot open shared
//! object file" for most of the rest.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};

use crate::load::LoadError;

#[cfg(target_arch = "x86_64")]
const MACHINE: elf::Machine = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: elf::Machine = elf::EM_AARCH64;

/// Checks that `path` is a whole shared object for this machine; the names it needs (DT_NEEDED).
pub(crate) fn check(path: &Path) -> Result<Vec<String>, LoadError> {
    let data = read(path)?;
    let owned = || path.to_path_buf();
    let broken = |reason: String| LoadError::Truncated { path: owned(), reason };

    let header = FileHeader64::<LittleEndian>::parse(&*data).map_err(|e| broken(e.to_string()))?;
    let endian = LittleEndian;
    if header.e_machine(endian) != MACHINE {
        let found = header.e_machine(endian).0;
        return Err(LoadError::WrongMachine { path: owned(), found, expected: MACHINE.0 });
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(LoadError::NotShared { path: owned() });
    }
    let length = data.len() as u64;
    let segments = header.program_headers(endian, &*data).map_err(|e| broken(e.to_string()))?;
    for segment in segments {
        let end = segment.p_offset(endian).saturating_add(segment.p_filesz(endian));
        if segment.p_type(endian) == elf::PT_LOAD && end > length {
            return Err(broken(format!("it should have at least {end} bytes and has {length}")));
        }
    }
    let file = ElfFile64::<LittleEndian>::parse(&*data).map_err(|e| broken(e.to_string()))?;
    let table = file.elf_dynamic_table().map_err(|e| broken(e.to_string()))?;
    let needed = table.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
    needed
        .map(|entry| {
            let name = table.string(entry).map_err(|e| broken(e.to_string()))?;
            Ok(String::from_utf8_lossy(name).into_owned())
        })
        .collect()
}

/// Reads the whole file, unless its first bytes show that it is something else.
fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let owned = || path.to_path_buf();
    let unreadable = |source| LoadError::Unreadable { path: owned(), source };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(LoadError::Missing { path: owned(), near: similar(path) });
        }
        Err(error) => return Err(unreadable(error)),
    };
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(LoadError::NotAFile { path: owned() });
    }
    let mut data = Vec::new();
    (&mut file).take(64).read_to_end(&mut data).map_err(unreadable)?;
    if data.get(..4) != Some(&elf::ELFMAG[..]) {
        return Err(LoadError::NotElf { path: owned() });
    }
    match data.get(4) {
        Some(&class) if class == elf::ELFCLASS64.0 => {}
        Some(&class) if class == elf::ELFCLASS32.0 => {
            return Err(LoadError::WrongClass { path: owned() });
        }
        _ => {
            let reason = "its header is not complete".to_owned();
            return Err(LoadError::Truncated { path: owned(), reason });
        }
    }
    file.read_to_end(&mut data).map_err(unreadable)?;
    Ok(data)
}

/// What lies in the folder and looks like what was asked for: `libssl.so` is often there only with
/// a version number.
fn similar(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?.split(['.', '-']).next()?.to_owned();
    let folder = path.parent()?;
    let entries = std::fs::read_dir(folder).ok()?;
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains(".so") && name.split(['.', '-']).next() == Some(&wanted))
        .collect();
    names.sort_unstable();
    names.first().map(|name| folder.join(name))
}
