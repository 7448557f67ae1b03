//! The table of live blocks: address to size and source file.
//!
//! Cut into shards by address, each with a lock of its own that is held for one look-up. The table's
//! own memory comes from Rust's allocator, never from a libcrypto; where there is none left, a block
//! goes untracked.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of a live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) size: usize,
    /// The file that asked for it, a number in its account.
    pub(super) file: u16,
    /// The account it belongs to.
    pub(super) slot: u8,
    /// Whether it is a thread state.
    pub(super) is_state: bool,
}

const SHARDS: usize = 64;

/// In a cache line of its own.
#[repr(align(64))]
struct Shard(Mutex<HashMap<usize, Block, BuildHasherDefault<AddressHasher>>>);

static TABLE: [Shard; SHARDS] =
    [const { Shard(Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()))) }; SHARDS];

fn shard(
    address: usize,
) -> MutexGuard<'static, HashMap<usize, Block, BuildHasherDefault<AddressHasher>>> {
    // The top bits of the hash; the map uses the others.
    let place = (spread(address) >> 52) as usize % SHARDS;
    TABLE[place].0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks that are not in the table because there was no memory for it.
#[derive(Debug)]
pub(super) struct NoMemory;

/// Enters a block. Answers the block that was entered under this address before and was freed without
/// the table's knowledge.
pub(super) fn enter(address: usize, block: Block) -> Result<Option<Block>, NoMemory> {
    let mut shard = shard(address);
    shard.try_reserve(1).map_err(|_| NoMemory)?;
    Ok(shard.insert(address, block))
}

/// Takes a block out, which must happen before it is freed: then another thread can get its address.
pub(super) fn leave(address: usize) -> Option<Block> {
    shard(address).remove(&address)
}

/// Spreads an address, whose low bits are zero, over 64 bits (Fibonacci hashing).
fn spread(address: usize) -> u64 {
    (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        // The map takes its place from the low bits, which multiplication leaves the least mixed, and
        // its tag from the top ones.
        self.0 = spread(address).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
