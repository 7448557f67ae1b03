//! A connection's side towards the network: a BIO of our own between OpenSSL and the buffers that Java lends.
//!
//! The C library has a BIO pair: two rings of 17 KiB, and what comes in is copied into one of them before OpenSSL copies it
//! into its own buffer. Here OpenSSL reads straight from Java's buffer while Java waits in `writeToBIO`; only what
//! OpenSSL does not take then is kept ([`Inbox`]). What goes out is kept until Java fetches it.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr;
use std::sync::OnceLock;

use crate::ffi::{self, BIO, BIO_METHOD, SSL};
use crate::java::Refusal;
use crate::queue;

/// So much is kept for OpenSSL; Java comes again with the rest.
const INBOX: usize = 64 * 1024;
/// Of a record: type, version and length; RFC 8446, 5.1.
const HEADER: usize = 5;
/// So much is kept for the network: Java fetches all there is at once, into a buffer with room for one record of
/// the longest kind.
const OUTBOX: usize = 17 * 1024;

/// Ciphertext on its way to OpenSSL.
#[derive(Default)]
struct Inbox {
    /// What was kept, the older part; `start` says what of it has been read.
    kept: Vec<u8>,
    start: usize,
}

impl Inbox {
    fn len(&self) -> usize {
        self.kept.len() - self.start
    }

    /// Copies the oldest bytes out; returns how many.
    fn read(&mut self, to: &mut [u8]) -> usize {
        let unread = self.kept.get(self.start..).unwrap_or_default();
        let length = unread.len().min(to.len());
        to[..length].copy_from_slice(&unread[..length]);
        self.start += length;
        if self.start == self.kept.len() {
            // A connection that rests needs no memory.
            *self = Self::default();
        }
        length
    }

    /// Whether it begins with a whole record: OpenSSL takes no more than the record that it is at.
    fn has_record(&self) -> bool {
        let unread = self.kept.get(self.start..).unwrap_or_default();
        let &[_type, _, _, high, low, ..] = unread else { return false };
        unread.len() >= HEADER + usize::from(u16::from_be_bytes([high, low]))
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.kept.drain(..self.start);
            self.start = 0;
        }
        self.kept.extend_from_slice(bytes);
    }
}

/// Both directions.
#[derive(Default)]
pub(super) struct Network {
    inbox: RefCell<Inbox>,
    /// What Java lends just now: where it begins and how much is left. Read after what is kept.
    lent: Cell<Option<(*const u8, usize)>>,
    outbox: RefCell<Vec<u8>>,
    /// Java has let go of its side.
    closed: Cell<bool>,
}

impl Network {
    /// Gives an `SSL` this network in place of a socket.
    ///
    /// # Safety
    /// `ssl` is live and has none yet; the network stays where it is for as long as `ssl` lives, and both are used
    /// by one thread at a time.
    pub(super) unsafe fn attach(&self, ssl: *mut SSL) -> Result<(), Refusal> {
        let method = method().ok_or_else(|| Refusal::exception(queue::pop_text()))?;
        // SAFETY: the method lives for ever.
        let bio = unsafe { ffi::BIO_new(method) };
        if bio.is_null() {
            return Err(Refusal::exception(queue::pop_text()));
        }
        // SAFETY: the BIO is live and nobody else's; the caller vouches for the network's life.
        unsafe { ffi::BIO_set_data(bio, ptr::from_ref(self).cast_mut().cast()) };
        // SAFETY: as above.
        unsafe { ffi::BIO_set_init(bio, 1) };
        // SAFETY: both are live; the one reference serves for both directions, SSL_set_bio(3).
        unsafe { ffi::SSL_set_bio(ssl, bio, bio) };
        Ok(())
    }

