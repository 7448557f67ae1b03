//! Plaintext that waits for Java outside OpenSSL.

use std::ptr;

/// The rest of a record. A connection that rests needs no memory.
#[derive(Debug, Default)]
pub(super) struct Stash {
    bytes: Vec<u8>,
    start: usize,
}

impl Stash {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Hands the oldest bytes over; returns how many.
    ///
    /// # Safety
    /// `to` has room for `room` bytes.
    pub(super) unsafe fn take(&mut self, to: *mut u8, room: usize) -> usize {
        let waiting = self.bytes.get(self.start..).unwrap_or_default();
        let length = waiting.len().min(room);
        // SAFETY: so many bytes wait, and the caller vouches for the room, which is not in memory of ours.
        unsafe { ptr::copy_nonoverlapping(waiting.as_ptr(), to, length) };
        self.start += length;
        if self.start == self.bytes.len() {
            *self = Self::default();
        }
        length
    }
}
