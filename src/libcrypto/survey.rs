//! Every libcrypto of a process, this one or another, told from the files that it has mapped.
//!
//! For people who look at a process from outside (`sslsweep libs PID`), and for the blind spots of this
//! one. Reads files and maps; loads nothing and calls nothing of what it finds. Never on the path of a
//! task: a large program takes tens of milliseconds to read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Line;
use super::blind::{BlindReason, BlindSpot};
use super::inspect::{self, Facts, Hidden};
use crate::sys::elf::{Elf, ElfError};
use crate::sys::process::{Mapped, OpenError, Process, ProcessError};

/// What a process has of OpenSSL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Survey {
    /// Its number.
    pub pid: u32,
    /// The program it runs.
    pub program: PathBuf,
    /// Every libcrypto that exports its calls, in the order of addresses.
    pub libraries: Vec<Found>,
    /// Every libcrypto that is out of reach, and what could not be read.
    pub blind_spots: Vec<BlindSpot>,
}

/// A libcrypto found in a process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// The file, as the process sees it.
    pub path: PathBuf,
    /// Whether the file was deleted or replaced on disk since.
    pub deleted: bool,
    /// Whether it is part of the program itself.
    pub is_program: bool,
    /// Its release line.
    pub line: Line,
    /// Its version text, where one was found.
    pub version: Option<String>,
    /// The mapped objects that use it: linked with it, or with the program that it is part of.
    pub used_by: Vec<PathBuf>,
}

/// Looks at a process.
///
/// # Errors
/// The process is gone, not ours, or has no memory; see [`ProcessError`].
pub fn survey(process: &Process) -> Result<Survey, ProcessError> {
    let program = process.program();
    let objects = process.objects()?;
    let mut inspector = Inspector::default();
    let looked_at: Vec<_> =
        objects.iter().map(|object| (object, inspector.look(process, object))).collect();

    let mut libraries = Vec::new();
    let mut blind_spots = Vec::new();
    for (object, finding) in &looked_at {
        match finding.as_ref() {
            Finding::File(file) if file.facts.provides => libraries.push(Found {
                path: object.path.clone(),
                deleted: object.deleted,
                is_program: object.is_program,
                line: file.facts.line.unwrap_or(Line::Unknown),
                version: file.facts.version_text.clone(),
                used_by: users(object, file, &looked_at),
            }),
            // Whether a file that is gone exports its calls cannot be seen in memory; one that has the
            // name of a libcrypto does.
            Finding::Memory(facts) if is_called_libcrypto(&object.path) => {
                libraries.push(Found {
                    path: object.path.clone(),
                    deleted: object.deleted,
                    is_program: object.is_program,
                    line: facts.line.unwrap_or(Line::Unknown),
                    version: facts.version_text.clone(),
                    used_by: Vec::new(),
                });
            }
            finding => blind_spots.extend(finding.blind_spot(object)),
        }
    }
    Ok(Survey { pid: process.pid(), program: program?, libraries, blind_spots })
}

/// What was found out about one mapped object.
#[derive(Debug)]
pub(super) enum Finding {
    /// Not an ELF file, or nothing of OpenSSL in memory.
    Nothing,
    /// Its file was read.
    File(File),
    /// Its file is gone; its memory has the marks of a libcrypto.
    Memory(Facts),
    /// Its file is gone, and so nothing is known.
    Gone,
    /// Its file could not be read.
    Unreadable { why: String },
}

/// What was read off a file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) facts: Facts,
    soname: Option<String>,
    needed: Vec<String>,
}