    pub(super) fn close(&self) {
        self.closed.set(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// How much of `length` bytes there is room for.
    pub(super) fn room(&self, length: usize) -> usize {
        length.min(INBOX.saturating_sub(self.inbox.borrow().len()))
    }

    /// Whether a whole record is kept.
    pub(super) fn has_record(&self) -> bool {
        self.inbox.borrow().has_record()
    }

    /// Whether OpenSSL would find nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.inbox.borrow().len() == 0 && self.lent.get().is_none_or(|(_, length)| length == 0)
    }

    /// Lends bytes to OpenSSL while `work` runs, and keeps what it leaves of them.
    ///
    /// # Safety
    /// `bytes` has `length` bytes, which nobody changes during the call.
    pub(super) unsafe fn lend<R>(
        &self,
        bytes: *const u8,
        length: usize,
        work: impl FnOnce() -> R,
    ) -> R {
        self.lent.set(Some((bytes, length)));
        let result = work();
        if let Some((rest, length)) = self.lent.take()
            && length > 0
        {
            // SAFETY: what is left of the caller's bytes.
            let rest = unsafe { std::slice::from_raw_parts(rest, length) };
            self.inbox.borrow_mut().keep(rest);
        }
        result
    }

    /// Bytes that wait to be sent.
    pub(super) fn to_send(&self) -> usize {
        self.outbox.borrow().len()
    }

    /// Hands the oldest bytes that wait to be sent over; returns how many.
    pub(super) fn fetch(&self, to: &mut [std::mem::MaybeUninit<u8>]) -> usize {
        let mut outbox = self.outbox.borrow_mut();
        let length = outbox.len().min(to.len());
        // A loop that the compiler makes a copy of.
        for (place, byte) in to[..length].iter_mut().zip(&outbox[..length]) {
            place.write(*byte);
        }
        if length == outbox.len() {
            outbox.clear();
        } else {
            outbox.drain(..length);
        }
        length
    }

    fn read(&self, to: &mut [u8]) -> usize {
        let mut length = self.inbox.borrow_mut().read(to);
        if let Some((lent, left)) = self.lent.get()
            && length < to.len()
        {
            let taken = left.min(to.len() - length);
            let place = to[length..].as_mut_ptr();
            // SAFETY: `lend` has vouched for `left` bytes, and `place` has room for `taken`; OpenSSL's buffer is not
            // in what Java lends.
            unsafe { ptr::copy_nonoverlapping(lent, place, taken) };
            // SAFETY: within, or at the end of, the bytes that were lent.
            self.lent.set(Some((unsafe { lent.add(taken) }, left - taken)));
            length += taken;
        }
        length
    }

    fn write(&self, bytes: &[u8]) -> usize {
        let mut outbox = self.outbox.borrow_mut();
        let taken = bytes.len().min(OUTBOX.saturating_sub(outbox.len()));
        outbox.extend_from_slice(&bytes[..taken]);
        taken
    }
}

/// What OpenSSL calls; made once. Nothing where it cannot be made.
fn method() -> Option<*mut BIO_METHOD> {
    struct Method(*mut BIO_METHOD);
    // SAFETY: it is only read once it has been made.
    unsafe impl Send for Method {}
    // SAFETY: as above.
    unsafe impl Sync for Method {}
    static METHOD: OnceLock<Option<Method>> = OnceLock::new();

    let made = METHOD.get_or_init(|| {
        // SAFETY: takes nothing; thread-safe.
        let index = unsafe { ffi::BIO_get_new_index() };
        if index == -1 {
            return None;
        }
        // SAFETY: the name lives for ever.
        let method =
            unsafe { ffi::BIO_meth_new(index | ffi::BIO_TYPE_SOURCE_SINK, c"sslsweep".as_ptr()) };
        if method.is_null() {
            return None;
        }
        // SAFETY: the method is live and nobody else's.
        let write = unsafe { ffi::BIO_meth_set_write__fixed_rust(method, Some(on_write)) };
        // SAFETY: as above.
        let read = unsafe { ffi::BIO_meth_set_read__fixed_rust(method, Some(on_read)) };
        // SAFETY: as above.
        let ctrl = unsafe { ffi::BIO_meth_set_ctrl__fixed_rust(method, Some(on_ctrl)) };
        (write == 1 && read == 1 && ctrl == 1).then_some(Method(method))
    });
    made.as_ref().map(|method| method.0)
}

/// The network behind a BIO of ours.
///
/// # Safety
/// OpenSSL calls with a BIO that [`Network::attach`] has made.
unsafe fn network<'a>(bio: *mut BIO) -> Option<&'a Network> {
    // SAFETY: the caller vouches for the BIO.
    let data: *mut c_void = unsafe { ffi::BIO_get_data(bio) };
    // SAFETY: `attach` has put it there, and it outlives the BIO.
    unsafe { data.cast::<Network>().as_ref() }
}

// None of these can panic: slices are cut to what there is, and each cell is borrowed for a copy alone.

unsafe extern "C" fn on_read(bio: *mut BIO, to: *mut c_char, length: c_int) -> c_int {
    // SAFETY: a BIO of ours.
    unsafe { ffi::BIO_clear_flags(bio, ffi::BIO_FLAGS_RWS | ffi::BIO_FLAGS_SHOULD_RETRY) };
    // SAFETY: as above.
    let Some(network) = (unsafe { network(bio) }) else { return -1 };
    let Ok(room) = usize::try_from(length) else { return -1 };
    if to.is_null() || room == 0 {
        return 0;
    }
    // SAFETY: OpenSSL gives a buffer of so many bytes, which it has initialised or does not care about:
    // they are only written to.
    let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), room) };
    match network.read(to) {
        0 => {
            let retry = ffi::BIO_FLAGS_READ | ffi::BIO_FLAGS_SHOULD_RETRY;
            // SAFETY: as above.
            unsafe { ffi::BIO_set_flags(bio, retry) };
            -1
        }
        read => read as c_int,
    }
}

