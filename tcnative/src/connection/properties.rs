//! What a connection says about itself.

use std::ffi::{CStr, c_int};
use std::ptr;

use super::Connection;
use crate::ffi;

impl Connection {
    /// The protocol, as `SSL.getVersion` names it.
    pub(crate) fn version(&self) -> &CStr {
        // SAFETY: the SSL is live, and this thread uses it.
        let text = unsafe { ffi::SSL_get_version(self.ssl) };
        // SAFETY: a constant text of OpenSSL's.
        unsafe { CStr::from_ptr(text) }
    }

    /// OpenSSL's name of the cipher, `(NONE)` where there is none yet.
    pub(crate) fn cipher(&self) -> &CStr {
        // SAFETY: the SSL is live, and this thread uses it.
        let cipher = unsafe { ffi::SSL_get_current_cipher(self.ssl) };
        // SAFETY: null is allowed, and the text is a constant.
        let name = unsafe { ffi::SSL_CIPHER_get_name(cipher) };
        // SAFETY: as above.
        unsafe { CStr::from_ptr(name) }
    }

    /// The application protocol that both sides agreed on.
    pub(crate) fn application_protocol(&self) -> Option<&[u8]> {
        let (mut start, mut length) = (ptr::null(), 0);
        // SAFETY: the SSL is live, and this thread uses it; the places are ours.
        unsafe { ffi::SSL_get0_alpn_selected(self.ssl, &mut start, &mut length) };
        if start.is_null() || length == 0 {
            return None;
        }
        // SAFETY: so many bytes of the SSL's, which stay while this thread does nothing else with it.
        Some(unsafe { std::slice::from_raw_parts(start, length as usize) })
    }

    /// The id of its session; nothing where it has none.
    pub(crate) fn session_id(&self) -> Option<&[u8]> {
        // SAFETY: the SSL is live, and this thread uses it.
        let session = unsafe { ffi::SSL_get_session(self.ssl) };
        if session.is_null() {
            return None;
        }
        let mut length = 0;
        // SAFETY: the session is the SSL's, and live; the place is ours.
        let start = unsafe { ffi::SSL_SESSION_get_id(session, &mut length) };
        if start.is_null() || length == 0 {
            return None;
        }
        // SAFETY: so many bytes of the session's.
        Some(unsafe { std::slice::from_raw_parts(start, length as usize) })
    }

    /// When its session began, in seconds since 1970; nothing where it has none.
    pub(crate) fn session_time(&self) -> Option<i64> {
        // SAFETY: the SSL is live, and this thread uses it.
        let session = unsafe { ffi::SSL_get_session(self.ssl) };
        if session.is_null() {
            return None;
        }
        // SAFETY: the session is the SSL's, and live.
        Some(unsafe { ffi::SSL_SESSION_get_time(session) })
    }

    /// As SSL_in_init(3).
    pub(crate) fn in_handshake(&self) -> c_int {
        // SAFETY: the SSL is live, and this thread uses it.
        unsafe { ffi::SSL_in_init(self.ssl) }
    }

    /// As SSL_renegotiate_pending(3).
    pub(crate) fn renegotiate_pending(&self) -> c_int {
        // SAFETY: the SSL is live, and this thread uses it.
        unsafe { ffi::SSL_renegotiate_pending(self.ssl) }
    }

    /// Options of `SSL_OP_*`.
    pub(crate) fn options(&self) -> u64 {
        // SAFETY: the SSL is live, and this thread uses it.
        unsafe { ffi::SSL_get_options(self.ssl) }
    }

    pub(crate) fn add_options(&self, options: u64) {
        // SAFETY: the SSL is live, and this thread uses it.
        unsafe { ffi::SSL_set_options(self.ssl, options) };
    }
}
