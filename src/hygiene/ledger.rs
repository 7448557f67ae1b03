//! The ledger of leftovers: who left which error, how often, and when last.
//!
//! Clean tasks only count in their thread's counters. A dirty task takes the ledger's lock. Memory is
//! bounded: after [`MOST_RECORDS`] different leftovers, further ones are counted under their label
//! only.
//!
//! In the child of a fork a new, empty ledger takes over: the old one's lock may be held by a thread
//! that exists in the parent only.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use serde::Serialize;

use super::label::Label;
use super::task::Task;
use super::thread::AllCounters;
use crate::libcrypto::{Entry, FULL, Library, Reason};
use crate::sys::thread as system;

/// Different leftovers (label, library, reason) that are told apart.
pub(super) const MOST_RECORDS: usize = 4096;
/// Ledgers of a process and its forks' forks. Deeper ones have none: their guards sweep and record nothing.
const GENERATIONS: usize = 64;

/// All figures of the process, added up when asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ledger {
    /// Figures per label, the most leftovers first.
    pub labels: Vec<LabelFigures>,
    /// Leftovers that are counted under their label but not told apart: the table was full.
    pub not_told_apart: u64,
    /// Dirty tasks of threads that were ending: swept, but without a record.
    pub late: u64,
    /// Threads that ended inside a guard.
    pub unfinished: u64,
    /// Threads for which the process had no key left for the release at their end.
    pub unarmed: u64,
    /// Tasks of C and Java that nobody left: they ended with the task around them, with their thread, or when
    /// their worker began another.
    pub not_left: u64,
    /// What [`reset`] has taken out.
    #[serde(skip)]
    before: Totals,
}

/// Sums over all labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tasks that ended.
    pub tasks: u64,
    /// Those that left errors.
    pub dirty_tasks: u64,
    /// Errors that they left.
    pub leftovers: u64,
}

impl Ledger {
    /// Tasks of all labels.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.labels.iter().map(|label| label.tasks).sum()
    }

    /// Tasks that left errors, of all labels.
    #[must_use]
    pub fn dirty_tasks(&self) -> u64 {
        self.labels.iter().map(|label| label.dirty_tasks).sum()
    }

    /// Errors left by tasks, of all labels.
    #[must_use]
    pub fn leftovers(&self) -> u64 {
        self.labels.iter().map(|label| label.leftovers).sum()
    }

    /// Errors found on entering a task, of all labels.
    #[must_use]
    pub fn arrivals(&self) -> u64 {
        self.labels.iter().map(|label| label.arrivals).sum()
    }

    /// Sums since the process's start, whatever was reset meanwhile.
    #[must_use]
    pub fn ever(&self) -> Totals {
        Totals {
            tasks: self.before.tasks + self.tasks(),
            dirty_tasks: self.before.dirty_tasks + self.dirty_tasks(),
            leftovers: self.before.leftovers + self.leftovers(),
        }
    }

    /// The figures of one label.
    #[must_use]
    pub fn label(&self, label: &str) -> Option<&LabelFigures> {
        self.labels.iter().find(|figures| figures.label == label)
    }
}

/// Figures of the tasks of one label.
#[derive(Debug, Clone, Serialize)]
pub struct LabelFigures {
    /// The label.
    pub label: &'static str,
    /// Tasks that ended.
    pub tasks: u64,
    /// Those that left errors.
    pub dirty_tasks: u64,
    /// Errors that they left.
    pub leftovers: u64,
    /// Errors that were there when a task was entered: left by code that has no guard.
    pub arrivals: u64,
    /// Whether the counts are lower bounds, because a full ring had lost older errors.
    pub at_least: bool,
    /// What was left, the most frequent first.
    pub entries: Vec<Leftover>,
}

/// One kind of leftover of one label: the same reason in the same library.
#[derive(Debug, Clone, Serialize)]
pub struct Leftover {
    /// File of the libcrypto in whose queue it was.
    pub library: String,
    /// The packed error code that was seen last.
    pub code: u64,
    /// What the code means.
    pub reason: String,
    /// Errors left by tasks.
    pub leftovers: u64,
    /// Errors found on entering tasks.
    pub arrivals: u64,
    /// Whether the counts are lower bounds.
    pub at_least: bool,
    /// Why it is no sign of a fault, where that is known. It poisons the thread all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benign: Option<&'static str>,
    /// When it was seen first.
    pub first: SystemTime,
    /// The last one.
    pub last: Seen,
}