impl Finding {
    /// The blind spot that this object is, if it is one.
    pub(super) fn blind_spot(&self, object: &Mapped) -> Option<BlindSpot> {
        let facts = match self {
            Self::Nothing => return None,
            Self::File(file) => &file.facts,
            Self::Memory(facts) => facts,
            Self::Gone => return Some(BlindSpot::unknown(object.path.clone(), BlindReason::Gone)),
            Self::Unreadable { why } => {
                let reason = BlindReason::Unreadable { why: why.clone() };
                return Some(BlindSpot::unknown(object.path.clone(), reason));
            }
        };
        let tls = facts.tls;
        let reason = match facts.hidden.as_ref()? {
            Hidden::NotExported => BlindReason::Hidden { tls },
            Hidden::Prefixed { symbol } => BlindReason::Prefixed { symbol: symbol.clone(), tls },
        };
        Some(BlindSpot::new(object.path.clone(), facts, reason))
    }
}

/// Looks at mapped objects; what it has read once it knows.
#[derive(Debug, Default)]
pub(super) struct Inspector {
    known: HashMap<(PathBuf, u64), Arc<Finding>>,
}

impl Inspector {
    /// What there is to know about an object of a process.
    pub(super) fn look(&mut self, process: &Process, object: &Mapped) -> Arc<Finding> {
        let key = (object.path.clone(), object.inode);
        let known = self.known.entry(key);
        Arc::clone(known.or_insert_with(|| Arc::new(find_out(process, object))))
    }

    /// Forgets all that is not mapped any more.
    pub(super) fn keep_only(&mut self, objects: &[Mapped]) {
        self.known.retain(|(path, inode), _| {
            objects.iter().any(|object| object.inode == *inode && object.path == *path)
        });
    }
}

fn find_out(process: &Process, object: &Mapped) -> Finding {
    let file = match process.open(object) {
        Ok(file) => file,
        Err(OpenError::Gone) => return look_in_memory(process, object),
        Err(error) => return Finding::Unreadable { why: error.to_string() },
    };
    let read = Elf::read(&object.path, file).and_then(|elf| {
        let facts = inspect::inspect(&elf)?;
        let soname = elf.soname().map(str::to_owned);
        Ok(File { facts, soname, needed: elf.needed().to_vec() })
    });
    match read {
        Ok(file) => Finding::File(file),
        Err(ElfError::NotElf { .. } | ElfError::NotAFile { .. }) => Finding::Nothing,
        Err(error) => Finding::Unreadable { why: error.to_string() },
    }
}

fn look_in_memory(process: &Process, object: &Mapped) -> Finding {
    let looked =
        process.memory().and_then(|memory| inspect::inspect_memory(&memory, &object.constant()));
    match looked {
        Ok(Some(facts)) => Finding::Memory(facts),
        Ok(None) => Finding::Nothing,
        Err(_) => Finding::Gone,
    }
}

/// The objects that were linked with `library`, or that use the program it is part of.
fn users(library: &Mapped, file: &File, objects: &[(&Mapped, Arc<Finding>)]) -> Vec<PathBuf> {
    let name = file
        .soname
        .as_deref()
        .or_else(|| library.path.file_name().and_then(|name| name.to_str()))
        .unwrap_or_default();
    let sonames: Vec<_> =
        objects.iter().filter_map(|(_, finding)| finding.provided_name()).collect();
    let mut users: Vec<PathBuf> = objects
        .iter()
        .filter_map(|(object, finding)| {
            let Finding::File(user) = finding.as_ref() else { return None };
            let is_linked = user.needed.iter().any(|needed| needed == name);
            // Extensions are linked with nothing: they find the program's symbols.
            let uses_program = library.is_program
                && user.facts.imports
                && !user.needed.iter().any(|needed| sonames.contains(&needed.as_str()));
            (is_linked || uses_program).then(|| object.path.clone())
        })
        .filter(|path| *path != library.path)
        .collect();
    users.sort_unstable();
    users.dedup();
    users
}

impl Finding {
    /// The name that objects ask for this libcrypto by.
    fn provided_name(&self) -> Option<&str> {
        match self {
            Self::File(file) if file.facts.provides => file.soname.as_deref(),
            _ => None,
        }
    }
}

fn is_called_libcrypto(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcrypto"))
}
