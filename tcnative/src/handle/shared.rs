//! Things that several threads use at a time: contexts, pools, configurations.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::jlong;

use super::table::Table;
use super::{GENERATION_SHIFT, Kind, LAST_GENERATION, Parts};

/// Somebody has freed it; it goes when the last one who looks at it is done.
const CLOSED: u64 = 1 << 23;
/// There is something in the slot.
const LIVE: u64 = 1 << 22;
const PINS: u64 = LIVE - 1;

/// A slot: generation, [`CLOSED`], [`LIVE`], and how many are looking at it just now, in one word.
struct Slot<T> {
    word: AtomicU64,
    value: UnsafeCell<Option<Arc<T>>>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { word: AtomicU64::new(1 << GENERATION_SHIFT | CLOSED), value: UnsafeCell::new(None) }
    }
}

// SAFETY: the value is written only by who owns the slot (it is not live, or closed and without pins), and read
// only under a pin of its own generation; the word's orderings make the one visible to the other.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

/// Things of one kind, by handle.
pub(crate) struct Shared<T> {
    kind: Kind,
    table: Table<Slot<T>>,
}

impl<T> Shared<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, table: Table::new() }
    }

    /// Puts something in; returns its handle. Nothing where there is no room for more.
    pub(crate) fn add(&self, value: Arc<T>) -> Option<jlong> {
        let (index, slot) = self.table.take()?;
        // SAFETY: the slot was taken from the free ones and is not live: nobody reads it.
        unsafe { *slot.value.get() = Some(value) };
        // Those who try the handle of what was here before may have counted themselves in.
        let word = slot.word.fetch_xor(LIVE | CLOSED, Ordering::Release);
        Some(Parts { slot: index, generation: word >> GENERATION_SHIFT }.handle(self.kind))
    }

    /// What a handle names; nothing where it names nothing of this kind (any more).
    pub(crate) fn get(&self, handle: jlong) -> Option<Arc<T>> {
        let parts = Parts::of(handle, self.kind)?;
        let slot = self.table.get(parts.slot)?;
        let word = slot.word.fetch_add(1, Ordering::Acquire);
        let here = word >> GENERATION_SHIFT == parts.generation && word & (LIVE | CLOSED) == LIVE;
        // SAFETY: it was live and not closed when we were counted in, so that nobody takes it out
        // before we are counted out.
        let value = if here { unsafe { (*slot.value.get()).clone() } } else { None };
        let word = slot.word.fetch_sub(1, Ordering::Release);
        if word & (LIVE | CLOSED | PINS) == LIVE | CLOSED | 1 {
            self.reclaim(parts.slot, slot, word - 1);
        }
        value
    }

    /// Takes what a handle names out: from now on the handle names nothing. What others are using goes when they
    /// are done.
    pub(crate) fn remove(&self, handle: jlong) -> Option<Arc<T>> {
        let value = self.get(handle)?;
        let parts = Parts::of(handle, self.kind)?;
        let closed = self.close(parts.slot, Some(parts.generation));
        closed.then_some(value)
    }

    /// Takes everything out.
    pub(crate) fn clear(&self) {
        for (index, _) in self.table.used() {
            self.close(index, None);
        }
    }

    /// Returns whether it was this call that did.
    fn close(&self, index: u32, generation: Option<u64>) -> bool {
        let Some(slot) = self.table.get(index) else { return false };
        let closed = slot.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
            let meant = generation.is_none_or(|meant| word >> GENERATION_SHIFT == meant);
            (meant && word & (LIVE | CLOSED) == LIVE).then_some(word | CLOSED)
        });
        if let Ok(word) = closed
            && word & PINS == 0
        {
            self.reclaim(index, slot, word | CLOSED);
        }
        closed.is_ok()
    }

    /// Empties a slot that was closed and has no pins, if it is still so: one of those who try succeeds.
    #[cold]
    fn reclaim(&self, index: u32, slot: &Slot<T>, word: u64) {
        let generation = (word >> GENERATION_SHIFT) + 1;
        let next = generation << GENERATION_SHIFT | CLOSED;
        if slot.word.compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        // SAFETY: the exchange made this thread the slot's owner: it is not live, and not among the free ones.
        let value = unsafe { (*slot.value.get()).take() };
        if generation <= LAST_GENERATION {
            self.table.give_back(index);
        }
        drop(value);
    }
}
