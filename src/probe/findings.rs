//! What a snapshot means, in sentences, each with the next step. docs/probe.md lists them with their
//! thresholds.

use std::fmt;

use serde::Serialize;

use super::snapshot::{Blind, KnownBy, LibraryFigures, Memory, Snapshot};
use crate::hygiene::{LabelFigures, Leftover};
use crate::libcrypto::{BlindReason, Line};

/// Live bytes that have risen by so much since the probe's start, beyond what thread states can explain,
/// are worth a word. Less is what a library makes on first use (up to 600 kB).
pub const BYTES_RISEN: i64 = 1 << 20;
/// So many thread states more than the process has threads are no coincidence: threads that are just
/// ending, and a count that is a moment old.
pub const STATES_OF_NO_THREAD: u64 = 16;
/// Thread states that have risen by so many since the probe's start, on lines that share them.
pub const STATES_RISEN: i64 = 64;
/// A chain of so many states costs each ERR call of its threads about half as much again.
pub const LONG_CHAIN: usize = 64;
/// Labels of tasks that are named, those with the most leftovers first.
pub const LABELS_NAMED: usize = 5;

/// Something that a snapshot shows and a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it is about.
    pub kind: Kind,
    /// Whether there is something to be done.
    pub level: Level,
    /// The library it is about, where it is about one.
    pub library: Option<String>,
    /// What was seen.
    pub text: String,
    /// What to do next.
    pub next_step: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text)?;
        if let Some(library) = &self.library {
            write!(f, " [{library}]")?;
        }
        write!(f, " Next: {}", self.next_step)
    }
}

/// Whether there is something to be done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing; it explains other figures.
    Note,
    /// Something.
    Warning,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Memory rises, and thread states are not the reason.
    NotThreadState,
    /// There are more thread states than threads.
    StatesOfEndedThreads,
    /// Thread states rise where they share one table.
    StatesRising,
    /// One bucket of the table holds many states.
    LongChain,
    /// Tasks of a label leave errors.
    DirtyTasks,
    /// Errors are in the queue when tasks begin.
    Arrivals,
    /// Threads have ended inside a guard.
    UnfinishedTasks,
    /// Tasks were entered from C or Java and never left.
    TasksNotLeft,
    /// The library clears the queue by itself.
    ClearsByItself,
    /// The queue is not read in memory.
    QueueNotRead,
    /// An OpenSSL is out of reach.
    BlindSpot,
    /// A libcrypto cannot be driven.
    Refused,
}

/// Bytes that one thread's state may have with all that hangs off it, after handshakes (docs/probe.md).
fn bytes_per_thread(line: Line) -> i64 {
    match line {
        Line::V1_0 | Line::LibreSsl => 700,
        Line::V1_1 => 3_500,
        Line::V3 | Line::V4 | Line::BoringSsl | Line::AwsLc | Line::Unknown => 12_500,
    }
}

/// All findings of a snapshot, the warnings first.
pub(super) fn find(snapshot: &Snapshot) -> Vec<Finding> {
    let mut found = Vec::new();
    for library in &snapshot.libraries {
        found.extend(not_thread_state(library));
        found.extend(states(library, snapshot.process.threads));
        found.extend(long_chain(library));
        found.extend(looked_at(library));
    }
    let dirty = snapshot.ledger.labels.iter().filter(|label| label.leftovers > 0);
    found.extend(dirty.take(LABELS_NAMED).map(dirty_tasks));
    let mut arrivals: Vec<_> =
        snapshot.ledger.labels.iter().filter(|label| label.arrivals > 0).collect();
    arrivals.sort_by_key(|label| std::cmp::Reverse(label.arrivals));
    found.extend(arrivals.into_iter().take(LABELS_NAMED).map(arrived));
    found.extend(unfinished(snapshot.ledger.unfinished));
    found.extend(not_left(snapshot.ledger.not_left));
    found.extend(snapshot.blind_spots.iter().map(blind_spot));
    found.extend(snapshot.refused.iter().map(|refused| Finding {
        kind: Kind::Refused,
        level: Level::Warning,
        library: Some(refused.path.clone()),
        text: format!("{}.", refused.why),
        next_step: "report the library's version; its queues are not swept".to_owned(),
    }));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    found
}

