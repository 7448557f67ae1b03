//! Whether a peer's certificate is accepted: by OpenSSL with authorities from files, or by Java's trust manager.

mod chain;
mod java;
mod ocsp;
mod peer;

pub(crate) use chain::{set_authorities, set_revocation};
pub(crate) use java::{Verifier, set_verifier};
pub(crate) use ocsp::Settings as Ocsp;
pub(crate) use peer::{certificate as peer_certificate, chain as peer_chain};

use std::ffi::c_int;

use crate::connection::Connection;
use crate::context::Context;
use crate::ffi;

/// How a client is asked for a certificate: `SSL.SSL_CVERIFY_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Level {
    /// Nothing was said: as [`Level::None`].
    Unset = -1,
    /// It is not.
    None = 0,
    /// One that it has must be good.
    Optional = 1,
    /// It must have a good one.
    Require = 2,
    /// One that it has need not be of an authority that is known.
    OptionalNoCa = 3,
}

impl Level {
    /// Nothing where the number is none of them.
    pub(crate) fn of(number: i32) -> Option<Self> {
        Some(match number {
            -1 => Self::Unset,
            0 => Self::None,
            1 => Self::Optional,
            2 => Self::Require,
            3 => Self::OptionalNoCa,
            _ => return None,
        })
    }

    /// As SSL_CTX_set_verify(3) takes it.
    fn mode(self) -> c_int {
        match self {
            Self::Unset | Self::None => ffi::SSL_VERIFY_NONE,
            Self::Optional | Self::OptionalNoCa => ffi::SSL_VERIFY_PEER,
            Self::Require => ffi::SSL_VERIFY_PEER | ffi::SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        }
    }
}

/// Sets how clients are asked. A depth of 0 or less leaves the depth as it is.
pub(crate) fn set_for_context(context: &Context, level: Level, depth: i32) {
    context.set_level(level, depth);
    let changing = context.changing();
    // SAFETY: the context is live, and nobody else uses it meanwhile; the callback lives for ever.
    unsafe {
        ffi::SSL_CTX_set_verify(changing.context, level.mode(), Some(chain::on_verify));
    };
    drop(changing);
    if level == Level::Require && context.mode().serves() && !context.has_authorities() {
        tracing::debug!("certificates are required, and no authority has been set yet");
    }
}

/// As [`set_for_context`], for one connection. Level and depth are kept in the context, as Tomcat's callers expect of
/// tomcat-native: they ask one context's connections for certificates in one way.
pub(crate) fn set_for_connection(connection: &Connection, level: Level, depth: i32) {
    connection.context().set_level(level, depth);
    // SAFETY: the SSL is live, and this thread uses it; the callback lives for ever.
    unsafe { ffi::SSL_set_verify(connection.ssl(), level.mode(), Some(chain::on_verify)) };
}

/// The connection whose peer is being verified.
///
/// # Safety
/// OpenSSL calls with a store context of a connection that the calling thread uses.
unsafe fn connection<'a>(store: *mut ffi::X509_STORE_CTX) -> Option<&'a Connection> {
    // SAFETY: takes nothing.
    let index = unsafe { ffi::SSL_get_ex_data_X509_STORE_CTX_idx() };
    // SAFETY: the caller vouches for the store context.
    let ssl = unsafe { ffi::X509_STORE_CTX_get_ex_data(store, index) };
    if ssl.is_null() {
        return None;
    }
    // SAFETY: OpenSSL keeps the SSL there, X509_STORE_CTX_get_ex_data(3).
    unsafe { crate::connection::of(ssl.cast()) }
}
