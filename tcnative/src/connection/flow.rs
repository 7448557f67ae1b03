//! Bytes through a connection: what `OpenSSLEngine.wrap` and `unwrap` call.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::ptr;

use super::Connection;
use super::stash::Stash;
use crate::ffi;
use crate::handle::{Fact, Held};
use crate::java::Refusal;
use crate::queue::{self, Entered};

/// The most plaintext that is taken at once: a record's.
const RECORD: i32 = 16 * 1024;

/// Into the rest of a buffer that is shorter the next record is not read: Java has little to gain.
const WORTH: usize = 1024;

/// What a connection knows about its next read.
#[derive(Default)]
pub(super) struct State {
    /// OpenSSL has asked for more from the network, and got none since: to ask again is of no use.
    starved: Cell<bool>,
    /// The answer to the priming read that was made ahead, while Java's buffer was lent.
    primed: Cell<Option<c_int>>,
    /// The first error of that read; 0 for none.
    primed_error: Cell<u64>,
    /// Java has taken plaintext since the last handshake: it comes for what is here before it waits for the network.
    delivering: Cell<bool>,
    /// Java's last ciphertext was not taken.
    refused: Cell<bool>,
    /// Plaintext that OpenSSL has given away already, the next for Java.
    stash: RefCell<Stash>,
}

impl State {
    /// OpenSSL may have something to do that does not come from the network.
    pub(super) fn wake(&self) {
        self.starved.set(false);
    }
}

/// A buffer of Java's.
///
/// What is behind an address cannot be checked: as for the C library it is the direct buffer's that
/// `Buffer.address` gave. What no buffer can have is refused.
fn buffer(address: i64, length: i32) -> Result<(*mut u8, usize), Refusal> {
    let length = usize::try_from(length)
        .map_err(|_| Refusal::exception(format!("a buffer cannot have {length} bytes")))?;
    let address = usize::try_from(address).ok().filter(|&address| length == 0 || address != 0);
    let address =
        address.ok_or_else(|| Refusal::exception("the buffer's address is that of no buffer"))?;
    Ok((ptr::with_exposed_provenance_mut(address), length))
}

/// A native in a callback of the connection's own must not drive it: OpenSSL is in the middle of it.
fn not_inside(held: &Held<'_, Connection>) -> Result<(), Refusal> {
    if held.is_inner() {
        return Err(Refusal::exception("the SSL connection is in the middle of a call"));
    }
    Ok(())
}

/// Ciphertext from the network: `SSL.writeToBIO`. Returns how many bytes were taken, -1 where there is no room.
pub(crate) fn write_network(
    entered: &Entered,
    held: &Held<'_, Connection>,
    address: i64,
    length: i32,
) -> Result<i32, Refusal> {
    not_inside(held)?;
    let (bytes, length) = buffer(address, length)?;
    if length == 0 {
        return Ok(0);
    }
    if held.flow.primed_error.get() != 0 {
        // The connection is lost; Java is about to be told why.
        return Ok(length as i32);
    }
    entered.look();
    if held.flow.delivering.get() && held.is_ahead() {
        held.note_facts();
        return Ok(-1);
    }
    let length = held.network.room(length);
    if length == 0 {
        return Ok(-1);
    }
    held.flow.wake();
    held.flow.primed.set(None);
    // SAFETY: Java's direct buffer, which belongs to this call; see `buffer`.
    unsafe {
        held.network.lend(bytes, length, || {
            if held.takes_data() {
                held.prime();
            }
        });
    };
    held.note_facts();
    Ok(length as i32)
}

/// Ciphertext for the network: `SSL.readFromBIO`. Returns how many bytes there were, -1 for none.
pub(crate) fn read_network(
    held: &Held<'_, Connection>,
    address: i64,
    length: i32,
) -> Result<i32, Refusal> {
    let (bytes, length) = buffer(address, length)?;
    if length == 0 {
        return Ok(0);
    }
    // No more than there is: Java's buffer may be shorter than it says where it asks for all.
    let room = length.min(held.network.to_send());
    if room == 0 {
        return Ok(-1);
    }
    // SAFETY: Java's direct buffer, which belongs to this call; see `buffer`.
    let buffer = unsafe { std::slice::from_raw_parts_mut(bytes.cast(), room) };
    let fetched = held.network.fetch(buffer);
    held.flow.wake();
    held.facts().set(Fact::ToSend, held.network.to_send() as i32);
    Ok(fetched as i32)
}