/// Live bytes rise and thread states do not explain it.
fn not_thread_state(library: &LibraryFigures) -> Option<Finding> {
    let growth = &library.growth;
    let (bytes, blocks) = (growth.live_bytes?, growth.live_blocks?);
    let states = growth.thread_states?;
    let explained = states.max(0).saturating_mul(bytes_per_thread(library.line));
    if bytes.saturating_sub(explained) < BYTES_RISEN {
        return None;
    }
    let (then, now) = (growth.states_then?, library.thread_states.alive?);
    let states = if states.unsigned_abs() <= 2.max(then / 10) {
        format!("thread states flat ({then} then, {now} now)")
    } else {
        format!(
            "and the thread states ({then} then, {now} now) account for {explained} bytes at most"
        )
    };
    let files: Vec<_> = growth
        .files
        .iter()
        .take(3)
        .map(|file| {
            format!("{} bytes more live in {} ({} blocks)", file.bytes, file.file, file.blocks)
        })
        .collect();
    let rate = growth.live_bytes_per_1000_tasks.map_or_else(String::new, |bytes| {
        let blocks = growth.live_blocks_per_1000_tasks.unwrap_or(0.0);
        format!(", that is {bytes:.0} bytes and {blocks:.0} blocks per 1,000 tasks")
    });
    Some(Finding {
        kind: Kind::NotThreadState,
        level: Level::Warning,
        library: Some(library.path.clone()),
        text: format!(
            "Not thread state: {}, {states}; {bytes} bytes in {blocks} blocks in all{rate}.",
            files.join(", ")
        ),
        next_step:
            "look for objects that are made there and not freed (SSL, SSL_CTX, BIO, EVP_* kept \
                    by a binding until its collector runs), and at the size of session caches; \
                    clearing queues and releasing thread states will not help"
                .to_owned(),
    })
}

fn states(library: &LibraryFigures, threads: Option<u64>) -> Option<Finding> {
    let states = &library.thread_states;
    if !matches!(states.known_by, KnownBy::Table | KnownBy::Accounting) {
        return None;
    }
    let alive = states.alive?;
    let bytes = states.bytes.unwrap_or(0);
    let shared = states.known_by == KnownBy::Table;
    let risen = library.growth.thread_states.unwrap_or(0);
    let rate = match library.growth.thread_states_per_1000_tasks {
        Some(rate) if risen > 0 => {
            format!("; {risen} more since the probe's start, {rate:.1} per 1,000 tasks")
        }
        _ if risen > 0 => format!("; {risen} more since the probe's start"),
        _ => String::new(),
    };
    let of_no_thread = threads.map_or(0, |threads| alive.saturating_sub(threads));
    if of_no_thread >= STATES_OF_NO_THREAD {
        let next_step = if shared {
            "let a guard wrap each task: on this line it releases the state with it; for threads that \
             run no task, release at their end (hygiene::park)"
        } else {
            "call hygiene::park() as the last thing that such threads do: the library's own clean-up \
             at thread exit does not reach them"
        };
        return Some(Finding {
            kind: Kind::StatesOfEndedThreads,
            level: Level::Warning,
            library: Some(library.path.clone()),
            text: format!(
                "{alive} thread states ({bytes} bytes) and {} threads: at least {of_no_thread} belong to \
                 threads that have ended{rate}.",
                threads.unwrap_or(0)
            ),
            next_step: next_step.to_owned(),
        });
    }
    (shared && risen >= STATES_RISEN).then(|| Finding {
        kind: Kind::StatesRising,
        level: Level::Warning,
        library: Some(library.path.clone()),
        text: format!(
            "{alive} thread states ({bytes} bytes) in the one table of this line{rate}; each lengthens \
             the way of all ERR calls, also that of a thread that is idle."
        ),
        next_step: "release with each task (the default of a guard on this line), or when a thread \
                    rests (hygiene::park)"
            .to_owned(),
    })
}

fn long_chain(library: &LibraryFigures) -> Option<Finding> {
    let table = library.thread_states.table.as_ref()?;
    let chain = table.longest_chain.filter(|chain| *chain >= LONG_CHAIN)?;
    let alive = library.thread_states.alive?;
    let buckets = table.buckets.unwrap_or(0);
    Some(Finding {
        kind: Kind::LongChain,
        level: Level::Warning,
        library: Some(library.path.clone()),
        text: format!(
            "{chain} of {alive} thread states share one of {buckets} buckets: each ERR call of their \
             threads walks up to {chain} states under a lock that all threads need."
        ),
        next_step:
            "release states (see above), and give the library thread ids that differ in their \
                    low bits: gettid(2) rather than an address"
                .to_owned(),
    })
}

