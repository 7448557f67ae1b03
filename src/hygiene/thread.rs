//! What hygiene keeps for each thread, and what it does when a thread rests or ends.
//!
//! Counters live in a `thread_local::ThreadLocal`, one writer each, and are added up only when somebody
//! reads them; a thread that ends leaves its counts to the next thread that takes its place. On top sits
//! a plain thread-local without a destructor, so that a guard works at any moment of a thread's life:
//! `Dying`, dropped among the thread's thread-locals, tells guards that come later to keep no counts.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use thread_local::ThreadLocal;

use super::label::{Label, MOST};
use super::ledger;
use crate::libcrypto;
use crate::sys::thread::Shortcut;
use crate::sys::{fork, thread as system};

/// A counter for each label, and one for the rest.
const LABELS: usize = MOST + 1;
/// Entries of a thread's cache from a text's address to its label.
const CACHED: usize = 32;

/// Counters of one thread. Only that thread writes; readers see each counter as it was a moment ago.
pub(super) struct Counters {
    tasks: [AtomicU64; LABELS],
    labels: [Cached; CACHED],
    /// Which libraries hold a state of this thread, a bit each, as of its last task.
    states: AtomicU32,
}

/// A `&'static str` and its label. The fields are atomics for the sake of threads that take a dead
/// thread's place; no two threads use one entry at the same time.
#[derive(Default)]
struct Cached {
    address: AtomicUsize,
    length: AtomicUsize,
    label: AtomicU16,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            tasks: [const { AtomicU64::new(0) }; LABELS],
            labels: Default::default(),
            states: AtomicU32::new(0),
        }
    }
}

impl Counters {
    #[inline]
    pub(super) fn count_task(&self, label: Label) {
        if let Some(counter) = self.tasks.get(label.number()) {
            // One writer: no read-modify-write is needed.
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    pub(super) fn tasks(&self, label: Label) -> u64 {
        self.tasks.get(label.number()).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    #[inline]
    fn label(&self, text: &'static str) -> Label {
        let address = text.as_ptr() as usize;
        // Texts lie next to each other: the low bits differ, and alignment is none.
        let Some(cached) = self.labels.get((address ^ (address >> 5)) % CACHED) else {
            return Label::intern(text);
        };
        if cached.address.load(Ordering::Relaxed) == address
            && cached.length.load(Ordering::Relaxed) == text.len()
        {
            return Label::from_number(cached.label.load(Ordering::Relaxed));
        }
        let label = Label::intern(text);
        cached.address.store(address, Ordering::Relaxed);
        cached.length.store(text.len(), Ordering::Relaxed);
        cached.label.store(label.number() as u16, Ordering::Relaxed);
        label
    }

    #[inline]
    pub(super) fn note_states(&self, states: u32) {
        if self.states.load(Ordering::Relaxed) != states {
            self.states.store(states, Ordering::Relaxed);
        }
    }
}

/// A queue's depth for each library: 4 bits, since a ring holds 15 errors at most.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Depths(u64);

const _: () = assert!(libcrypto::MOST * 4 <= 64 && libcrypto::FULL < 16);

impl Depths {
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn get(self, position: usize) -> usize {
        (self.0 >> (4 * position)) as usize & libcrypto::FULL
    }

    pub(super) fn set(&mut self, position: usize, depth: usize) {
        let shift = 4 * position;
        self.0 = self.0 & !(0xf << shift) | ((depth.min(libcrypto::FULL) as u64) << shift);
    }
}

/// Errors that were recorded and left where they are: for each library a bit for each place in the queue, the
/// lowest for the oldest error.
#[derive(Clone, Copy)]
struct Recorded([u16; libcrypto::MOST]);

impl Recorded {
    const NONE: Self = Self([0; libcrypto::MOST]);

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&places| places == 0)
    }
}

/// The places of the oldest `depth` errors of a queue, a bit each.
pub(super) fn oldest(depth: usize) -> u16 {
    ((1_u32 << depth.min(libcrypto::FULL)) - 1) as u16
}

/// What a guard needs of its thread, without a destructor: usable until the thread is gone.
pub(super) struct Current {
    counters: Cell<Option<&'static Counters>>,
    /// Guards that are active.
    active: Cell<u32>,
    /// Outermost guards until the next look at the dynamic linker's list, and between looks.
    until_look: Cell<u32>,
    between_looks: Cell<u32>,
    armed: Cell<bool>,
    dying: Cell<bool>,
    recorded: Cell<Recorded>,
}

thread_local! {
    static CURRENT: Current = const {
        Current {
            counters: Cell::new(None),
            active: Cell::new(0),
            until_look: Cell::new(1),
            between_looks: Cell::new(1),
            armed: Cell::new(false),
            dying: Cell::new(false),
            recorded: Cell::new(Recorded::NONE),
        }
    };
    static DYING: Dying = const { Dying };
}

/// Dropped among the thread's thread-locals, before those of the `thread_local` crate, which was used
/// earlier: from then on the counters may belong to another thread.
struct Dying;

impl Drop for Dying {
    fn drop(&mut self) {
        with(|current| {
            current.dying.set(true);
            if let Some(counters) = current.counters.take() {
                counters.note_states(0);
            }
            if current.active.get() > 0 {
                ledger::count_unfinished();
            }
        });
    }
}

/// A task's thread looks at the dynamic linker's list on the tasks 1, 2, 4, 8 ... and then on each of
/// this many: 350 ns spread over so many tasks.
const LOOK_EVERY: u32 = 4096;

static WAY: Shortcut<Current> = Shortcut::new(&CURRENT);

#[inline(always)]
pub(super) fn with<R>(work: impl FnOnce(&Current) -> R) -> R {
    // A const thread-local without a destructor is there for as long as the thread runs.
    WAY.with(work)
}

impl Current {
    /// The thread's counters; none once the thread is ending.
    #[inline]
    pub(super) fn counters(&self) -> Option<&'static Counters> {
        match self.counters.get() {
            Some(counters) => Some(counters),
            None => self.first_use(),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_use(&self) -> Option<&'static Counters> {
        if self.dying.get() {
            return None;
        }
        fork::around(before_fork, || {}, in_child);
        let all = ledger::counters()?;
        // The crate panics where its own thread-local is gone already: in another destructor of a thread
        // that had no guard before.
        let counters = catch_unwind(AssertUnwindSafe(|| all.get_or_default())).ok();
        // Registers the destructor, after that of the crate's own thread-local.
        let counters = counters.filter(|_| DYING.try_with(|_| ()).is_ok());
        self.dying.set(counters.is_none());
        self.counters.set(counters);
        counters
    }

