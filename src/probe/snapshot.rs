//! One look at a process.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;

use super::findings::{self, Finding};
use super::growth::{Growth, LibraryGrowth, Start};
use crate::hygiene::{self, Ledger};
use crate::libcrypto::memory::{self, Figures, FileFigures, SizeClass};
use crate::libcrypto::{
    self, BlindReason, BlindSpot, Census, Library, Line, QueueSource, ThreadState,
};
use crate::sys::process::Process;
use crate::sys::thread;

/// Source files that a snapshot names for each library; the rest is added up.
pub const FILES_NAMED: usize = 20;
/// Queues of threads that a snapshot lists for each library of 1.0.x, the fullest first.
pub const THREADS_NAMED: usize = 50;

/// Looks at the process it is in, again and again, and knows how things were at its start.
///
/// May be shared and used from any thread. In the child of a fork, make a new one.
#[derive(Debug)]
pub struct Probe {
    start: Mutex<Start>,
}

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}

impl Probe {
    /// Takes the figures that growth is measured from.
    ///
    /// Best after the server has warmed up: what a library makes on first use counts as growth
    /// otherwise. Searches for libraries if something was loaded since the last search.
    #[must_use]
    pub fn new() -> Self {
        let start = Start::new(&hygiene::ledger(), libcrypto::libraries());
        Self { start: Mutex::new(start) }
    }

    /// Looks at the process.
    ///
    /// Takes about 0.1 ms, the first time some tens of ms, since files of the process are read for
    /// blind spots. On 1.0.x the lock of the thread states is held for reading while they are counted.
    /// Allocates nothing in any libcrypto, makes no thread state and changes no queue. If something
    /// was loaded since the last look, a thread of its own searches it for libraries first.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let libraries = libcrypto::libraries();
        let ledger = hygiene::ledger();
        let guarded = ledger.ever().tasks > 0;
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let growth = start.growth(&ledger);
        let libraries = libraries
            .iter()
            .map(|library| {
                let reading = Reading::take(library, guarded);
                let growth = start.library_growth(library, &reading, growth.tasks);
                figures(library, reading, growth)
            })
            .collect();
        drop(start);
        let (blind_spots, blind_spots_unknown) = match libcrypto::blind_spots() {
            Ok(spots) => (spots.into_iter().map(Blind::from).collect(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let mut snapshot = Snapshot {
            time: SystemTime::now(),
            process: ProcessFigures::take(),
            libraries,
            blind_spots,
            blind_spots_unknown,
            refused: libcrypto::refused()
                .into_iter()
                .map(|(path, why)| Refused { path: path.display().to_string(), why })
                .collect(),
            growth,
            ledger,
            findings: Vec::new(),
        };
        snapshot.findings = findings::find(&snapshot);
        snapshot
    }
}

/// All that can be seen of a process at one moment. `schemas/snapshot.schema.json` describes its JSON.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// When it was taken.
    pub time: SystemTime,
    /// The process.
    pub process: ProcessFigures,
    /// Every libcrypto that is bound.
    pub libraries: Vec<LibraryFigures>,
    /// Every OpenSSL that is in the process and out of reach, and files that may hold one.
    pub blind_spots: Vec<Blind>,
    /// Why blind spots could not be looked for, where that is so.
    pub blind_spots_unknown: Option<String>,
    /// Every libcrypto that was found and cannot be driven.
    pub refused: Vec<Refused>,
    /// What the guards have done since the probe's start.
    pub growth: Growth,
    /// What tasks have left, since the process's start or the ledger's reset.
    pub ledger: Ledger,
    /// What all this means.
    pub findings: Vec<Finding>,
}

/// The process.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ProcessFigures {
    /// Its number.
    pub id: u32,
    /// File name of its program.
    pub name: String,
    /// Its threads, where the system tells.
    pub threads: Option<u64>,
}

