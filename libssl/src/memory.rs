//! Connections in memory, for tests: no socket, no second thread, would-block whenever a buffer is
//! empty or full.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::connection::{Connection, ConnectionError, Outcome};
use crate::context::Context;
use crate::load::Tls;
use crate::symbols::Bio;

/// What a buffer holds in one direction unless a test asks for less.
const CAPACITY: usize = 32 * 1024;

/// The transport of a connection in memory: half of a BIO pair, which the connection owns.
///
/// The two halves share memory without a lock, so all connections and wires of a pair stay on the
/// thread that made them.
///
/// See [BIO_new_bio_pair(3)](https://docs.openssl.org/master/man3/BIO_s_bio/).
#[derive(Debug)]
#[doc(alias = "BIO_new_bio_pair")]
pub struct Memory {
    not_send: PhantomData<*mut ()>,
}

/// A client and a server that talk to each other in memory.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use sslsweep_libssl::{Context, Outcome, Pair, lines};
///
/// let tls = lines()?[0].load()?;
/// let (certificate, key) = (std::fs::read("cert.pem")?, std::fs::read("key.pem")?);
/// let server = Context::server(tls)?.certificate(&certificate)?.private_key(&key)?.build();
/// let client = Context::client(tls)?.build();
/// let mut pair = Pair::new(&server, &client)?;
/// assert!(pair.handshake());
/// assert_eq!(pair.server.read(&mut [0; 16]), Outcome::WantRead);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pair {
    /// The client's end.
    pub client: Connection<Memory>,
    /// The server's end.
    pub server: Connection<Memory>,
}

impl Pair {
    /// Makes the two ends; the handshake is still to come.
    ///
    /// # Errors
    /// [`ConnectionError`], when the contexts belong to different libraries above all.
    pub fn new(server: &Context, client: &Context) -> Result<Self, ConnectionError> {
        Self::with_capacity(server, client, CAPACITY)
    }

    /// As [`new`](Self::new), with buffers of so many bytes in each direction: small ones make
    /// writes block soon.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_capacity(
        server: &Context,
        client: &Context,
        capacity: usize,
    ) -> Result<Self, ConnectionError> {
        if !std::ptr::eq(server.tls, client.tls) {
            return Err(ConnectionError::DifferentLibraries);
        }
        let (one, other) = halves(server.tls, capacity)?;
        Ok(Self { client: one.carry(client)?, server: other.carry(server)? })
    }

    /// Lets both ends work until both handshakes are done; false when one of them fails or both
    /// only wait.
    pub fn handshake(&mut self) -> bool {
        for _ in 0..100 {
            match (self.client.handshake(), self.server.handshake()) {
                (Outcome::Done(_), Outcome::Done(_)) => return true,
                (client, server) if client.is_fatal() || server.is_fatal() => return false,
                _ => {}
            }
        }
        false
    }
}

impl Connection<Memory> {
    /// A connection whose peer is not a TLS end but the test itself, which holds the other end of
    /// the wire: for garbage, for records held back or changed, for a transport that is cut.
    ///
    /// # Errors
    /// [`ConnectionError::New`].
    pub fn over_wire(context: &Context, capacity: usize) -> Result<(Self, Wire), ConnectionError> {
        let (near, far) = halves(context.tls, capacity)?;
        Ok((near.carry(context)?, far))
    }
}

/// One end of a wire in memory, in the hands of a test.
///
/// To be kept as long as its peer works: without it the peer's calls fail as on a BIO never set up.
#[derive(Debug)]
pub struct Wire {
    tls: &'static Tls,
    raw: NonNull<Bio>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        // SAFETY: this half is ours; the other half notices, and refuses every call from now on.
        unsafe { (self.tls.symbols.BIO_free)(self.raw.as_ptr()) };
    }
}

impl Wire {
    /// Takes what the peer has sent, up to the length of `buffer`; 0 when there is nothing.
    ///
    /// See [BIO_read(3)](https://docs.openssl.org/master/man3/BIO_read/).
    #[doc(alias = "BIO_read")]
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let length = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
        // SAFETY: the BIO is live; the buffer is writable for that length.
        let count = unsafe {
            (self.tls.symbols.BIO_read)(self.raw.as_ptr(), buffer.as_mut_ptr().cast(), length)
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Sends bytes to the peer; how many found room.
    ///
    /// See [BIO_write(3)](https://docs.openssl.org/master/man3/BIO_write/).
    #[doc(alias = "BIO_write")]
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let length = c_int::try_from(bytes.len()).unwrap_or(c_int::MAX);
        // SAFETY: the BIO is live; the bytes are readable for that length.
        let count = unsafe {
            (self.tls.symbols.BIO_write)(self.raw.as_ptr(), bytes.as_ptr().cast(), length)
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Cuts the wire: the peer reads what is on its way, then an end without close_notify.
    ///
    /// See [BIO_shutdown_wr(3)](https://docs.openssl.org/master/man3/BIO_s_bio/).
    #[doc(alias = "BIO_shutdown_wr")]
    pub fn cut(&mut self) {
        /// BIO_C_SHUTDOWN_WR.
        const SHUTDOWN_WR: c_int = 142;
        // SAFETY: the BIO is live; this control takes no argument.
        unsafe {
            (self.tls.symbols.BIO_ctrl)(self.raw.as_ptr(), SHUTDOWN_WR, 0, std::ptr::null_mut());
        }
    }

    /// Makes this end the transport of a connection.
    fn carry(self, context: &Context) -> Result<Connection<Memory>, ConnectionError> {
        let connection = Connection::over(context, Memory { not_send: PhantomData })?;
        let (tls, bio) = (self.tls, self.raw.as_ptr());
        // The connection takes the BIO over.
        std::mem::forget(self);
        // SAFETY: both are live; the SSL takes over the one reference to a BIO given twice.
        unsafe { (tls.symbols.SSL_set_bio)(connection.raw().as_ptr(), bio, bio) };
        Ok(connection)
    }
}

fn halves(tls: &'static Tls, capacity: usize) -> Result<(Wire, Wire), ConnectionError> {
    let Some(new_pair) = tls.symbols.BIO_new_bio_pair else {
        return Err(ConnectionError::New {
            version: tls.version().to_owned(),
            reason: "this build of it has no BIO_new_bio_pair".to_owned(),
        });
    };
    let mut one = std::ptr::null_mut();
    let mut other = std::ptr::null_mut();
    // SAFETY: both places are writable; the two BIOs that it makes are ours.
    let made = unsafe { new_pair(&raw mut one, capacity, &raw mut other, capacity) };
    match (NonNull::new(one), NonNull::new(other)) {
        (Some(one), Some(other)) if made == 1 => {
            Ok((Wire { tls, raw: one }, Wire { tls, raw: other }))
        }
        _ => Err(ConnectionError::New {
            version: tls.version().to_owned(),
            reason: tls.error_text(tls.peek_last_error()),
        }),
    }
}
