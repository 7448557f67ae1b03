//! The certificates that a peer has shown, in DER.

use std::ffi::c_int;

use crate::certificate::{Owned, to_der};
use crate::connection::Connection;
use crate::ffi::{self, Stack};

/// Its own; nothing where it has shown none.
pub(crate) fn certificate(connection: &Connection) -> Option<Vec<u8>> {
    // SAFETY: the SSL is live, and this thread uses it.
    let shown = unsafe { ffi::SSL_get1_peer_certificate(connection.ssl()) };
    // SAFETY: a reference that is ours, or null.
    let shown = unsafe { Owned::new(shown) }?;
    // SAFETY: live until the end of this function.
    unsafe { to_der(shown.as_ptr()) }
}

/// Its chain; nothing where there is none, an empty list where one cannot be encoded. A server's does not have the
/// peer's own in it.
pub(crate) fn chain(connection: &Connection) -> Option<Vec<Vec<u8>>> {
    // SAFETY: the SSL is live, and this thread uses it.
    let chain = unsafe { ffi::SSL_get_peer_cert_chain(connection.ssl()) };
    // SAFETY: a stack of the SSL's, or null.
    if unsafe { ffi::OPENSSL_sk_num(chain.cast()) } <= 0 {
        return None;
    }
    Some(encoded(chain.cast()).unwrap_or_default())
}

/// All certificates of a stack that somebody else keeps alive; nothing where one cannot be encoded.
pub(super) fn encoded(stack: *mut Stack) -> Option<Vec<Vec<u8>>> {
    // SAFETY: a stack of OpenSSL's, or null, which stays meanwhile.
    let count = unsafe { ffi::OPENSSL_sk_num(stack) };
    (0..count.max(0))
        .map(|place: c_int| {
            // SAFETY: as above; the place is one of the stack's.
            let one = unsafe { ffi::OPENSSL_sk_value(stack, place) };
            // SAFETY: the stack is one of certificates, which are live.
            unsafe { to_der(one.cast()) }
        })
        .collect()
}