/// One error that was seen.
#[derive(Debug, Clone, Serialize)]
pub struct Seen {
    /// When.
    pub time: SystemTime,
    /// Name of the thread that left it.
    pub thread: String,
    /// The kernel's number of that thread.
    pub thread_id: u64,
    /// Source file of libcrypto that raised it.
    pub file: String,
    /// Line in that file.
    pub line: u32,
    /// Function that raised it, where the release says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Text that came with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The connection that the task worked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
}

/// Whose errors are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The task that ends.
    Task,
    /// Code before the task that begins.
    Before,
}

#[derive(Default)]
struct Book {
    counters: AllCounters,
    pages: Mutex<Pages>,
    late: AtomicU64,
    unfinished: AtomicU64,
    unarmed: AtomicU64,
    not_left: AtomicU64,
}

impl Book {
    /// Tasks of a label since the process's start.
    fn tasks(&self, label: Label) -> u64 {
        self.counters.iter().map(|counters| counters.tasks(label)).sum()
    }
}

#[derive(Default)]
struct Pages {
    /// Tasks at the last reset. The counters themselves belong to their threads and go on.
    tasks_before: HashMap<Label, u64>,
    before: Totals,
    labels: HashMap<Label, Sums>,
    records: HashMap<(Label, usize, Reason), Leftover>,
    not_told_apart: u64,
}

#[derive(Default, Clone, Copy)]
struct Sums {
    dirty_tasks: u64,
    leftovers: u64,
    arrivals: u64,
    at_least: bool,
}

static BOOKS: [OnceLock<Book>; GENERATIONS] = [const { OnceLock::new() }; GENERATIONS];
static GENERATION: AtomicUsize = AtomicUsize::new(0);

fn book() -> Option<&'static Book> {
    BOOKS.get(GENERATION.load(Ordering::Relaxed)).map(|book| book.get_or_init(Book::default))
}

/// The counters of all threads.
pub(super) fn counters() -> Option<&'static AllCounters> {
    book().map(|book| &book.counters)
}

/// In the child of a fork.
pub(super) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn count_late() {
    count(|book| &book.late);
}

pub(super) fn count_unfinished() {
    count(|book| &book.unfinished);
}

/// A task has ended that nobody left.
pub(crate) fn count_not_left() {
    count(|book| &book.not_left);
}

pub(super) fn count_unarmed() {
    count(|book| &book.unarmed);
}

fn count(counter: impl FnOnce(&Book) -> &AtomicU64) {
    // A book that nobody has opened yet has nothing to say about this thread either.
    if let Some(book) = BOOKS.get(GENERATION.load(Ordering::Relaxed)).and_then(OnceLock::get) {
        counter(book).fetch_add(1, Ordering::Relaxed);
    }
}

/// Errors of one queue at one moment, as they go into the ledger.
pub(super) struct Record<'a> {
    pages: MutexGuard<'a, Pages>,
    task: Task,
    library: &'static Library,
    origin: Origin,
    now: SystemTime,
    thread: Option<(String, u64)>,
    at_least: bool,
    count: u64,
}

/// Opens the ledger for errors in `library`'s queue, which has `depth` of them: a full one may have
/// lost older errors.
pub(super) fn record(
    task: Task,
    library: &'static Library,
    origin: Origin,
    depth: usize,
) -> Option<Record<'static>> {
    let pages = book()?.pages.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Record {
        pages,
        task,
        library,
        origin,
        now: SystemTime::now(),
        thread: None,
        at_least: depth >= FULL,
        count: 0,
    })
}

