//! For tests: a client and a server in one thread, driven through handles as Java drives them.

use std::sync::Arc;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use jni::sys::jlong;

use super::{flow, get, make, of_network};
use crate::context::Context;
use crate::queue::{self, Entered};
use crate::{certificate, ffi, life};

pub(crate) const TLS_1_2: i32 = 16;
pub(crate) const TLS_1_3: i32 = 32;

/// Whoever terminates the library takes it alone: it takes the others' connections away.
static LIBRARY: RwLock<()> = RwLock::new(());

pub(crate) fn library() -> RwLockReadGuard<'static, ()> {
    let guard = LIBRARY.read().unwrap_or_else(PoisonError::into_inner);
    life::initialize();
    life::initialize_ssl().unwrap();
    guard
}

/// A certificate (DER) and its key (PEM).
pub(crate) fn identity() -> (Vec<u8>, String) {
    let parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    (certificate.der().to_vec(), key.serialize_pem())
}

/// A server's context with a certificate.
pub(crate) fn server(protocols: i32) -> Arc<Context> {
    let context = Context::make(protocols, 1).unwrap();
    let (certificate, key) = identity();
    certificate::set_raw(&context, &certificate, key.as_bytes(), 0).unwrap();
    Arc::new(context)
}

pub(crate) fn client(protocols: i32) -> Arc<Context> {
    Arc::new(Context::make(protocols, 0).unwrap())
}

/// One end.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) ssl: jlong,
    pub(crate) network: jlong,
}

/// Bytes that are not alike.
pub(crate) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 256) as u8).collect()
}

/// What a native answers, whose name is nobody's.
fn native<R>(work: impl FnOnce(&Entered) -> R) -> R {
    let entered = Entered::new(c"a test");
    let result = work(&entered);
    drop(entered);
    assert!(queue::is_empty());
    result
}

impl End {
    pub(crate) fn new(context: &Arc<Context>, serves: bool) -> Self {
        let ssl = make(Arc::clone(context), serves).unwrap();
        let network = get(ssl).unwrap().make_network().unwrap();
        Self { ssl, network }
    }

    pub(crate) fn handshake(self) -> i32 {
        native(|entered| flow::handshake(entered, &get(self.ssl).unwrap()).unwrap())
    }

    pub(crate) fn renegotiate(self) -> i32 {
        native(|entered| flow::renegotiate(entered, &get(self.ssl).unwrap()).unwrap())
    }

    pub(crate) fn write(self, bytes: &[u8]) -> i32 {
        let address = bytes.as_ptr().expose_provenance() as jlong;
        let length = bytes.len().try_into().unwrap();
        native(|entered| flow::write(entered, &get(self.ssl).unwrap(), address, length).unwrap())
    }

    /// Java's priming read.
    pub(crate) fn prime(self) -> i32 {
        native(|entered| flow::read(entered, &get(self.ssl).unwrap(), 0, 0).unwrap())
    }

    /// Java's priming read, and then what there is.
    pub(crate) fn read(self, room: usize) -> Vec<u8> {
        self.prime();
        self.read_only(room)
    }

    pub(crate) fn read_only(self, room: usize) -> Vec<u8> {
        let mut buffer = vec![0; room];
        let address = buffer.as_mut_ptr().expose_provenance() as jlong;
        let length = room.try_into().unwrap();
        let answer = native(|entered| {
            flow::read(entered, &get(self.ssl).unwrap(), address, length).unwrap()
        });
        buffer.truncate(answer.try_into().unwrap_or(0));
        buffer
    }

    pub(crate) fn shut_down(self) -> i32 {
        native(|_| flow::shut_down(&get(self.ssl).unwrap()).unwrap())
    }

    pub(crate) fn handshakes(self) -> i32 {
        get(self.ssl).unwrap().handshakes()
    }

    /// What waits to be sent, in pieces of at most so many bytes.
    pub(crate) fn fetch(self, piece: usize) -> Option<Vec<u8>> {
        let mut buffer = vec![0; piece];
        let address = buffer.as_mut_ptr().expose_provenance() as jlong;
        let length = piece.try_into().unwrap();
        let answer = native(|_| {
            flow::read_network(&of_network(self.network).unwrap(), address, length).unwrap()
        });
        buffer.truncate(answer.try_into().ok()?);
        Some(buffer)
    }

    /// Returns how much was taken.
    pub(crate) fn give(self, bytes: &[u8]) -> usize {
        let address = bytes.as_ptr().expose_provenance() as jlong;
        let length = bytes.len().try_into().unwrap();
        let answer = native(|entered| {
            flow::write_network(entered, &of_network(self.network).unwrap(), address, length)
                .unwrap()
        });
        answer.try_into().unwrap_or(0)
    }

    /// Carries what waits over to another end, in pieces; returns whether there was anything.
    pub(crate) fn send_to(self, other: Self, piece: usize) -> bool {
        let mut sent = false;
        while let Some(bytes) = self.fetch(piece) {
            assert_eq!(other.give(&bytes), bytes.len());
            sent = true;
        }
        sent
    }

    pub(crate) fn free(self) {
        super::free_network(self.network);
        super::free(self.ssl);
    }
}

/// A client and a server.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
    piece: usize,
}

impl Pair {
    /// What goes between them is cut into pieces of so many bytes.
    pub(crate) fn new(client: &Arc<Context>, server: &Arc<Context>, piece: usize) -> Self {
        Self { client: End::new(client, false), server: End::new(server, true), piece }
    }

    /// Shakes hands; false where one of them ends it.
    pub(crate) fn handshake(&self) -> bool {
        loop {
            let client = self.client.handshake();
            let sent = self.exchange();
            let server = self.server.handshake();
            let answered = self.exchange();
            if client == 1 && server == 1 {
                return true;
            }
            if !sent && !answered {
                return false;
            }
        }
    }

    /// Carries over what waits at both ends.
    pub(crate) fn exchange(&self) -> bool {
        let there = self.client.send_to(self.server, self.piece);
        let back = self.server.send_to(self.client, self.piece);
        there || back
    }

    /// Sends bytes from one end to the other; returns what has come out there.
    pub(crate) fn send(&self, from: End, to: End, bytes: &[u8], room: usize) -> Vec<u8> {
        let mut received = Vec::new();
        let mut rest = bytes;
        while received.len() < bytes.len() {
            if !rest.is_empty()
                && let Ok(taken) = usize::try_from(from.write(rest))
            {
                rest = &rest[taken..];
            }
            let sent = from.send_to(to, self.piece);
            let before = received.len();
            loop {
                let read = to.read(room);
                if read.is_empty() {
                    break;
                }
                received.extend(read);
            }
            assert!(sent || received.len() > before, "nothing goes on: {} bytes", received.len());
        }
        received
    }

    pub(crate) fn free(self) {
        self.client.free();
        self.server.free();
    }
}

/// Which bits of `SSL_get_shutdown` are set.
pub(crate) const BOTH_SAID: i32 = ffi::SSL_SENT_SHUTDOWN | ffi::SSL_RECEIVED_SHUTDOWN;
