//! Bodies: a different one for each request, the same ones in every run with the same seed.
//!
//! A body is a header (seed and request number) followed by a window into one shared block of
//! pseudo-random bytes, at an offset of the request's own. Making it costs a copy, so that the client
//! measures the server and not its own generator; two bytes that change places change the hash.

use xxhash_rust::xxh3::Xxh3Default;

/// Size of the shared block.
const BLOCK: usize = 1 << 20;
/// Longest piece handed out at a time.
const PIECE: usize = 64 << 10;

/// The shared block; one a run.
pub struct Bodies {
    seed: u64,
    block: Vec<u8>,
}

impl Bodies {
    /// Fills the block from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let block = (0..BLOCK / 8).flat_map(|_| split_mix(&mut state).to_le_bytes()).collect();
        Self { seed, block }
    }

    /// The body of request `request`, `length` bytes of it.
    pub fn body(&self, request: u64, length: u64) -> Body<'_> {
        let mut state = self.seed ^ request.rotate_left(32);
        let offset = split_mix(&mut state) as usize % BLOCK;
        let mut header = [0; 16];
        header[..8].copy_from_slice(&self.seed.to_le_bytes());
        header[8..].copy_from_slice(&request.to_le_bytes());
        Body { block: &self.block, header, given: 0, length, offset, hash: Xxh3Default::new() }
    }
}

/// One body, given out in pieces and hashed on the way.
pub struct Body<'a> {
    block: &'a [u8],
    header: [u8; 16],
    given: u64,
    length: u64,
    offset: usize,
    hash: Xxh3Default,
}

impl Body<'_> {
    /// The next piece; empty when the body is complete.
    pub fn piece(&mut self) -> &[u8] {
        let left = (self.length - self.given).min(PIECE as u64) as usize;
        let piece: &[u8] = if self.given == 0 {
            &self.header[..left.min(self.header.len())]
        } else {
            let piece = &self.block[self.offset..BLOCK.min(self.offset + left)];
            self.offset = (self.offset + piece.len()) % BLOCK;
            piece
        };
        self.given += piece.len() as u64;
        self.hash.update(piece);
        piece
    }

    /// XXH3-64 of what was given out.
    pub fn hash(&self) -> u64 {
        self.hash.digest()
    }
}

/// SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn whole(body: &mut Body<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let piece = body.piece();
            if piece.is_empty() {
                return bytes;
            }
            bytes.extend_from_slice(piece);
        }
    }

    #[test]
    fn every_length_is_exact_and_the_hash_is_of_the_whole() {
        let bodies = Bodies::new(7);
        for length in [0, 1, 15, 16, 17, 4_096, 65_536, 3_000_001] {
            let mut body = bodies.body(3, length);
            let bytes = whole(&mut body);
            assert_eq!(bytes.len() as u64, length);
            assert_eq!(body.hash(), xxhash_rust::xxh3::xxh3_64(&bytes));
        }
    }

    #[test]
    fn bodies_differ_by_request_and_agree_between_runs() {
        let (one, again) = (Bodies::new(1), Bodies::new(1));
        let hashes: HashSet<u64> = (0..1_000)
            .map(|request| {
                let mut body = one.body(request, 4_096);
                whole(&mut body);
                body.hash()
            })
            .collect();
        assert_eq!(hashes.len(), 1_000);
        assert_eq!(whole(&mut one.body(5, 4_096)), whole(&mut again.body(5, 4_096)));
        assert_ne!(whole(&mut one.body(5, 4_096)), whole(&mut Bodies::new(2).body(5, 4_096)));
    }
}
