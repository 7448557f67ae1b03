//! Every libcrypto of this process that cannot be swept, with the reason.
//!
//! A guard acts on what the registry has bound. An OpenSSL that is linked into another library and
//! keeps its symbols to itself has error queues too, and nobody but that library can reach them: it is
//! named, so that nobody believes it is swept.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

use serde::{Serialize, Serializer};

use super::inspect::Facts;
use super::survey::{Finding, Inspector};
use super::{Library, Line};
use crate::sys::process::{Mapped, Process, ProcessError};

/// A libcrypto that is in a process and out of reach, or a file that may be one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlindSpot {
    /// The object it is part of.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Its version text, where one was found.
    pub version: Option<String>,
    /// Its release line, where the version tells it.
    pub line: Option<Line>,
    /// Why it is out of reach.
    #[serde(flatten)]
    pub reason: BlindReason,
}

/// Why a libcrypto is out of reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BlindReason {
    /// It is linked in and exports none of its calls.
    Hidden {
        /// Whether a libssl is beside it: otherwise no connection depends on its error queues.
        tls: bool,
    },
    /// It exports its calls under other names.
    Prefixed {
        /// The name of its ERR_clear_error.
        symbol: String,
        /// As above.
        tls: bool,
    },
    /// It exports ERR_clear_error, and the registry could not bind it.
    NotBound {
        /// The registry's reason.
        why: String,
    },
    /// The file was deleted after it was loaded: what it holds cannot be told.
    Gone,
    /// The file cannot be read: what it holds cannot be told.
    Unreadable {
        /// The reason.
        why: String,
    },
}

/// A path for JSON, which has no room for what is not UTF-8.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl BlindSpot {
    pub(super) fn new(path: PathBuf, facts: &Facts, reason: BlindReason) -> Self {
        Self { path, version: facts.version_text.clone(), line: facts.line, reason }
    }

    pub(super) fn unknown(path: PathBuf, reason: BlindReason) -> Self {
        Self { path, version: None, line: None, reason }
    }

    /// Whether a libcrypto was seen; otherwise the object could only not be looked at.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        !matches!(self.reason, BlindReason::Gone | BlindReason::Unreadable { .. })
    }
}

impl fmt::Display for BlindSpot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("an OpenSSL of unknown version");
        write!(f, "{}: ", self.path.display())?;
        match &self.reason {
            BlindReason::Hidden { tls } => write!(
                f,
                "{version} is linked in and keeps its symbols to itself: its error queues cannot be \
                 swept{}",
                consequence(*tls)
            ),
            BlindReason::Prefixed { symbol, tls } => write!(
                f,
                "{version} is linked in under other names ({symbol}): its error queues cannot be swept{}",
                consequence(*tls)
            ),
            BlindReason::NotBound { why } => write!(f, "{version} is not swept: {why}"),
            BlindReason::Gone => f.write_str(
                "the file was deleted or replaced after it was loaded, and whether it has an OpenSSL \
                 inside cannot be told; root can still read it",
            ),
            BlindReason::Unreadable { why } => {
                write!(f, "whether it has an OpenSSL inside cannot be told: {why}")
            }
        }
    }
}

/// What it means that a libcrypto is out of reach.
fn consequence(tls: bool) -> &'static str {
    if tls { "" } else { ". It has no TLS, and no connection depends on them" }
}

/// The blind spots of this process now.
///
/// Reads each mapped file once and remembers what it found: tens of milliseconds the first time, for a
/// process with a large program. Never on the path of a task.
///
/// # Errors
/// The process cannot look at its own maps (no /proc).
pub fn blind_spots() -> Result<Vec<BlindSpot>, ProcessError> {
    static KNOWN: Mutex<Option<Inspector>> = Mutex::new(None);

    let process = Process::this();
    let bound = super::libraries();
    let objects = process.objects()?;
    // Whoever has it may be reading files, or not exist in this child of a fork: then nothing is
    // remembered.
    let mut known = match KNOWN.try_lock() {
        Ok(known) => Some(known),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    let mut own = None;
    let inspector = known.as_deref_mut().unwrap_or(&mut own).get_or_insert_default();
    inspector.keep_only(&objects);
    let spots = objects
        .iter()
        .filter(|object| !bound.iter().any(|library| is_part_of(object, library)))
        .filter_map(|object| {
            let finding = inspector.look(&process, object);
            match finding.as_ref() {
                Finding::File(file) if file.facts.provides => Some(BlindSpot::new(
                    object.path.clone(),
                    &file.facts,
                    BlindReason::NotBound { why: why_not_bound(&object.path) },
                )),
                finding => finding.blind_spot(object),
            }
        })
        .collect();
    Ok(spots)
}

fn is_part_of(object: &Mapped, library: &Library) -> bool {
    let mut mappings = object.mappings.iter();
    mappings
        .any(|mapping| usize::try_from(mapping.range.start).is_ok_and(|at| library.contains(at)))
}

fn why_not_bound(path: &Path) -> String {
    super::refused().into_iter().find(|(refused, _)| refused == path).map_or_else(
        || {
            "it was mapped without the dynamic linker's knowledge, or into a linker namespace of its own"
                .to_owned()
        },
        |(_, why)| why,
    )
}
