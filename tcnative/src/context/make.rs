//! How a context is made, with the settings that all of them have.

use std::ffi::c_int;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicI32};

use super::{Context, Mode};
use crate::ffi::{self, SSL_CTX};
use crate::java::Refusal;
use crate::verify::Level;
use crate::{connection, key_log, queue};

/// Bits of `SSL.SSL_PROTOCOL_*`, the oldest first.
const PROTOCOLS: [(i32, c_int); 5] = [
    (2, ffi::SSL3_VERSION),
    (4, ffi::TLS1_VERSION),
    (8, ffi::TLS1_1_VERSION),
    (16, ffi::TLS1_2_VERSION),
    (32, ffi::TLS1_3_VERSION),
];

/// Seconds that a session can be resumed.
const SESSION_TIMEOUT: i64 = 14_400;
const SESSION_CACHE_SIZE: i64 = 256;

/// The oldest and the newest protocol: the newest that is asked for, and down from it without a gap, which OpenSSL
/// cannot have.
fn range(protocols: i32) -> Result<(c_int, c_int), Refusal> {
    if protocols == 0 {
        return Err(Refusal::exception("No SSL protocols requested"));
    }
    let asked = |&&(bit, _): &&(i32, c_int)| protocols & bit != 0;
    let newest = PROTOCOLS.iter().rposition(|protocol| asked(&protocol)).ok_or_else(|| {
        Refusal::exception(format!("none of the SSL protocols {protocols:#x} is known"))
    })?;
    let range = PROTOCOLS[..=newest].iter().rev().take_while(asked);
    let oldest = range.last().map_or(PROTOCOLS[newest].1, |&(_, version)| version);
    Ok((oldest, PROTOCOLS[newest].1))
}

impl Context {
    /// Makes a context for the protocols of `SSL.SSL_PROTOCOL_*`.
    pub(crate) fn make(protocols: i32, mode: i32) -> Result<Self, Refusal> {
        let (oldest, newest) = range(protocols)?;
        let (mode, method) = match mode {
            // SAFETY: take nothing, and give a constant; SSL_CTX_new(3).
            0 => (Mode::Client, unsafe { ffi::TLS_client_method() }),
            // SAFETY: as above.
            1 => (Mode::Server, unsafe { ffi::TLS_server_method() }),
            // SAFETY: as above.
            _ => (Mode::Both, unsafe { ffi::TLS_method() }),
        };
        // SAFETY: a method of OpenSSL's own.
        let context = unsafe { ffi::SSL_CTX_new(method) };
        if context.is_null() {
            return Err(Refusal::exception(format!(
                "the SSL context cannot be made: {}",
                queue::pop_text()
            )));
        }
        let made = Self {
            context,
            mode,
            set_up: RwLock::new(()),
            protocols: RwLock::default(),
            verifier: RwLock::new(None),
            level: AtomicI32::new(Level::Unset as i32),
            depth: AtomicI32::new(1),
            has_authorities: AtomicBool::new(false),
            ocsp: RwLock::default(),
        };
        restrict(context, oldest, newest)?;
        set_defaults(context);
        Ok(made)
    }
}

fn restrict(context: *mut SSL_CTX, oldest: c_int, newest: c_int) -> Result<(), Refusal> {
    // SAFETY: the context is live and nobody else has it yet.
    let minimum = unsafe { ffi::SSL_CTX_set_min_proto_version(context, oldest) };
    // SAFETY: as above.
    let maximum = unsafe { ffi::SSL_CTX_set_max_proto_version(context, newest) };
    if minimum == 1 && maximum == 1 {
        return Ok(());
    }
    Err(Refusal::exception(format!(
        "OpenSSL does not have the SSL protocols {oldest:#x} to {newest:#x}: {}",
        queue::pop_text()
    )))
}

fn set_defaults(context: *mut SSL_CTX) {
    let options = ffi::SSL_OP_ALL
        | ffi::SSL_OP_SINGLE_DH_USE
        | ffi::SSL_OP_SINGLE_ECDH_USE
        | ffi::SSL_OP_NO_COMPRESSION
        | ffi::SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION;
    // SAFETY: the context is live and nobody else has it yet.
    unsafe { ffi::SSL_CTX_set_options(context, options) };
    // SAFETY: as above.
    unsafe { ffi::SSL_CTX_set_mode(context, ffi::SSL_MODE_RELEASE_BUFFERS) };
    // SAFETY: as above.
    unsafe { ffi::SSL_CTX_sess_set_cache_size(context, SESSION_CACHE_SIZE) };
    // SAFETY: as above.
    unsafe { ffi::set_session_cache_mode(context, ffi::SSL_SESS_CACHE_OFF) };
    // SAFETY: as above.
    unsafe { ffi::SSL_CTX_set_timeout(context, SESSION_TIMEOUT) };
    // SAFETY: as above; the callback lives as long as the library, which is never unloaded.
    unsafe { ffi::SSL_CTX_set_info_callback(context, Some(connection::on_info)) };
    // SAFETY: as above. Encrypted keys are read with the password that belongs to them, never by asking on
    // the terminal.
    unsafe { ffi::SSL_CTX_set_default_passwd_cb(context, Some(crate::certificate::no_password)) };
    if key_log::is_open() {
        // SAFETY: as above.
        unsafe { ffi::SSL_CTX_set_keylog_callback(context, Some(key_log::write)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_a_range_down_from_the_newest() {
        let range = |protocols| range(protocols).ok();
        assert_eq!(range(48), Some((ffi::TLS1_2_VERSION, ffi::TLS1_3_VERSION)));
        assert_eq!(range(16), Some((ffi::TLS1_2_VERSION, ffi::TLS1_2_VERSION)));
        assert_eq!(range(32 | 8 | 4), Some((ffi::TLS1_3_VERSION, ffi::TLS1_3_VERSION)));
        assert_eq!(range(62), Some((ffi::SSL3_VERSION, ffi::TLS1_3_VERSION)));
        assert_eq!(range(0), None);
        assert_eq!(range(1), None);
        assert_eq!(range(i32::MIN), None);
    }
}