fn looked_at(library: &LibraryFigures) -> Vec<Finding> {
    let mut found = Vec::new();
    let name = match library.line {
        Line::BoringSsl => Some("BoringSSL"),
        Line::AwsLc => Some("AWS-LC"),
        _ => None,
    };
    if let Some(name) = name {
        found.push(Finding {
            kind: Kind::ClearsByItself,
            level: Level::Note,
            library: Some(library.path.clone()),
            text: format!(
                "{name} empties the queue itself when a handshake, read or write begins: what tasks \
                 leave does no harm there, unless it is queued between the call and SSL_get_error."
            ),
            next_step: "none; a guard costs one look here".to_owned(),
        });
    }
    if let Some(reason) = &library.queue.reason {
        found.push(Finding {
            kind: Kind::QueueNotRead,
            level: Level::Note,
            library: Some(library.path.clone()),
            text: format!(
                "Queues are looked at through the public interface ({reason}): a guard can, a snapshot \
                 does not, because it would make a thread state."
            ),
            next_step: "none for the guards; report the version if OpenSSL says it is its own"
                .to_owned(),
        });
    }
    found
}

fn dirty_tasks(label: &LabelFigures) -> Finding {
    let at_least = if label.at_least { "at least " } else { "" };
    let text = format!(
        "Task `{}`: {} of {} left errors, {at_least}{} in all{}.",
        label.label,
        label.dirty_tasks,
        label.tasks,
        label.leftovers,
        label.entries.first().map_or_else(String::new, most)
    );
    let benign = label.entries.first().and_then(|entry| entry.benign);
    let next_step = match benign {
        Some(_) => {
            "keep the guard: it is no fault, and poisons the thread all the same; or clear after \
                    that loop"
        }
        None => {
            "keep the guard, which clears it, and take the errors out where they arise: after the \
                 call that failed, in the code of this task"
        }
    };
    Finding {
        kind: Kind::DirtyTasks,
        level: if benign.is_some() { Level::Note } else { Level::Warning },
        library: label.entries.first().map(|entry| entry.library.clone()),
        text,
        next_step: next_step.to_owned(),
    }
}

fn most(entry: &Leftover) -> String {
    let place = if entry.last.file.is_empty() {
        String::new()
    } else {
        format!(" at {}:{}", entry.last.file, entry.last.line)
    };
    let benign = entry.benign.map_or_else(String::new, |why| format!("; {why}"));
    format!(
        ", above all \"{}\" ({}), last on thread `{}`{place}{benign}",
        entry.reason, entry.leftovers, entry.last.thread
    )
}

fn arrived(label: &LabelFigures) -> Finding {
    let entry = label.entries.iter().max_by_key(|entry| entry.arrivals);
    let most = entry.map_or_else(String::new, |entry| {
        format!(", above all \"{}\" ({})", entry.reason, entry.arrivals)
    });
    Finding {
        kind: Kind::Arrivals,
        level: Level::Warning,
        library: entry.map(|entry| entry.library.clone()),
        text: format!(
            "{} errors were in the queue before tasks `{}` began{most}: left by code that has no guard.",
            label.arrivals, label.label
        ),
        next_step: "put a guard around whatever else runs on these threads: timers, start-up, \
                    callbacks of the pool"
            .to_owned(),
    }
}

fn unfinished(threads: u64) -> Option<Finding> {
    (threads > 0).then(|| Finding {
        kind: Kind::UnfinishedTasks,
        level: Level::Warning,
        library: None,
        text: format!(
            "{threads} threads ended inside a guarded task: what it left is not recorded."
        ),
        next_step:
            "end tasks before their threads: no exit from within, no guard that is forgotten"
                .to_owned(),
    })
}

fn not_left(tasks: u64) -> Option<Finding> {
    (tasks > 0).then(|| Finding {
        kind: Kind::TasksNotLeft,
        level: Level::Warning,
        library: None,
        text: format!(
            "{tasks} tasks were never left: they ended with the task around them, or with their thread."
        ),
        next_step: "look for guards that are not closed, and for paths that enter and do not exit".to_owned(),
    })
}

fn blind_spot(blind: &Blind) -> Finding {
    let (level, next_step) = match blind.reason {
        BlindReason::Hidden { tls: false } | BlindReason::Prefixed { tls: false, .. } => {
            (Level::Note, "none: it keeps its errors to itself")
        }
        BlindReason::Gone | BlindReason::Unreadable { .. } => {
            (Level::Note, "look at the file as root, or restart the process after an update")
        }
        _ => (
            Level::Warning,
            "link it against a shared libcrypto, or let whoever builds it clear its queues; until then \
             what it leaves stays on its threads",
        ),
    };
    Finding {
        kind: Kind::BlindSpot,
        level,
        library: None,
        text: format!("{}.", blind.text),
        next_step: next_step.to_owned(),
    }
}

