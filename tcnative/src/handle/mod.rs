//! What Java holds in place of pointers.
//!
//! A handle names a slot of a table and the generation of what is in it. Slots are never given back to the
//! allocator, so that a handle of something freed, or a number that never was one, can be looked up at any time: it
//! does not match, and that is all. The layout of a handle, which is always positive:
//!
//! | bits | |
//! |---|---|
//! | 0..4 | kind |
//! | 4..24 | slot |
//! | 24..63 | generation |

mod exclusive;
mod shared;
mod table;

pub(crate) use exclusive::{Exclusive, Fact, Held};
pub(crate) use shared::Shared;

use jni::sys::jlong;

/// What a handle is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Pool = 1,
    Context = 2,
    Conf = 3,
    Connection = 4,
    /// A connection's side towards the network; the same slot as the connection.
    Network = 5,
}

const KIND_BITS: u32 = 4;
const SLOT_BITS: u32 = 20;
/// Where the generation begins, in handles and in the words of slots.
const GENERATION_SHIFT: u32 = KIND_BITS + SLOT_BITS;
/// A slot whose generations are used up is not used again.
const LAST_GENERATION: u64 = (1 << (63 - GENERATION_SHIFT)) - 1;

/// A handle taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    slot: u32,
    generation: u64,
}

impl Parts {
    /// Nothing where the number is no handle of this kind.
    #[inline(always)]
    fn of(handle: jlong, kind: Kind) -> Option<Self> {
        let bits = handle.cast_unsigned();
        if bits & ((1 << 63) | ((1 << KIND_BITS) - 1)) != kind as u64 {
            return None;
        }
        let slot = (bits >> KIND_BITS) as u32 & ((1 << SLOT_BITS) - 1);
        Some(Self { slot, generation: bits >> GENERATION_SHIFT })
    }

    fn handle(self, kind: Kind) -> jlong {
        let slot = u64::from(self.slot) << KIND_BITS;
        (self.generation << GENERATION_SHIFT | slot | kind as u64).cast_signed()
    }
}

#[cfg(test)]
mod tests;