unsafe extern "C" fn on_write(bio: *mut BIO, bytes: *const c_char, length: c_int) -> c_int {
    // SAFETY: a BIO of ours.
    unsafe { ffi::BIO_clear_flags(bio, ffi::BIO_FLAGS_RWS | ffi::BIO_FLAGS_SHOULD_RETRY) };
    // SAFETY: as above.
    let Some(network) = (unsafe { network(bio) }) else { return -1 };
    let Ok(length) = usize::try_from(length) else { return -1 };
    if bytes.is_null() || length == 0 {
        return 0;
    }
    // SAFETY: OpenSSL gives so many bytes, which stay during the call.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
    match network.write(bytes) {
        0 => {
            let retry = ffi::BIO_FLAGS_WRITE | ffi::BIO_FLAGS_SHOULD_RETRY;
            // SAFETY: as above.
            unsafe { ffi::BIO_set_flags(bio, retry) };
            -1
        }
        written => written as c_int,
    }
}

unsafe extern "C" fn on_ctrl(
    bio: *mut BIO,
    command: c_int,
    _large: c_long,
    _argument: *mut c_void,
) -> c_long {
    // SAFETY: a BIO of ours.
    let Some(network) = (unsafe { network(bio) }) else { return 0 };
    match command {
        ffi::BIO_CTRL_FLUSH | ffi::BIO_CTRL_DUP => 1,
        ffi::BIO_CTRL_PENDING => network.inbox.borrow().len() as c_long,
        ffi::BIO_CTRL_WPENDING => network.to_send() as c_long,
        // Never the end: Java says when the peer has gone by closing the engine.
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(network: &Network, room: usize) -> Vec<u8> {
        let mut buffer = vec![0; room];
        let length = network.read(&mut buffer);
        buffer.truncate(length);
        buffer
    }

    #[test]
    fn what_is_kept_comes_before_what_is_lent_and_nothing_is_lost() {
        let network = Network::default();
        // SAFETY: literals live for ever.
        unsafe { network.lend(b"abcdef".as_ptr(), 6, || assert_eq!(read(&network, 2), b"ab")) };
        // SAFETY: as above.
        unsafe { network.lend(b"ghi".as_ptr(), 3, || assert_eq!(read(&network, 6), b"cdefgh")) };
        assert!(!network.is_empty());
        assert_eq!(read(&network, 9), b"i");
        assert!(network.is_empty());
        assert_eq!(network.room(INBOX + 1), INBOX);
    }

    #[test]
    fn no_more_is_taken_than_java_can_fetch() {
        let network = Network::default();
        assert_eq!(network.write(&vec![7; OUTBOX + 5]), OUTBOX);
        assert_eq!(network.write(b"x"), 0);
        let mut buffer = vec![std::mem::MaybeUninit::uninit(); OUTBOX - 1];
        assert_eq!(network.fetch(&mut buffer), OUTBOX - 1);
        assert_eq!(network.to_send(), 1);
        assert_eq!(network.write(b"xy"), 2);
        assert_eq!(network.fetch(&mut buffer), 3);
        assert_eq!(network.fetch(&mut buffer), 0);
    }
}