impl Snapshot {
    /// Bytes that all libraries have whose memory is counted.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        let counted = self.libraries.iter().map(|library| match &library.memory {
            Memory::Counted { live_bytes, .. } => *live_bytes,
            Memory::NotCounted { .. } => 0,
        });
        counted.sum()
    }

    /// The findings of one kind.
    pub fn findings_of(&self, kind: Kind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::growth::{FileGrowth, LibraryGrowth};
    use super::super::snapshot::{Queue, Table, ThreadStates};
    use super::*;

    fn library(line: Line, known_by: KnownBy, alive: u64) -> LibraryFigures {
        LibraryFigures {
            path: "libcrypto.so".to_owned(),
            line,
            version: String::new(),
            needs: line.needs(),
            queue: Queue { source: "layout", reason: None, has_state: None, depth: None },
            thread_states: ThreadStates {
                known_by,
                alive: Some(alive),
                bytes: Some(600 * alive),
                note: None,
                table: None,
            },
            memory: Memory::NotCounted { why: String::new() },
            growth: LibraryGrowth::default(),
        }
    }

    fn grown(line: Line, states: (u64, u64), bytes: i64) -> LibraryFigures {
        let mut library = library(line, KnownBy::Accounting, states.1);
        library.growth.states_then = Some(states.0);
        library.growth.thread_states = Some(states.1 as i64 - states.0 as i64);
        library.growth.live_bytes = Some(bytes);
        library.growth.live_blocks = Some(7);
        let file = "ssl/record/ssl3_buffer.c".to_owned();
        library.growth.files = vec![FileGrowth { file, bytes, blocks: 7 }];
        library
    }

    #[test]
    fn memory_is_blamed_on_thread_states_as_far_as_they_explain_it() {
        let text = |library| not_thread_state(&library).map(|finding| finding.text);
        assert_eq!(text(grown(Line::V3, (10, 10), BYTES_RISEN - 1)), None);
        let flat = text(grown(Line::V3, (10, 12), 2 * BYTES_RISEN)).unwrap();
        assert!(flat.contains("ssl3_buffer.c (7 blocks)"), "{flat}");
        assert!(flat.contains("thread states flat (10 then, 12 now)"), "{flat}");
        // 1,000 threads more may well have 12 MB.
        assert_eq!(text(grown(Line::V3, (10, 1010), 12 * BYTES_RISEN)), None);
        // Those of 1.0.x have 700 kB.
        let rest = text(grown(Line::V1_0, (10, 1010), 12 * BYTES_RISEN)).unwrap();
        assert!(rest.contains("account for 700000 bytes at most"), "{rest}");
        // Where states are not known, nothing is said about them.
        let mut unknown = grown(Line::V3, (10, 10), 2 * BYTES_RISEN);
        unknown.growth.thread_states = None;
        assert_eq!(text(unknown), None);
    }

    #[test]
    fn states_of_ended_threads_are_those_that_no_thread_has() {
        let kind = |library: &LibraryFigures, threads| {
            states(library, threads).map(|finding| (finding.kind, finding.next_step))
        };
        let many = library(Line::V1_0, KnownBy::Table, 100);
        assert_eq!(kind(&many, Some(85)), None);
        assert_eq!(kind(&many, None), None);
        let found = kind(&many, Some(84)).unwrap();
        assert_eq!(found.0, Kind::StatesOfEndedThreads);
        assert!(found.1.contains("a guard"), "{}", found.1);
        let found = kind(&library(Line::V3, KnownBy::Accounting, 100), Some(4)).unwrap();
        assert!(found.1.contains("does not reach them"), "{}", found.1);
        let guarded = library(Line::V3, KnownBy::GuardedThreads, 100);
        assert_eq!(kind(&guarded, Some(4)), None, "a count of threads that were guarded");
        let mut rising = many;
        rising.growth.thread_states = Some(STATES_RISEN);
        assert_eq!(kind(&rising, Some(100)).unwrap().0, Kind::StatesRising);
    }

    #[test]
    fn a_chain_is_long_from_its_threshold_on() {
        let chain = |longest| {
            let mut library = library(Line::V1_0, KnownBy::Table, 100);
            library.thread_states.table = Some(Table {
                buckets: Some(16),
                longest_chain: Some(longest),
                queued: 0,
                dirty: 0,
                threads: Vec::new(),
                threads_left_out: 100,
            });
            long_chain(&library).map(|finding| finding.text)
        };
        assert_eq!(chain(LONG_CHAIN - 1), None);
        assert!(chain(LONG_CHAIN).unwrap().starts_with("64 of 100 thread states share one of 16"));
    }
}
