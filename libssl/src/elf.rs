//! Looks at a library's file before the dynamic linker does, so that the message says what is wrong.
//!
//! dlopen(3) maps a truncated file and lets the process die of SIGBUS, and says "cannot open shared
//! object file" for most of the rest.

use std::path::{Path, PathBuf};

use sslsweep::sys::elf::{Elf, ElfError};

use crate::load::LoadError;

/// Checks that `path` is a whole shared object for this machine; the names it needs (DT_NEEDED).
pub(crate) fn check(path: &Path) -> Result<Vec<String>, LoadError> {
    let elf = Elf::open(path)?;
    elf.check_loadable()?;
    Ok(elf.needed().to_vec())
}

impl From<ElfError> for LoadError {
    fn from(error: ElfError) -> Self {
        match error {
            ElfError::Missing { path } => Self::Missing { near: similar(&path), path },
            ElfError::NotAFile { path } => Self::NotAFile { path },
            ElfError::NotElf { path } => Self::NotElf { path },
            ElfError::Truncated { path, what } => {
                Self::Truncated { path, reason: format!("{what} lies behind its end") }
            }
            ElfError::Malformed { path, what } => {
                Self::Truncated { path, reason: format!("{what} cannot be read") }
            }
            ElfError::WrongClass { path, found, wanted } => {
                Self::WrongClass { path, found, wanted }
            }
            ElfError::WrongMachine { path, found, wanted } => {
                Self::WrongMachine { path, found, wanted }
            }
            ElfError::NotShared { path, found } => Self::NotShared { path, found },
            ElfError::Read { path, source } => Self::Unreadable { path, source },
            ElfError::NoPermission { path } => {
                Self::Unreadable { path, source: std::io::ErrorKind::PermissionDenied.into() }
            }
            // ElfError may come to say more.
            error => Self::Elf(error),
        }
    }
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
