//! The look that a guard takes at a queue: a few loads, the same for each library.

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
        let value = key.value();
        if is_none(value) {
            return Glance::Absent;
        }
        let state = match step {
            Step::Direct => value.cast_const(),
            Step::SparseArray => match sparse_leaf(value) {
                Leaf::State(state) => state,
                Leaf::Absent => return Glance::Absent,
                Leaf::Unreadable => return self.ask(),
            },
        };
        // SAFETY: calibration has shown that this is the calling thread's ERR_STATE, in which
        // `ends` is the offset of `top` and `bottom`.
        let ends = unsafe { state.byte_add(self.ends) };
        // SAFETY: as above: two aligned ints, which only this thread writes to.
        let [top, bottom] = unsafe { ends.cast::<[i32; 2]>().read() };
        if top == bottom { Glance::Clean } else { Glance::Dirty }
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
