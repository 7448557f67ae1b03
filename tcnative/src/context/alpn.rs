//! Application protocols (ALPN, RFC 7301).

use std::ffi::{c_int, c_uchar, c_uint, c_void};
use std::panic::catch_unwind;
use std::sync::PoisonError;

use super::Context;
use crate::connection;
use crate::ffi::{self, SSL};
use crate::java::Refusal;
use crate::queue;

/// What a server does where a client offers none of its protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fallback {
    /// Goes on as if there were no ALPN.
    #[default]
    None,
    /// Takes the last of its own.
    Last,
}

/// The protocols of a context, the best first.
#[derive(Debug, Default)]
pub(super) struct Protocols {
    names: Vec<Vec<u8>>,
    fallback: Fallback,
}

impl Protocols {
    /// The best of ours that is in a client's list, which is in the form of RFC 7301.
    fn select(&self, offered: &[u8]) -> Option<&[u8]> {
        let chosen = self.names.iter().find(|name| names(offered).any(|offer| offer == **name));
        let chosen = chosen.or(match self.fallback {
            Fallback::Last => self.names.last(),
            Fallback::None => None,
        });
        chosen.map(Vec::as_slice)
    }
}

/// The names of a list in the form of RFC 7301: each has its length in front.
fn names(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&length, rest) = list.split_first()?;
        let (name, rest) = rest.split_at_checked(length.into())?;
        list = rest;
        Some(name)
    })
}

fn encoded(names: &[Vec<u8>]) -> Vec<u8> {
    // Names that are longer than a byte can say were left out.
    names.iter().flat_map(|name| [&[name.len() as u8], name.as_slice()].concat()).collect()
}

impl Context {
    /// Sets the protocols. Names that are empty or longer than 255 bytes are no protocols and left out; without
    /// any, nothing changes.
    pub(crate) fn set_protocols(
        &self,
        wanted: &[String],
        fallback: Fallback,
    ) -> Result<(), Refusal> {
        let names: Vec<Vec<u8>> = wanted
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .filter(|name| (1..256).contains(&name.len()))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let changing = self.changing();
        if self.mode.serves() {
            *self.protocols.write().unwrap_or_else(PoisonError::into_inner) =
                Protocols { names, fallback };
            let nothing = std::ptr::null_mut();
            // SAFETY: the context is live and ours; the callback needs no argument.
            unsafe {
                ffi::SSL_CTX_set_alpn_select_cb__fixed_rust(
                    changing.context,
                    Some(select),
                    nothing,
                );
            };
            return Ok(());
        }
        let list = encoded(&names);
        let length = c_uint::try_from(list.len())
            .map_err(|_| Refusal::exception("too many application protocols"))?;
        // SAFETY: the context is live and ours; the list, which is copied, has so many bytes.
        let refused =
            unsafe { ffi::SSL_CTX_set_alpn_protos(changing.context, list.as_ptr(), length) };
        if refused == 0 { Ok(()) } else { Err(Refusal::exception(queue::pop_text())) }
    }
}

/// Called by OpenSSL when a client offers protocols.
unsafe extern "C" fn select(
    ssl: *mut SSL,
    chosen: *mut *const c_uchar,
    chosen_length: *mut c_uchar,
    offered: *const c_uchar,
    offered_length: c_uint,
    _argument: *mut c_void,
) -> c_int {
    let selected = catch_unwind(|| {
        // SAFETY: OpenSSL calls with a connection that is in a native of ours.
        let connection = unsafe { connection::of(ssl) }?;
        // SAFETY: so many bytes, which stay during the call; SSL_CTX_set_alpn_select_cb(3).
        let offered = unsafe { std::slice::from_raw_parts(offered, offered_length as usize) };
        let protocols =
            connection.context().protocols.read().unwrap_or_else(PoisonError::into_inner);
        connection.keep_protocol(protocols.select(offered)?)
    });
    let Ok(Some((start, length))) = selected else { return ffi::SSL_TLSEXT_ERR_NOACK };
    // SAFETY: OpenSSL's own place for it. The name is the connection's, which outlives its handshake.
    unsafe { chosen.write(start) };
    // SAFETY: as above.
    unsafe { chosen_length.write(length) };
    ffi::SSL_TLSEXT_ERR_OK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_order_decides() {
        let mut protocols = Protocols {
            names: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            fallback: Fallback::None,
        };
        assert_eq!(protocols.select(b"\x08http/1.1\x02h2"), Some(&b"h2"[..]));
        assert_eq!(protocols.select(b"\x08http/1.1"), Some(&b"http/1.1"[..]));
        assert_eq!(protocols.select(b"\x03foo"), None);
        // Lists that end too early.
        assert_eq!(protocols.select(b"\x09h2"), None);
        assert_eq!(protocols.select(b""), None);
        protocols.fallback = Fallback::Last;
        assert_eq!(protocols.select(b"\x03foo"), Some(&b"http/1.1"[..]));
        assert_eq!(encoded(&protocols.names), b"\x02h2\x08http/1.1");
    }
}
