//! One TLS connection of Java's: an `SSL`, its side towards the network, and what Java asks of it.
//!
//! The two handles that Java has, of the `SSL` and of the network, name the same slot: whoever uses one has both.

pub(crate) mod flow;
mod network;
#[cfg(test)]
pub(crate) mod pair;
mod properties;
mod stash;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tomcat;

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::Arc;

use jni::sys::jlong;

use crate::context::Context;
use crate::ffi::{self, SSL};
use crate::handle::{Exclusive, Fact, Held, Kind};
use crate::java::Refusal;
use crate::{life, queue};
use network::Network;

static CONNECTIONS: Exclusive<Connection> = Exclusive::new();

/// How far the authentication of a client after the handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PostHandshake {
    None,
    Started,
    Complete,
}

/// A connection. One thread uses it at a time, its callbacks run inside that thread's natives.
pub(crate) struct Connection {
    ssl: *mut SSL,
    /// Keeps the context alive, and says how clients are verified.
    context: Arc<Context>,
    handle: Cell<jlong>,
    network: Network,
    has_network: Cell<bool>,
    /// Handshakes that were completed.
    handshakes: Cell<i32>,
    post_handshake: Cell<PostHandshake>,
    /// The application protocol that was chosen in the handshake.
    protocol: RefCell<Vec<u8>>,
    flow: flow::State,
}

// SAFETY: an SSL may be used by any thread, one at a time (openssl-threads(7)), which its slot sees to; the rest
// belongs to the connection.
unsafe impl Send for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: made by SSL_new and given back once. It frees the BIO, whose network is still there.
        unsafe { ffi::SSL_free(self.ssl) };
    }
}

/// The connection that a handle of `SSL.newSSL` names, for the calling thread alone.
#[inline]
pub(crate) fn get(handle: jlong) -> Result<Held<'static, Connection>, Refusal> {
    CONNECTIONS.hold(handle, Kind::Connection).ok_or_else(|| unknown(handle))
}

/// As [`get`], of a handle of `SSL.makeNetworkBIO`.
#[inline]
pub(crate) fn of_network(handle: jlong) -> Result<Held<'static, Connection>, Refusal> {
    match CONNECTIONS.hold(handle, Kind::Network) {
        Some(held) if !held.network.is_closed() => Ok(held),
        _ => Err(unknown(handle)),
    }
}

#[cold]
fn unknown(handle: jlong) -> Refusal {
    Refusal::exception(if handle == 0 {
        "the SSL handle is 0".to_owned()
    } else {
        format!("{handle:#x} is no SSL connection, or one that was freed")
    })
}

/// A fact of the connection of an `SSL` handle; 0 where there is none.
#[inline(always)]
pub(crate) fn fact(handle: jlong, fact: Fact) -> i32 {
    CONNECTIONS.fact(handle, Kind::Connection, fact).unwrap_or(0)
}

/// As [`fact`], of a network handle.
#[inline(always)]
pub(crate) fn network_fact(handle: jlong, fact: Fact) -> i32 {
    CONNECTIONS.fact(handle, Kind::Network, fact).unwrap_or(0)
}

/// Makes a connection; returns its handle.
pub(crate) fn make(context: Arc<Context>, server: bool) -> Result<jlong, Refusal> {
    // SAFETY: the context is live, and not being changed meanwhile.
    let ssl = unsafe { ffi::SSL_new(context.reading().context) };
    if ssl.is_null() {
        return Err(Refusal::exception(format!("cannot create new ssl: {}", queue::pop_text())));
    }
    // From here on dropping it frees the SSL.
    let connection = Box::new(Connection {
        ssl,
        context,
        handle: Cell::new(0),
        network: Network::default(),
        has_network: Cell::new(false),
        handshakes: Cell::new(0),
        post_handshake: Cell::new(PostHandshake::None),
        protocol: RefCell::default(),
        flow: flow::State::default(),
    });
    let address = ptr::from_ref::<Connection>(&connection).cast_mut().cast();
    // SAFETY: the SSL is live and ours; the connection stays in its box for as long as the SSL lives.
    if unsafe { ffi::SSL_set_ex_data(ssl, life::connection_index(), address) } != 1 {
        return Err(Refusal::exception(format!("cannot create new ssl: {}", queue::pop_text())));
    }
    if server {
        // SAFETY: the SSL is live and ours.
        unsafe { ffi::SSL_set_accept_state(ssl) };
    } else {
        // SAFETY: as above.
        unsafe { ffi::SSL_set_connect_state(ssl) };
    }
    // SAFETY: as above.
    unsafe { ffi::SSL_set_verify_result(ssl, ffi::X509_V_OK.into()) };
    let handle = CONNECTIONS
        .add(Kind::Connection, connection)
        .ok_or_else(|| Refusal::exception("there are too many SSL connections"))?;
    let held = get(handle)?;
    held.handle.set(handle);
    Ok(handle)
}

