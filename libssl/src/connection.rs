//! One TLS connection.

use std::ffi::{CStr, c_int};
use std::mem::ManuallyDrop;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::context::Context;
use crate::load::Tls;
use crate::session::Session;
use crate::symbols::Ssl;

/// What a TLS call returned, before the library was asked what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a result that is not 1 or more says nothing until it is classified"]
pub struct Returned(c_int);

impl Returned {
    /// The number that the call returned: above 0 on success, for reads and writes the bytes.
    #[must_use]
    pub fn value(self) -> i32 {
        self.0
    }
}

/// The class of a TLS call's result.
///
/// See [SSL_get_error(3)](https://docs.openssl.org/master/man3/SSL_get_error/).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Success; for reads and writes the number of bytes.
    Done(usize),
    /// SSL_ERROR_WANT_READ: to be repeated when the transport can be read.
    WantRead,
    /// SSL_ERROR_WANT_WRITE: to be repeated when the transport can be written.
    WantWrite,
    /// SSL_ERROR_ZERO_RETURN: the peer has sent close_notify.
    ZeroReturn,
    /// SSL_ERROR_SYSCALL: the transport failed or ended; fatal.
    Syscall,
    /// SSL_ERROR_SSL: a failure of the protocol, or an error that somebody left on the queue; fatal.
    Ssl,
    /// Any other class, by its number.
    Other(i32),
}

impl Outcome {
    /// Whether the library says that the connection cannot go on.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        matches!(self, Self::Syscall | Self::Ssl | Self::Other(_))
    }

    fn from_class(class: c_int) -> Self {
        match class {
            1 => Self::Ssl,
            2 => Self::WantRead,
            3 => Self::WantWrite,
            5 => Self::Syscall,
            6 => Self::ZeroReturn,
            other => Self::Other(other),
        }
    }
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The library made no connection; it has hardly any reason but memory.
    #[error("{version} made no connection: {reason}")]
    New {
        /// Which library.
        version: String,
        /// Its reason.
        reason: String,
    },
    /// A pair in memory needs both ends on one library.
    #[error("the two contexts belong to different libraries; make both from one `Tls`")]
    DifferentLibraries,
}

/// One TLS connection over the transport `T`.
///
/// It may move from thread to thread (if its transport may), as long as one thread at a time uses
/// it: `Send`, not `Sync`. Errors arrive in the queue of the thread that makes the call.
///
/// The methods call one function of the library each, except for those that say otherwise.
#[derive(Debug)]
#[doc(alias = "SSL")]
pub struct Connection<T> {
    tls: &'static Tls,
    raw: NonNull<Ssl>,
    /// Freed after `raw`, which uses it.
    transport: T,
}

// SAFETY: an SSL belongs to no thread, and `&mut` (or ownership) gives one thread at a time its use.
// What it shares with others (context, sessions) is guarded by the library's locks. The transport
// answers for itself.
unsafe impl<T: Send> Send for Connection<T> {}

impl<T> Drop for Connection<T> {
    fn drop(&mut self) {
        // SAFETY: the only reference to the SSL; it frees its BIOs, and does not touch the socket
        // again (BIO_NOCLOSE).
        unsafe { (self.tls.symbols.SSL_free)(self.raw.as_ptr()) };
    }
}

impl Connection<TcpStream> {
    /// A connection over a socket, which it owns. A non-blocking socket gives would-block results.
    ///
    /// # Errors
    /// [`ConnectionError::New`].
    #[doc(alias = "SSL_set_fd")]
    pub fn over_socket(context: &Context, stream: TcpStream) -> Result<Self, ConnectionError> {
        let descriptor = stream.as_raw_fd();
        let connection = Self::over(context, stream)?;
        let tls = connection.tls;
        let (set, error) = tls.rolled_back(|| {
            // SAFETY: the SSL is live and new; the descriptor stays open as long as the connection.
            unsafe { (tls.symbols.SSL_set_fd)(connection.raw.as_ptr(), descriptor) }
        });
        if set == 1 { Ok(connection) } else { Err(new_failed(tls, error)) }
    }
}

fn new_failed(tls: &Tls, error: u64) -> ConnectionError {
    ConnectionError::New { version: tls.version().to_owned(), reason: tls.error_text(error) }
}