/// Plaintext: `SSL.readFromSSL`. With no room it is Java's priming read, which lets OpenSSL take what has come in.
#[inline]
pub(crate) fn read(
    entered: &Entered,
    held: &Held<'_, Connection>,
    address: i64,
    length: i32,
) -> Result<i32, Refusal> {
    not_inside(held)?;
    let (bytes, length) = buffer(address, length)?;
    let state = &held.flow;
    let length = length.min(i32::MAX as usize);
    // In a handshake the priming read has other things to do.
    if held.available() > 0 && (length > 0 || state.delivering.get()) {
        if length > 0 {
            entered.look();
        }
        // SAFETY: the buffer is Java's, see `buffer`.
        let read = unsafe { held.fill(bytes, length) };
        state.delivering.set(state.delivering.get() || read > 0);
        held.note_facts();
        return Ok(read);
    }
    if let Some(answer) = state.primed.take()
        && (length == 0 || state.primed_error.get() != 0)
    {
        let error = state.primed_error.replace(0);
        if error != 0 {
            queue::keep(error);
        }
        held.note_facts();
        return Ok(answer);
    }
    if state.starved.get() {
        return Ok(-1);
    }
    entered.look();
    // SAFETY: the SSL is live, and this thread uses it; the buffer is Java's, see `buffer`.
    let answer = unsafe { ffi::SSL_read(held.ssl, bytes.cast(), length as c_int) };
    held.after_read(answer);
    if answer <= 0 {
        entered.tls();
    }
    held.note_facts();
    Ok(answer)
}

/// Plaintext: `SSL.writeToSSL`. No more than a record is taken at once.
pub(crate) fn write(
    entered: &Entered,
    held: &Held<'_, Connection>,
    address: i64,
    length: i32,
) -> Result<i32, Refusal> {
    not_inside(held)?;
    let (bytes, length) = buffer(address, length)?;
    let length = (length.min(RECORD as usize)) as c_int;
    held.flow.wake();
    // SAFETY: the SSL is live, and this thread uses it; the buffer is Java's, see `buffer`.
    let answer = unsafe { ffi::SSL_write(held.ssl, bytes.cast_const().cast(), length) };
    if answer <= 0 {
        entered.tls();
    }
    held.note_facts();
    Ok(answer)
}

/// `SSL.doHandshake`.
pub(crate) fn handshake(entered: &Entered, held: &Held<'_, Connection>) -> Result<i32, Refusal> {
    not_inside(held)?;
    held.flow.wake();
    held.flow.primed.set(None);
    let error = held.flow.primed_error.replace(0);
    if error != 0 {
        // The connection is lost, and OpenSSL has said why already.
        queue::keep(error);
        return Ok(-1);
    }
    held.flow.delivering.set(false);
    // SAFETY: the SSL is live, and this thread uses it.
    let answer = unsafe { ffi::SSL_do_handshake(held.ssl) };
    if answer <= 0 {
        entered.tls();
    }
    held.note_facts();
    Ok(answer)
}

/// `SSL.renegotiate`.
pub(crate) fn renegotiate(entered: &Entered, held: &Held<'_, Connection>) -> Result<i32, Refusal> {
    not_inside(held)?;
    held.flow.wake();
    held.flow.delivering.set(false);
    // SAFETY: the SSL is live, and this thread uses it.
    let answer = unsafe { ffi::SSL_renegotiate(held.ssl) };
    if answer <= 0 {
        entered.tls();
    }
    Ok(answer)
}

/// `SSL.shutdownSSL`. Java does not ask for its errors: they are left for the ledger.
pub(crate) fn shut_down(held: &Held<'_, Connection>) -> Result<i32, Refusal> {
    not_inside(held)?;
    held.flow.wake();
    // SAFETY: the SSL is live, and this thread uses it.
    let answer = unsafe { ffi::SSL_shutdown(held.ssl) };
    held.note_facts();
    Ok(answer)
}

impl Connection {
    /// Whether a read would find records of data next, and no part of a handshake, in which Java counts on
    /// OpenSSL doing things in its own order.
    fn takes_data(&self) -> bool {
        if self.handshakes.get() == 0 || self.is_pha_in_progress() {
            return false;
        }
        // SAFETY: the SSL is live, and this thread uses it.
        let in_handshake = unsafe { ffi::SSL_in_init(self.ssl) };
        // SAFETY: as above.
        let renegotiates = unsafe { ffi::SSL_renegotiate_pending(self.ssl) };
        // What is there to be read must be read first.
        in_handshake == 0 && renegotiates == 0 && self.readable() == 0
    }

    /// Plaintext that OpenSSL has, in bytes.
    fn readable(&self) -> c_int {
        // SAFETY: the SSL is live, and this thread uses it.
        unsafe { ffi::SSL_pending(self.ssl) }
    }

    /// Java's priming read, ahead of it.
    fn prime(&self) {
        // SAFETY: the SSL is live, and this thread uses it; nothing is written for 0 bytes.
        let answer = unsafe { ffi::SSL_read(self.ssl, ptr::null_mut(), 0) };
        self.after_read(answer);
        // Where there is plaintext now, Java's own will say so, and once it has taken that, something else.
        self.flow.primed.set((self.readable() == 0).then_some(answer));
        self.flow.primed_error.set(queue::take_first());
    }