    /// Enters a guard; returns whether it is the outermost one. That one looks for new libraries,
    /// seldom, and sees to it that the thread gives back its state when it ends.
    #[inline]
    pub(super) fn begin(&self) -> bool {
        let active = self.active.get();
        self.active.set(active + 1);
        if active > 0 {
            return false;
        }
        let until_look = self.until_look.get() - 1;
        self.until_look.set(until_look);
        if until_look == 0 {
            self.look();
        }
        true
    }

    /// Leaves a guard.
    #[inline]
    pub(super) fn end(&self, label: Label, outermost: bool, states: u32) {
        if let Some(counters) = self.counters() {
            counters.count_task(label);
            if outermost {
                counters.note_states(states);
            }
        }
        self.end_inner();
    }

    /// Takes a [`begin`](Self::begin) back that was no task and found the thread in none.
    pub(super) fn end_outermost(&self, states: u32) {
        if let Some(counters) = self.counters() {
            counters.note_states(states);
        }
        self.end_inner();
    }

    /// Takes a [`begin`](Self::begin) back.
    #[inline]
    pub(super) fn end_inner(&self) {
        self.active.set(self.active.get().saturating_sub(1));
    }

    #[cold]
    #[inline(never)]
    fn look(&self) {
        let _errno = system::ErrnoKept::new();
        let between = self.between_looks.get();
        self.until_look.set(between);
        // The counters come first: their destructor must be registered before those of guards that are
        // kept in thread-locals, and the hooks for a fork before a search.
        if self.counters().is_none() {
            return;
        }
        if self.still_recorded() {
            // Until the queues are empty each task compares them with what was recorded.
            self.until_look.set(1);
            return;
        }
        self.between_looks.set((2 * between).min(LOOK_EVERY));
        libcrypto::look_in_passing();
        if libcrypto::bound().iter().any(libcrypto::Bound::shares_states) {
            self.arm();
        }
    }

    /// Forgets of the errors that were recorded and left those that are not in the queues any more; returns
    /// whether any is left.
    fn still_recorded(&self) -> bool {
        let mut recorded = self.recorded.get();
        if recorded.is_empty() {
            return false;
        }
        for (places, bound) in recorded.0.iter_mut().zip(libcrypto::bound()) {
            *places &= oldest(bound.library().depth());
        }
        self.recorded.set(recorded);
        !recorded.is_empty()
    }

