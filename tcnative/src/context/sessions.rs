//! The session cache of a context, its figures, and the keys of its tickets.

use std::ffi::{c_int, c_long};

use super::Context;
use crate::ffi;
use crate::java::Refusal;
use crate::queue;

/// Ticket keys: a name, a key for the MAC and one for the cipher.
const TICKET_KEYS_LENGTH: usize = 80;

/// A figure of the cache; SSL_CTX_sess_number(3).
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(crate) enum Counter {
    Number = ffi::SSL_CTRL_SESS_NUMBER,
    Connect = ffi::SSL_CTRL_SESS_CONNECT,
    ConnectGood = ffi::SSL_CTRL_SESS_CONNECT_GOOD,
    ConnectRenegotiate = ffi::SSL_CTRL_SESS_CONNECT_RENEGOTIATE,
    Accept = ffi::SSL_CTRL_SESS_ACCEPT,
    AcceptGood = ffi::SSL_CTRL_SESS_ACCEPT_GOOD,
    AcceptRenegotiate = ffi::SSL_CTRL_SESS_ACCEPT_RENEGOTIATE,
    Hits = ffi::SSL_CTRL_SESS_HIT,
    CallbackHits = ffi::SSL_CTRL_SESS_CB_HIT,
    Misses = ffi::SSL_CTRL_SESS_MISSES,
    Timeouts = ffi::SSL_CTRL_SESS_TIMEOUTS,
    CacheFull = ffi::SSL_CTRL_SESS_CACHE_FULL,
}

impl Context {
    pub(crate) fn session_counter(&self, counter: Counter) -> i64 {
        let nothing = std::ptr::null_mut();
        let reading = self.reading();
        // SAFETY: the context is live; these commands take nothing and give a number.
        unsafe { ffi::SSL_CTX_ctrl(reading.context, counter as c_int, 0, nothing) }
    }

    pub(crate) fn session_cache_size(&self) -> i64 {
        // SAFETY: the context is live, and not being changed.
        unsafe { ffi::SSL_CTX_sess_get_cache_size(self.reading().context) }
    }

    /// Turns the server's cache on, with room for so many sessions (0: any number); returns how many it had.
    pub(crate) fn set_session_cache_size(&self, size: c_long) -> i64 {
        if size < 0 {
            return 0;
        }
        let changing = self.changing();
        // SAFETY: the context is live, and nobody uses it meanwhile.
        unsafe { ffi::set_session_cache_mode(changing.context, ffi::SSL_SESS_CACHE_SERVER) };
        // SAFETY: as above.
        unsafe { ffi::SSL_CTX_sess_set_cache_size(changing.context, size) }
    }

    pub(crate) fn session_timeout(&self) -> i64 {
        // SAFETY: the context is live, and not being changed.
        unsafe { ffi::SSL_CTX_get_timeout(self.reading().context) }
    }

    /// In seconds; returns what it was.
    pub(crate) fn set_session_timeout(&self, seconds: c_long) -> i64 {
        // SAFETY: the context is live, and nobody uses it meanwhile.
        unsafe { ffi::SSL_CTX_set_timeout(self.changing().context, seconds) }
    }

    pub(crate) fn session_cache_mode(&self) -> i64 {
        // SAFETY: the context is live, and not being changed.
        unsafe { ffi::session_cache_mode(self.reading().context) }
    }

    /// Returns what it was.
    pub(crate) fn set_session_cache_mode(&self, mode: c_long) -> i64 {
        // SAFETY: the context is live, and nobody uses it meanwhile.
        unsafe { ffi::set_session_cache_mode(self.changing().context, mode) }
    }

    pub(crate) fn set_ticket_keys(&self, mut keys: Vec<u8>) -> Result<(), Refusal> {
        if keys.len() != TICKET_KEYS_LENGTH {
            return Err(Refusal::exception(format!(
                "session ticket keys have {TICKET_KEYS_LENGTH} bytes, not {}",
                keys.len()
            )));
        }
        let changing = self.changing();
        let length = TICKET_KEYS_LENGTH as c_long;
        // SAFETY: the context is live, and nobody uses it meanwhile; the keys, which are copied, have that
        // length.
        let done = unsafe { ffi::set_ticket_keys(changing.context, keys.as_mut_ptr(), length) };
        if done == 1 { Ok(()) } else { Err(Refusal::exception(queue::pop_text())) }
    }

    /// The context in which sessions are valid, of at most 32 bytes. Returns whether OpenSSL takes it.
    pub(crate) fn set_session_id_context(&self, id: &[u8]) -> bool {
        let Ok(length) = u32::try_from(id.len()) else { return false };
        let changing = self.changing();
        // SAFETY: the context is live, and nobody uses it meanwhile; the bytes, which are copied, have that
        // length.
        let done =
            unsafe { ffi::SSL_CTX_set_session_id_context(changing.context, id.as_ptr(), length) };
        done == 1
    }
}
