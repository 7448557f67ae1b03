//! The look that a guard takes at a queue: a few loads, the same for each library.

use std::num::NonZeroU64;

use super::library::{Library, ThreadState};
use super::reader::{Leaf, Reader, Step, is_none, sparse_leaf};
use crate::sys::thread::Key;

/// What a look has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glance {
    /// The thread has no state in the library.
    Absent,
    /// It has one, and its queue is empty.
    Clean,
    /// There are errors in its queue.
    Dirty,
}

/// A bound library, with what a look needs copied out of it, so that it lies in one cache line.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    library: &'static Library,
    /// The key behind which the state is, where there is one.
    path: Option<(Key, Step)>,
    /// Byte offset in the state of the ring's two ends.
    ends: usize,
    shares_states: bool,
}

impl Bound {
    pub(super) fn new(library: &'static Library) -> Self {
        let (path, ends) = match library.reader() {
            Reader::Key(path) => (Some((path.key, path.step)), path.layout.ends()),
            Reader::Table(_) | Reader::PublicApi(_) => (None, 0),
        };
        Self { library, path, ends, shares_states: library.shares_states() }
    }

    /// The library.
    #[inline]
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// As [`Library::shares_states`].
    #[inline]
    #[must_use]
    pub fn shares_states(&self) -> bool {
        self.shares_states
    }

    /// Looks at the calling thread's queue; see [`Library::state`].
    #[inline(always)]
    #[must_use]
    pub fn glance(&self) -> Glance {
        let Some((key, step)) = self.path else { return self.ask() };
        look(key, step, self.ends).unwrap_or_else(|| self.ask())
    }

    #[inline(never)]
    fn ask(&self) -> Glance {
        match self.library.state() {
            ThreadState::Absent => Glance::Absent,
            ThreadState::Present { depth: 0 } => Glance::Clean,
            ThreadState::Present { .. } => Glance::Dirty,
        }
    }
}

/// Nothing where the state lies too deep for a look.
#[inline(always)]
fn look(key: Key, step: Step, ends: usize) -> Option<Glance> {
    let value = key.value();
    if is_none(value) {
        return Some(Glance::Absent);
    }
    let state = match step {
        Step::Direct => value.cast_const(),
        Step::SparseArray => match sparse_leaf(value) {
            Leaf::State(state) => state,
            Leaf::Absent => return Some(Glance::Absent),
            Leaf::Unreadable => return None,
        },
    };
    // SAFETY: calibration has shown that this is the calling thread's ERR_STATE, in which
    // `ends` is the offset of `top` and `bottom`.
    let ends = unsafe { state.byte_add(ends) };
    // SAFETY: as above: two aligned ints, which only this thread writes to.
    let [top, bottom] = unsafe { ends.cast::<[i32; 2]>().read() };
    Some(if top == bottom { Glance::Clean } else { Glance::Dirty })
}

/// The one library of a process that has one, as nearly all have: what a look needs, in a number, so that it costs
/// one load from a cold cache instead of three.
#[derive(Debug, Clone, Copy)]
pub struct Only(NonZeroU64);

/// Set in each.
const ONLY: u64 = 1;
const SPARSE: u64 = 2;
const ENDS_SHIFT: u32 = 2;
const KEY_SHIFT: u32 = 32;

impl Only {
    /// Nothing where there is not exactly one, or it is not one of those that are looked at behind a key and
    /// share no states.
    pub(super) fn of(bound: &[Bound]) -> Option<Self> {
        let [Bound { path: Some((key, step)), ends, shares_states: false, .. }] = *bound else {
            return None;
        };
        let sparse = if step == Step::SparseArray { SPARSE } else { 0 };
        let ends = u64::try_from(ends).ok().filter(|ends| ends >> (KEY_SHIFT - ENDS_SHIFT) == 0)?;
        let word = u64::from(key.number()) << KEY_SHIFT | ends << ENDS_SHIFT | sparse | ONLY;
        NonZeroU64::new(word).map(Self)
    }

    pub(super) fn from_word(word: u64) -> Option<Self> {
        NonZeroU64::new(word).map(Self)
    }

    pub(super) fn word(only: Option<Self>) -> u64 {
        only.map_or(0, |only| only.0.get())
    }

    /// As [`Bound::glance`]; nothing where that has to be asked.
    #[inline(always)]
    #[must_use]
    pub fn glance(self) -> Option<Glance> {
        let word = self.0.get();
        let step = if word & SPARSE == 0 { Step::Direct } else { Step::SparseArray };
        let ends = (word as u32 >> ENDS_SHIFT) as usize;
        look(Key::from_number((word >> KEY_SHIFT) as u32), step, ends)
    }
}