impl<T> Connection<T> {
    /// A connection that has a transport of ours and no BIO yet.
    ///
    /// Takes the errors that making it leaves; there are none when it succeeds.
    pub(crate) fn over(context: &Context, transport: T) -> Result<Self, ConnectionError> {
        let tls = context.tls;
        // SAFETY: the context is live; the SSL takes a reference of its own.
        let raw = unsafe { (tls.symbols.SSL_new)(context.raw.as_ptr()) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(new_failed(tls, tls.peek_last_error()));
        };
        let connection = Self { tls, raw, transport };
        if context.is_server {
            // SAFETY: the SSL is live and new.
            unsafe { (tls.symbols.SSL_set_accept_state)(raw.as_ptr()) };
        } else {
            // SAFETY: the SSL is live and new.
            unsafe { (tls.symbols.SSL_set_connect_state)(raw.as_ptr()) };
        }
        Ok(connection)
    }

    pub(crate) fn raw(&self) -> NonNull<Ssl> {
        self.raw
    }

    /// The library of this connection.
    #[must_use]
    pub fn tls(&self) -> &'static Tls {
        self.tls
    }

    /// Ends the TLS part, without a close_notify, and gives the transport back.
    ///
    /// See [SSL_free(3)](https://docs.openssl.org/master/man3/SSL_free/).
    #[doc(alias = "SSL_free")]
    pub fn into_transport(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: the only reference to the SSL, which nothing uses after this: `this` is not dropped.
        unsafe { (this.tls.symbols.SSL_free)(this.raw.as_ptr()) };
        // SAFETY: `this` is not dropped, so that the transport is taken out once.
        unsafe { std::ptr::read(&raw const this.transport) }
    }

    /// The transport below the connection.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// The transport below the connection, to be changed.
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Asks the library for the class of a result. Looks at the calling thread's error queue
    /// (unless the result is a success), so it must be the next call after the one that returned it.
    ///
    /// See [SSL_get_error(3)](https://docs.openssl.org/master/man3/SSL_get_error/).
    #[doc(alias = "SSL_get_error")]
    pub fn classify(&self, returned: Returned) -> Outcome {
        if let Some(count) = usize::try_from(returned.0).ok().filter(|count| *count > 0) {
            return Outcome::Done(count);
        }
        // SAFETY: the SSL is live; the function only reads it.
        Outcome::from_class(unsafe {
            (self.tls.symbols.SSL_get_error)(self.raw.as_ptr(), returned.0)
        })
    }

    /// Goes on with the handshake. A success returns 1.
    ///
    /// See [SSL_do_handshake(3)](https://docs.openssl.org/master/man3/SSL_do_handshake/).
    #[doc(alias = "SSL_do_handshake")]
    pub fn handshake_raw(&mut self) -> Returned {
        // SAFETY: the SSL is live, has its state and its BIOs, and is ours alone.
        Returned(unsafe { (self.tls.symbols.SSL_do_handshake)(self.raw.as_ptr()) })
    }

    /// [`handshake_raw`](Self::handshake_raw), then [`classify`](Self::classify).
    pub fn handshake(&mut self) -> Outcome {
        let returned = self.handshake_raw();
        self.classify(returned)
    }

    /// Reads application data.
    ///
    /// See [SSL_read(3)](https://docs.openssl.org/master/man3/SSL_read/).
    #[doc(alias = "SSL_read")]
    pub fn read_raw(&mut self, buffer: &mut [u8]) -> Returned {
        // SAFETY: the SSL is live and ours alone; the buffer is writable for the length given.
        Returned(unsafe {
            (self.tls.symbols.SSL_read)(
                self.raw.as_ptr(),
                buffer.as_mut_ptr().cast(),
                c_int::try_from(buffer.len()).unwrap_or(c_int::MAX),
            )
        })
    }

    /// [`read_raw`](Self::read_raw), then [`classify`](Self::classify).
    pub fn read(&mut self, buffer: &mut [u8]) -> Outcome {
        let returned = self.read_raw(buffer);
        self.classify(returned)
    }

    /// Writes application data, perhaps only its beginning. After a would-block the call must be
    /// repeated with the same bytes, which may lie elsewhere.
    ///
    /// See [SSL_write(3)](https://docs.openssl.org/master/man3/SSL_write/).
    ///
    /// # Panics
    /// On an empty buffer: what the library does then is not defined.
    #[doc(alias = "SSL_write")]
    pub fn write_raw(&mut self, bytes: &[u8]) -> Returned {
        assert!(!bytes.is_empty(), "SSL_write of nothing is not defined");
        // SAFETY: the SSL is live and ours alone; the bytes are readable for the length given.
        // The mode of the context allows another address when the call is repeated.
        Returned(unsafe {
            (self.tls.symbols.SSL_write)(
                self.raw.as_ptr(),
                bytes.as_ptr().cast(),
                c_int::try_from(bytes.len()).unwrap_or(c_int::MAX),
            )
        })
    }

    /// [`write_raw`](Self::write_raw), then [`classify`](Self::classify).
    ///
    /// # Panics
    /// On an empty buffer.
    pub fn write(&mut self, bytes: &[u8]) -> Outcome {
        let returned = self.write_raw(bytes);
        self.classify(returned)
    }

    /// Sends close_notify; returns 1 when the peer's has arrived too, 0 when it has not.
    ///
    /// See [SSL_shutdown(3)](https://docs.openssl.org/master/man3/SSL_shutdown/).
    #[doc(alias = "SSL_shutdown")]
    pub fn shutdown_raw(&mut self) -> Returned {
        // SAFETY: the SSL is live and ours alone. A shutdown during a handshake is refused with an
        // error, not undefined.
        Returned(unsafe { (self.tls.symbols.SSL_shutdown)(self.raw.as_ptr()) })
    }

    /// [`shutdown_raw`](Self::shutdown_raw), then [`classify`](Self::classify) if it failed:
    /// `Done(0)` when close_notify was sent, `Done(1)` when the peer's has arrived too.
    pub fn shutdown(&mut self) -> Outcome {
        let returned = self.shutdown_raw();
        if returned.0 == 0 { Outcome::Done(0) } else { self.classify(returned) }
    }

    /// How many bytes are decrypted already and wait for [`read`](Self::read).
    ///
    /// See [SSL_pending(3)](https://docs.openssl.org/master/man3/SSL_pending/).
    #[doc(alias = "SSL_pending")]
    #[must_use]
    pub fn pending(&self) -> usize {
        // SAFETY: the SSL is live; the function only reads it.
        usize::try_from(unsafe { (self.tls.symbols.SSL_pending)(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// The protocol's name: `TLSv1.2`.
    ///
    /// See [SSL_get_version(3)](https://docs.openssl.org/master/man3/SSL_get_version/).
    #[doc(alias = "SSL_get_version")]
    #[must_use]
    pub fn version(&self) -> &'static str {
        // SAFETY: the SSL is live; the function only reads it.
        let text = unsafe { (self.tls.symbols.SSL_get_version)(self.raw.as_ptr()) };
        // SAFETY: a NUL-terminated text in the library's read-only data; it is never unloaded.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("unknown")
    }

    /// Whether the handshake resumed a session.
    ///
    /// See [SSL_session_reused(3)](https://docs.openssl.org/master/man3/SSL_session_reused/).
    #[doc(alias = "SSL_session_reused")]
    #[must_use]
    pub fn session_reused(&self) -> bool {
        /// SSL_CTRL_GET_SESSION_REUSED, how 1.0.x answers.
        const GET_SESSION_REUSED: c_int = 8;
        let symbols = &self.tls.symbols;
        if let Some(function) = symbols.SSL_session_reused {
            // SAFETY: the SSL is live; the function only reads it.
            return unsafe { function(self.raw.as_ptr()) } == 1;
        }
        let Some(control) = symbols.SSL_ctrl else { return false };
        // SAFETY: the SSL is live; this control takes no argument.
        unsafe { control(self.raw.as_ptr(), GET_SESSION_REUSED, 0, std::ptr::null_mut()) == 1 }
    }

    /// The session to resume later; with TLS 1.3 it arrives after the handshake, with a read.
    ///
    /// See [SSL_get1_session(3)](https://docs.openssl.org/master/man3/SSL_get_session/).
    #[doc(alias = "SSL_get1_session")]
    #[must_use]
    pub fn session(&mut self) -> Option<Session> {
        // SAFETY: the SSL is live; the reference that it gives is ours.
        let raw = unsafe { (self.tls.symbols.SSL_get1_session)(self.raw.as_ptr()) };
        Some(Session { tls: self.tls, raw: NonNull::new(raw)? })
    }

    /// Offers a session; to be called before the handshake. Whether the library took it.
    ///
    /// See [SSL_set_session(3)](https://docs.openssl.org/master/man3/SSL_set_session/).
    #[doc(alias = "SSL_set_session")]
    pub fn set_session(&mut self, session: &Session) -> bool {
        if !std::ptr::eq(self.tls, session.tls) {
            return false;
        }
        // SAFETY: both are live and of one library; the SSL takes a reference of its own.
        unsafe { (self.tls.symbols.SSL_set_session)(self.raw.as_ptr(), session.raw.as_ptr()) == 1 }
    }
}