    /// Plaintext that is here, in bytes.
    fn available(&self) -> c_int {
        self.readable() + self.flow.stash.borrow().len() as c_int
    }

    /// Java has not yet taken what is here, and gains nothing by giving more: what OpenSSL cannot take at once would be
    /// copied twice. Where the next record can be read without, it is, so that Java finds it.
    fn is_ahead(&self) -> bool {
        let state = &self.flow;
        self.stash();
        if !(state.refused.get() || self.readable() > 0 || self.network.has_record()) {
            return false;
        }
        if self.takes_data() && self.network.has_record() {
            state.primed.set(None);
            self.prime();
        }
        // Java comes twice with the same buffer: once before it reads, and once when its own buffer is full. Had the
        // second been taken, it would fetch more before it reads again, and would be refused for ever after.
        let refused = self.available() > 0;
        state.refused.set(refused && !state.refused.get());
        refused
    }

    /// Makes room in OpenSSL for the next record: the rest of the last one goes into memory of ours.
    fn stash(&self) {
        let readable = self.readable();
        if readable <= 0 || self.flow.stash.borrow().len() > 0 {
            return;
        }
        let mut bytes = vec![0; readable as usize];
        // SAFETY: the SSL is live, and this thread uses it; there is room for so many bytes.
        let answer = unsafe { ffi::SSL_read(self.ssl, bytes.as_mut_ptr().cast(), readable) };
        self.after_read(answer);
        bytes.truncate(usize::try_from(answer).unwrap_or(0));
        self.flow.stash.replace(Stash::new(bytes));
    }

    /// Gives plaintext that is here away, and that of records that have come in whole; returns how many bytes. Java would
    /// come for each record with a new direct buffer, which it clears first. Only for long buffers, though: a short one
    /// is for a part of something, and what comes after that may go elsewhere.
    ///
    /// # Safety
    /// `bytes` has room for `length` bytes.
    unsafe fn fill(&self, bytes: *mut u8, length: usize) -> c_int {
        if length == 0 {
            return 0;
        }
        // SAFETY: the caller vouches for the room.
        let mut filled = unsafe { self.flow.stash.borrow_mut().take(bytes, length) };
        while filled < length
            && (self.readable() > 0
                || length - filled >= WORTH && self.network.has_record() && self.takes_data())
        {
            // SAFETY: the caller vouches for the room, of which so much is filled.
            let place = unsafe { bytes.add(filled) };
            // SAFETY: the SSL is live, and this thread uses it; the place is as above.
            let answer =
                unsafe { ffi::SSL_read(self.ssl, place.cast(), (length - filled) as c_int) };
            self.after_read(answer);
            if answer <= 0 {
                // For Java's next priming read: first it gets what there is.
                self.flow.primed.set(Some(answer));
                self.flow.primed_error.set(queue::take_first());
                break;
            }
            filled += answer as usize;
        }
        filled as c_int
    }

    fn after_read(&self, answer: c_int) {
        // SAFETY: the SSL is live, and this thread uses it.
        let wants = unsafe { ffi::SSL_want(self.ssl) };
        let starved = answer < 0 && wants == ffi::SSL_READING && self.network.is_empty();
        self.flow.starved.set(starved || answer > 0 && self.has_nothing_left());
    }

    /// After a read: neither plaintext nor ciphertext is there. A record of which a part has come in is OpenSSL's, and waits for
    /// the network.
    fn has_nothing_left(&self) -> bool {
        // SAFETY: the SSL is live, and this thread uses it.
        let readable = unsafe { ffi::SSL_has_pending(self.ssl) };
        // SAFETY: as above.
        let in_handshake = unsafe { ffi::SSL_in_init(self.ssl) };
        // SAFETY: as above.
        let shutdown = unsafe { ffi::SSL_get_shutdown(self.ssl) };
        readable == 0 && in_handshake == 0 && shutdown == 0 && self.network.is_empty()
    }
}

impl Held<'_, Connection> {
    /// What Java will ask for next.
    #[inline]
    fn note_facts(&self) {
        // SAFETY: the SSL is live, and this thread uses it.
        let mut shutdown = unsafe { ffi::SSL_get_shutdown(self.ssl()) };
        if self.flow.primed.get().is_some() {
            // The peer's end comes after what Java has not read yet.
            shutdown &= !ffi::SSL_RECEIVED_SHUTDOWN;
        }
        let facts = self.facts();
        facts.set(Fact::Readable, self.available());
        facts.set(Fact::Shutdown, shutdown);
        facts.set(Fact::ToSend, self.network.to_send() as i32);
    }
}