    /// Sees to it that the thread gives back its states in shared tables when it ends.
    fn arm(&self) {
        if !self.armed.replace(true) && !system::EXIT_HOOK.arm(release_shared) {
            ledger::count_unarmed();
        }
    }

    /// Gives the thread's state back at the end of a task.
    #[cold]
    #[inline(never)]
    pub(super) fn release(&self, bound: &libcrypto::Bound) {
        let _errno = system::ErrnoKept::new();
        if bound.shares_states() {
            self.arm();
        }
        bound.library().release();
    }
}

/// The places in a library's queue whose errors have been recorded, though they stay there.
#[cold]
pub(super) fn recorded(position: usize) -> u16 {
    with(|current| current.recorded.get().0.get(position).copied().unwrap_or(0))
}

/// The errors at these places in a library's queue have been recorded, though they stay there, and no others:
/// nobody else records them.
#[cold]
pub(super) fn set_recorded(position: usize, places: u16) {
    with(|current| {
        let mut recorded = current.recorded.get();
        if let Some(known) = recorded.0.get_mut(position) {
            *known = places;
        }
        current.recorded.set(recorded);
        if !recorded.is_empty() {
            // The next task compares: somebody may empty the queues in between.
            current.until_look.set(1);
        }
    });
}

/// Gives the calling thread its place, as its first guard does. For those who keep guards in thread-locals:
/// before they use theirs, so that hygiene's outlives it.
#[inline]
pub(crate) fn begin_thread() {
    let _ = with(Current::counters);
}

/// The label of a text that lives for ever.
#[inline]
pub(super) fn label(text: &'static str) -> Label {
    match with(Current::counters) {
        Some(counters) => counters.label(text),
        None => Label::intern(text),
    }
}

/// When a thread ends: takes its states out of the tables that all threads share.
///
/// Does nothing once the process exits ([`libcrypto::bound`] is empty then).
fn release_shared() {
    for bound in libcrypto::bound() {
        if bound.shares_states() {
            bound.library().release();
        }
    }
}

/// Errors in the calling thread's queues, of all libraries together.
#[must_use]
pub fn depth() -> usize {
    if libcrypto::bound().is_empty() {
        libcrypto::look_in_passing();
    }
    libcrypto::bound().iter().map(|bound| bound.library().depth()).sum()
}

/// Gives back the calling thread's state in every library: for a pool's thread that is about to rest
/// for long, with [`Release::Park`](super::Release::Park).
///
/// Whatever is in the thread's error queues goes with it. On OpenSSL 1.1.0 and later the thread's random
/// generators go too and are made again on next use. Does nothing inside a guard.
pub fn park() {
    if with(|current| current.active.get()) == 0 {
        release_all();
    }
}

/// As [`park`], but inside a guard as well: what is in the queues goes without a record, those of the
/// caller's errors that a guard keeps too.
pub fn release_all() {
    let _errno = system::ErrnoKept::new();
    with(|current| {
        for bound in libcrypto::bound() {
            bound.library().release();
        }
        if let Some(counters) = current.counters.get() {
            counters.note_states(0);
        }
        current.recorded.set(Recorded::NONE);
    });
}

/// How many guarded threads held a state in `library` after their last task. Threads without a guard
/// are not counted.
#[must_use]
pub fn guarded_states(library: &libcrypto::Library) -> usize {
    let position = libcrypto::bound()
        .iter()
        .position(|bound| std::ptr::eq(bound.library(), library))
        .unwrap_or(32);
    let Some(counters) = ledger::counters() else { return 0 };
    let bit = 1_u32.checked_shl(u32::try_from(position).unwrap_or(32)).unwrap_or(0);
    counters.iter().filter(|counters| counters.states.load(Ordering::Relaxed) & bit != 0).count()
}

/// Before a fork, on the thread that forks: it gets its place among the counters now, because that
/// takes a lock of the `thread_local` crate's, which in the child may be held by a thread that is not
/// there. The child's further threads still take that lock.
fn before_fork() {
    let _ = with(Current::counters);
}

/// In the child of a fork: counts start again from nothing, under locks that nobody holds.
fn in_child() {
    ledger::forked();
    with(|current| current.counters.set(None));
}

/// The type in which the threads' counters are kept.
pub(super) type AllCounters = ThreadLocal<Counters>;