/// Frees the connection of a handle; does nothing where there is none (any more).
pub(crate) fn free(handle: jlong) {
    if let Some(held) = CONNECTIONS.hold(handle, Kind::Connection) {
        held.free();
    }
}

/// Lets go of a connection's side towards the network.
pub(crate) fn free_network(handle: jlong) {
    if let Some(held) = CONNECTIONS.hold(handle, Kind::Network) {
        held.network.close();
        held.facts().set(Fact::ToSend, 0);
    }
}

/// Frees all connections.
pub(crate) fn clear() {
    CONNECTIONS.clear();
}

/// The connection behind an `SSL`.
///
/// # Safety
/// `ssl` is live, and used by the calling thread for as long as the answer is.
pub(crate) unsafe fn of<'a>(ssl: *const SSL) -> Option<&'a Connection> {
    // SAFETY: the caller vouches for the SSL.
    let data = unsafe { ffi::SSL_get_ex_data(ssl, life::connection_index()) };
    // SAFETY: `make` has put it there, and it outlives the SSL.
    unsafe { data.cast::<Connection>().as_ref() }
}

/// Called by OpenSSL as a handshake goes on.
pub(crate) unsafe extern "C" fn on_info(ssl: *const SSL, event: c_int, _value: c_int) {
    if event & ffi::SSL_CB_HANDSHAKE_DONE == 0 {
        return;
    }
    let _ = catch_unwind(|| {
        // SAFETY: OpenSSL calls inside a native that uses the connection.
        if let Some(connection) = unsafe { of(ssl) } {
            connection.handshakes.set(connection.handshakes.get().wrapping_add(1));
        }
    });
}

impl Connection {
    pub(crate) fn ssl(&self) -> *mut SSL {
        self.ssl
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The handle that Java has of it.
    pub(crate) fn handle(&self) -> jlong {
        self.handle.get()
    }

    pub(crate) fn handshakes(&self) -> i32 {
        self.handshakes.get()
    }

    /// Gives it a side towards the network; returns that side's handle.
    pub(crate) fn make_network(&self) -> Result<jlong, Refusal> {
        if self.has_network.replace(true) {
            return Err(Refusal::exception("the SSL connection has a network BIO already"));
        }
        // SAFETY: the SSL is ours and has none; both live in this connection, which one thread uses at a time.
        unsafe { self.network.attach(self.ssl) }?;
        Exclusive::<Self>::as_kind(self.handle(), Kind::Connection, Kind::Network)
            .ok_or(Refusal::Silent)
    }

    /// Keeps the application protocol that was chosen; gives where it begins and how long it is.
    pub(crate) fn keep_protocol(&self, name: &[u8]) -> Option<(*const u8, u8)> {
        let length = u8::try_from(name.len()).ok()?;
        let mut protocol = self.protocol.borrow_mut();
        protocol.clear();
        protocol.extend_from_slice(name);
        Some((protocol.as_ptr(), length))
    }

    /// A client has answered to the question for its certificate after the handshake.
    pub(crate) fn complete_pha(&self) {
        self.post_handshake.set(PostHandshake::Complete);
    }

    pub(crate) fn is_pha_in_progress(&self) -> bool {
        self.post_handshake.get() == PostHandshake::Started
    }

    /// Asks a client for its certificate after the handshake.
    pub(crate) fn ask_after_handshake(&self) -> c_int {
        self.flow.wake();
        self.post_handshake.set(PostHandshake::Started);
        // SAFETY: the SSL is live, and this thread uses it.
        unsafe { ffi::SSL_verify_client_post_handshake(self.ssl) }
    }
}