impl ProcessFigures {
    fn take() -> Self {
        let program = Process::this().program().ok();
        let name = program.as_deref().and_then(|program| program.file_name());
        Self {
            id: std::process::id(),
            name: name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            threads: thread::count(),
        }
    }
}

/// One libcrypto.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LibraryFigures {
    /// The file it was loaded from, or the program it is part of.
    pub path: String,
    /// Its release line.
    pub line: Line,
    /// Its version text.
    pub version: String,
    /// What a server's threads need on this line.
    pub needs: &'static str,
    /// The error queue of the thread that looks, and how it was looked at.
    pub queue: Queue,
    /// Thread states of the process.
    pub thread_states: ThreadStates,
    /// Memory that it has.
    pub memory: Memory,
    /// What has changed since the probe first saw it.
    pub growth: LibraryGrowth,
}

/// The error queue of the thread that looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Queue {
    /// `layout`: read in memory. `public-api`: only by a call that makes a thread state, so that a
    /// snapshot leaves it out.
    pub source: &'static str,
    /// Why it is not read in memory, where it is not.
    pub reason: Option<String>,
    /// Whether the thread has a state.
    pub has_state: Option<bool>,
    /// Errors in its queue.
    pub depth: Option<usize>,
}

/// Thread states alive in the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ThreadStates {
    /// How they are known.
    pub known_by: KnownBy,
    /// How many there are.
    pub alive: Option<u64>,
    /// Bytes of their error queues, without what hangs off them.
    pub bytes: Option<u64>,
    /// What limits these figures.
    pub note: Option<String>,
    /// The table that they are in, on 1.0.x.
    pub table: Option<Table>,
}

/// How thread states are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum KnownBy {
    /// Counted in the table that all are in (1.0.x).
    Table,
    /// Counted as they are allocated and freed.
    Accounting,
    /// Only those of threads that have run a guarded task.
    GuardedThreads,
    /// Not known.
    Unknown,
}

/// The table of thread states of 1.0.x.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Table {
    /// Its buckets.
    pub buckets: Option<usize>,
    /// States in its fullest bucket, which an ERR call may have to walk under the lock.
    pub longest_chain: Option<usize>,
    /// Errors in all queues.
    pub queued: usize,
    /// Queues that are not empty.
    pub dirty: usize,
    /// Queues of threads, the fullest first.
    pub threads: Vec<ThreadQueue>,
    /// Threads that are not listed.
    pub threads_left_out: usize,
}

/// The queue of one thread, which may be a thread that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ThreadQueue {
    /// The thread's id as the application gives it to libcrypto.
    pub id: u64,
    /// Errors in its queue.
    pub depth: usize,
}

/// What a library has allocated and not given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "accounting", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Memory {
    /// It is counted from the library's first allocation on.
    Counted {
        /// Bytes.
        live_bytes: u64,
        /// Blocks.
        live_blocks: u64,
        /// Allocations since the start.
        allocations: u64,
        /// Blocks that could not be counted.
        untracked: u64,
        /// By source file, the most bytes first.
        files: Vec<FileFigures>,
        /// The files that are not listed.
        other_files: OtherFiles,
        /// Live blocks by size.
        sizes: Vec<SizeClass>,
    },
    /// It is not.
    NotCounted {
        /// Why not.
        why: String,
    },
}

/// Source files that have less than those listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OtherFiles {
    /// How many.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Their blocks.
    pub blocks: u64,
}

/// An OpenSSL that is out of reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Blind {
    /// The object it is part of.
    pub path: String,
    /// Its version text, where one was found.
    pub version: Option<String>,
    /// Its line, where the version tells it.
    pub line: Option<Line>,
    /// Why it is out of reach.
    #[serde(flatten)]
    pub reason: BlindReason,
    /// Whether there is one for sure.
    pub certain: bool,
    /// All this in a sentence.
    pub text: String,
}

impl From<BlindSpot> for Blind {
    fn from(spot: BlindSpot) -> Self {
        Self {
            certain: spot.is_certain(),
            text: spot.to_string(),
            path: spot.path.display().to_string(),
            version: spot.version,
            line: spot.line,
            reason: spot.reason,
        }
    }
}

