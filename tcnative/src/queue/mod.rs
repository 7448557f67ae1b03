//! What a native leaves on the calling thread's error queue: nothing.
//!
//! Java learns of a fatal TLS error from `SSL.getLastErrorNumber` alone. The first error of a TLS call is kept for
//! it, in a thread-local of ours. What else a native leaves, and what it finds from others, goes into the ledger of
//! leftovers, the shim's where the shim is loaded ([`ledger`]).
//!
//! A virtual thread changes its carrier only where it waits. Between a TLS call and the `getLastErrorNumber` that
//! asks for its error Java does not wait, so that both run on one carrier.

mod entries;
mod ledger;

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};

use crate::ffi;

thread_local! {
    /// The first error of the last TLS call, 0 for none.
    static LAST: Cell<u32> = const { Cell::new(0) };
    /// How many natives are on the thread's stack: one inside a callback must leave the queue alone.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A native that may touch OpenSSL. While it lives, the queue is its own.
pub(crate) struct Entered {
    name: &'static CStr,
    outermost: bool,
    /// It may have touched OpenSSL.
    looked: Cell<bool>,
    /// What others have left stays until a native looks.
    #[cfg(feature = "queue-check")]
    was_dirty: bool,
}

impl Entered {
    /// Enters a native. What others have left on the queue is recorded as found, and cleared: a TLS call must not
    /// see it.
    #[inline]
    pub(crate) fn new(name: &'static CStr) -> Self {
        let entered = Self::lazily(name);
        entered.look();
        entered
    }

    /// Enters a native that mostly does without OpenSSL's error queue. Before it does anything that may leave an
    /// error there it must [`look`](Self::look).
    #[inline]
    pub(crate) fn lazily(name: &'static CStr) -> Self {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        Self {
            name,
            outermost: depth == 0,
            looked: Cell::new(false),
            #[cfg(feature = "queue-check")]
            was_dirty: is_dirty(),
        }
    }

    /// See [`lazily`](Self::lazily).
    #[inline]
    pub(crate) fn look(&self) {
        if !self.looked.replace(true) && self.outermost && is_dirty() {
            ledger::found(self.name);
        }
    }

    /// Whether it does not run inside another native, in a callback.
    pub(crate) fn is_outermost(&self) -> bool {
        self.outermost
    }

    /// After a TLS call: keeps its first error for Java, and empties the queue. Inside a callback the queue is
    /// the caller's.
    #[inline]
    pub(crate) fn tls(&self) {
        if self.outermost && is_dirty() {
            keep_first();
        }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if self.outermost && self.looked.get() && is_dirty() {
            ledger::left(self.name);
        }
        DEPTH.set(DEPTH.get().saturating_sub(1));
        #[cfg(feature = "queue-check")]
        if self.outermost && (self.looked.get() || !self.was_dirty) {
            check(self.name);
        }
    }
}

/// Aborts where a native has not done what this module is for.
#[cfg(feature = "queue-check")]
fn check(name: &CStr) {
    if is_dirty() {
        eprintln!("{} has left the error queue dirty", name.to_string_lossy());
        std::process::abort();
    }
}

#[inline]
fn is_dirty() -> bool {
    peek() != 0
}

#[inline]
fn peek() -> u64 {
    // SAFETY: takes nothing; ERR_peek_error(3).
    unsafe { ffi::ERR_peek_error() }
}

#[cold]
#[inline(never)]
fn keep_first() {
    keep(peek());
    clear();
}

/// Whether no error is there.
pub(crate) fn is_empty() -> bool {
    !is_dirty()
}

/// Empties the queue.
pub(crate) fn clear() {
    // SAFETY: takes nothing; ERR_clear_error(3).
    unsafe { ffi::ERR_clear_error() };
}

/// The oldest error of the queue, which is emptied; 0 for none. For errors that Java gets to know later.
pub(crate) fn take_first() -> u64 {
    let first = peek();
    if first != 0 {
        clear();
    }
    first
}

/// Keeps an error for Java, unless there is an earlier one that it has not asked for.
pub(crate) fn keep(code: u64) {
    if LAST.get() == 0 {
        // Packed codes have 32 bits.
        LAST.set(code as u32);
    }
}

/// The error that was kept, which is Java's now; 0 for none.
#[inline(always)]
pub(crate) fn take_last() -> u32 {
    LAST.replace(0)
}

/// The oldest error of the queue, which is taken out; 0 for none.
pub(crate) fn pop() -> u64 {
    // SAFETY: takes nothing; ERR_get_error(3).
    unsafe { ffi::ERR_get_error() }
}

/// The text of the oldest error of the queue, which is taken out, for a message.
pub(crate) fn pop_text() -> String {
    match pop() {
        0 => "no OpenSSL error".to_owned(),
        code => text(code).to_string_lossy().into_owned(),
    }
}

/// What a packed code means, as ERR_error_string_n(3) says it.
pub(crate) fn text(code: u64) -> CString {
    let mut buffer = [0_u8; 256];
    // SAFETY: the buffer has the size that is said, and is ended by a NUL whatever the code.
    unsafe { ffi::ERR_error_string_n(code, buffer.as_mut_ptr().cast::<c_char>(), buffer.len()) };
    CStr::from_bytes_until_nul(&buffer).map(CStr::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests;