impl Record<'_> {
    pub(super) fn add(&mut self, entry: &Entry<'_>) {
        self.count += 1;
        let reason = Reason::of(entry.code, self.library.line());
        let key = (self.task.label, std::ptr::from_ref(self.library) as usize, reason);
        let full = self.pages.records.len() >= MOST_RECORDS;
        if full && !self.pages.records.contains_key(&key) {
            self.pages.not_told_apart += 1;
            return;
        }
        let (thread, thread_id) =
            self.thread.get_or_insert_with(|| (system::name(), system::id())).clone();
        let last = Seen {
            time: self.now,
            thread,
            thread_id,
            file: text(entry.file).unwrap_or_default(),
            line: entry.line,
            function: text(entry.function),
            data: text(entry.data),
            connection: self.task.connection,
        };
        let (library, now) = (self.library, self.now);
        let leftover = self.pages.records.entry(key).or_insert_with(|| Leftover {
            library: library.path().display().to_string(),
            code: entry.code,
            reason: library.reason(entry.code),
            leftovers: 0,
            arrivals: 0,
            at_least: false,
            benign: reason.benign(library.line()),
            first: now,
            last: last.clone(),
        });
        match self.origin {
            Origin::Task => leftover.leftovers += 1,
            Origin::Before => leftover.arrivals += 1,
        }
        leftover.at_least |= self.at_least;
        leftover.code = entry.code;
        leftover.last = last;
    }

    /// Closes the record; returns how many errors it has. `first_of_task`: no other library's queue
    /// has made the task dirty.
    pub(super) fn close(mut self, first_of_task: bool) -> u64 {
        let sums = self.pages.labels.entry(self.task.label).or_default();
        match self.origin {
            Origin::Task => {
                sums.leftovers += self.count;
                sums.dirty_tasks += u64::from(first_of_task && self.count > 0);
            }
            Origin::Before => sums.arrivals += self.count,
        }
        sums.at_least |= self.at_least;
        self.count
    }
}

/// Longest text of a leftover that is kept, in bytes.
const LONGEST_TEXT: usize = 256;

fn text(text: Option<&CStr>) -> Option<String> {
    let bytes = text?.to_bytes();
    Some(String::from_utf8_lossy(bytes.get(..LONGEST_TEXT).unwrap_or(bytes)).into_owned())
}

/// Adds up the figures of all threads and labels.
#[must_use]
pub fn ledger() -> Ledger {
    let Some(book) = book() else { return Ledger::default() };
    let (sums, records, not_told_apart, tasks_before, before) = {
        let pages = book.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Pages { labels, records, not_told_apart, tasks_before, before } = &*pages;
        (labels.clone(), records.clone(), *not_told_apart, tasks_before.clone(), *before)
    };
    let mut labels: Vec<_> = Label::all()
        .map(|label| {
            let sums = sums.get(&label).copied().unwrap_or_default();
            LabelFigures {
                label: label.text(),
                tasks: book
                    .tasks(label)
                    .saturating_sub(tasks_before.get(&label).copied().unwrap_or(0)),
                dirty_tasks: sums.dirty_tasks,
                leftovers: sums.leftovers,
                arrivals: sums.arrivals,
                at_least: sums.at_least,
                entries: entries_of(&records, label),
            }
        })
        .filter(|figures| figures.tasks + figures.leftovers + figures.arrivals > 0)
        .collect();
    labels.sort_by_key(|figures| std::cmp::Reverse((figures.leftovers, figures.tasks)));
    Ledger {
        labels,
        not_told_apart,
        late: book.late.load(Ordering::Relaxed),
        unfinished: book.unfinished.load(Ordering::Relaxed),
        unarmed: book.unarmed.load(Ordering::Relaxed),
        not_left: book.not_left.load(Ordering::Relaxed),
        before,
    }
}

/// Starts the ledger anew: all its figures are 0, and nothing is recorded. Tasks that are going on count
/// when they end. What a probe says of growth since its start does not change.
pub fn reset() {
    let Some(book) = book() else { return };
    let mut pages = book.pages.lock().unwrap_or_else(PoisonError::into_inner);
    let Pages { labels, tasks_before, before, .. } = &mut *pages;
    tasks_before.extend(Label::all().map(|label| (label, book.tasks(label))));
    before.tasks = tasks_before.values().sum();
    before.dirty_tasks += labels.values().map(|sums| sums.dirty_tasks).sum::<u64>();
    before.leftovers += labels.values().map(|sums| sums.leftovers).sum::<u64>();
    labels.clear();
    pages.records.clear();
    pages.not_told_apart = 0;
    for counter in [&book.late, &book.unfinished, &book.unarmed, &book.not_left] {
        counter.store(0, Ordering::Relaxed);
    }
}

fn entries_of(records: &HashMap<(Label, usize, Reason), Leftover>, label: Label) -> Vec<Leftover> {
    let mut entries: Vec<_> = records
        .iter()
        .filter(|((of, _, _), _)| *of == label)
        .map(|(_, leftover)| leftover.clone())
        .collect();
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.leftovers, entry.arrivals, entry.code)));
    entries
}