/// A libcrypto that was found and cannot be driven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refused {
    /// Its file.
    pub path: String,
    /// Why.
    pub why: String,
}

/// Figures of one library before they are cut to what a snapshot names.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) states: ThreadStates,
    pub(super) memory: Result<Figures, String>,
}

impl Reading {
    pub(super) fn take(library: &'static Library, guarded: bool) -> Self {
        let memory = memory::figures(library).map_err(|why| why.to_string());
        Self { states: thread_states(library, memory.as_ref().ok(), guarded), memory }
    }
}

fn thread_states(
    library: &'static Library,
    memory: Option<&Figures>,
    guarded: bool,
) -> ThreadStates {
    if let Some(census) = library.census() {
        return ThreadStates {
            known_by: KnownBy::Table,
            alive: Some(census.alive as u64),
            bytes: Some(census.bytes as u64),
            note: None,
            table: Some(table(census)),
        };
    }
    if let Some(memory) = memory {
        return ThreadStates {
            known_by: KnownBy::Accounting,
            alive: Some(memory.states),
            bytes: Some(memory.state_bytes),
            note: None,
            table: None,
        };
    }
    if guarded {
        let alive = hygiene::guarded_states(library) as u64;
        let note = "only threads that have run a guarded task are counted";
        return ThreadStates {
            known_by: KnownBy::GuardedThreads,
            alive: Some(alive),
            bytes: library.state_size().map(|size| alive * size as u64),
            note: Some(note.to_owned()),
            table: None,
        };
    }
    let note = "this line keeps them apart for each thread, memory is not counted, and no thread has \
                run a guarded task";
    ThreadStates {
        known_by: KnownBy::Unknown,
        alive: None,
        bytes: None,
        note: Some(note.to_owned()),
        table: None,
    }
}

fn table(census: Census) -> Table {
    let mut threads: Vec<_> =
        census.threads.iter().map(|&(id, depth)| ThreadQueue { id, depth }).collect();
    threads.sort_unstable_by_key(|thread| (std::cmp::Reverse(thread.depth), thread.id));
    threads.truncate(THREADS_NAMED);
    Table {
        buckets: census.buckets,
        longest_chain: census.longest_chain,
        queued: census.queued,
        dirty: census.dirty,
        threads_left_out: census.alive.saturating_sub(threads.len()),
        threads,
    }
}

fn figures(library: &'static Library, reading: Reading, growth: LibraryGrowth) -> LibraryFigures {
    LibraryFigures {
        path: library.path().display().to_string(),
        line: library.line(),
        version: library.version().to_owned(),
        needs: library.line().needs(),
        queue: queue(library),
        thread_states: reading.states,
        memory: match reading.memory {
            Ok(figures) => counted(figures),
            Err(why) => Memory::NotCounted { why },
        },
        growth,
    }
}

fn queue(library: &'static Library) -> Queue {
    let state = library.state_in_memory();
    let (source, reason) = match library.queue_source() {
        QueueSource::Layout => ("layout", None),
        QueueSource::PublicApi(reason) => ("public-api", Some(reason.to_owned())),
    };
    Queue {
        source,
        reason,
        has_state: state.map(|state| state != ThreadState::Absent),
        depth: state.map(ThreadState::depth),
    }
}

fn counted(figures: Figures) -> Memory {
    let Figures { mut files, live_bytes, live_blocks, allocations, untracked, sizes, .. } = figures;
    let rest = files.split_off(files.len().min(FILES_NAMED));
    Memory::Counted {
        live_bytes,
        live_blocks,
        allocations,
        untracked,
        files,
        other_files: OtherFiles {
            files: rest.len(),
            bytes: rest.iter().map(|file| file.bytes).sum(),
            blocks: rest.iter().map(|file| file.blocks).sum(),
        },
        sizes,
    }
}
