//! Slots that never move and are never freed.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::SLOT_BITS;

const CHUNK_BITS: u32 = 8;
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNKS: usize = 1 << (SLOT_BITS - CHUNK_BITS);

/// Up to 2^20 slots, made 256 at a time when needed.
pub(super) struct Table<S> {
    chunks: [OnceLock<Box<[S]>>; CHUNKS],
    free: Mutex<Free>,
}

struct Free {
    /// Slots that were used and are not.
    slots: Vec<u32>,
    /// The first slot that was never used.
    next: u32,
}

impl<S: Default> Table<S> {
    pub(super) const fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Free { slots: Vec::new(), next: 0 }),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> Option<&S> {
        let slot = slot as usize;
        self.chunks.get(slot / CHUNK)?.get()?.get(slot % CHUNK)
    }

    /// A slot that nobody uses. Nothing when all are in use.
    pub(super) fn take(&self) -> Option<(u32, &S)> {
        let slot = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            match free.slots.pop() {
                Some(slot) => slot,
                None if (free.next as usize) < CHUNK * CHUNKS => {
                    free.next += 1;
                    free.next - 1
                }
                None => return None,
            }
        };
        let chunk = self.chunks.get(slot as usize / CHUNK)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| S::default()).collect());
        Some((slot, self.get(slot)?))
    }

    pub(super) fn give_back(&self, slot: u32) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).slots.push(slot);
    }

    /// The slots that were ever used.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &S)> {
        let next = self.free.lock().unwrap_or_else(PoisonError::into_inner).next;
        (0..next).filter_map(|slot| Some((slot, self.get(slot)?)))
    }
}
