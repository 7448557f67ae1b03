//! Certificates, contexts, and a connection that is well.

use sslsweep::libcrypto::Line;
use sslsweep::libcrypto::locking::{self, LockingError};
use sslsweep::sys::dl::Handle;
use sslsweep_libssl::{Connection, Context, LineFiles, Memory, Outcome as Class, Tls, Wire};

use super::Outcome;

pub struct Identity {
    pub certificate: String,
    pub key: String,
}

pub fn identity() -> Outcome<Identity> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    Ok(Identity { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
}

pub fn rsa_identity() -> Outcome<Identity> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256)?;
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
    Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A server's and a client's.
pub fn contexts(tls: &'static Tls) -> Outcome<(Context, Context)> {
    let identity = identity()?;
    let server = Context::server(tls)?
        .certificate(identity.certificate.as_bytes())?
        .private_key(identity.key.as_bytes())?
        .build();
    Ok((server, Context::client(tls)?.build()))
}

/// Loads a line's libcrypto as a plug-in of a program would, without a word to the shim and without
/// initialising it; a 1.0.x is given locks, as each program with threads gives it.
pub fn plug_in(line: &LineFiles) -> Outcome<Handle> {
    let handle = plug_in_without_locks(line)?;
    give_locks(&handle)?;
    Ok(handle)
}

/// Gives a 1.0.x locks; later releases have their own.
pub fn give_locks(libcrypto: &Handle) -> Outcome {
    let address = libcrypto.symbol(c"ERR_clear_error").ok_or("not a libcrypto")?;
    match locking::install(address.as_ptr() as usize) {
        Ok(_) | Err(LockingError::NotNeeded(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// As [`plug_in`], without locks.
pub fn plug_in_without_locks(line: &LineFiles) -> Outcome<Handle> {
    let folder = line.libcrypto.parent().ok_or("a file is in a folder")?;
    for file in std::fs::read_dir(folder)? {
        let file = file?;
        // Unpacked wheels carry a libz of their own, and no search path to it.
        if file.file_name().as_encoded_bytes().starts_with(b"libz-") {
            // SAFETY: a library that `make setup` has put ready.
            unsafe { Handle::load(&file.path()) }?.pin();
        }
    }
    // SAFETY: as above.
    Ok(unsafe { Handle::load(&line.libcrypto) }?)
}

/// Room in each direction of a wire.
const ROOM: usize = 32 * 1024;

/// A server's connection that is established and well, and has nothing to read. The test holds the
/// wires between it and its client, and no byte passes unless the test passes it on.
pub struct Idle {
    pub server: Connection<Memory>,
    pub client: Connection<Memory>,
    /// The client's far end: what it has sent.
    pub from_client: Wire,
    /// The server's far end: what it is to receive.
    pub to_server: Wire,
}

impl Idle {
    pub fn new(tls: &'static Tls) -> Outcome<Self> {
        let (server, client) = contexts(tls)?;
        Self::between(&server, &client)
    }

    pub fn between(server: &Context, client: &Context) -> Outcome<Self> {
        Self::with_room(server, client, ROOM)
    }

    /// With so much room on the way from the server.
    pub fn with_room(server: &Context, client: &Context, room: usize) -> Outcome<Self> {
        let (client, from_client) = Connection::over_wire(client, ROOM)?;
        let (server, to_server) = Connection::over_wire(server, room)?;
        let mut idle = Self { server, client, from_client, to_server };
        for _ in 0..100 {
            let (client, server) = (idle.client.handshake(), idle.server.handshake());
            idle.pass();
            match (client, server) {
                (Class::Done(_), Class::Done(_)) => return Ok(idle),
                (client, server) if client.is_fatal() || server.is_fatal() => {
                    return Err(format!("handshake: {client:?}, {server:?}").into());
                }
                _ => {}
            }
        }
        Err("the handshake does not end".into())
    }

    /// Passes on what is under way in both directions.
    pub fn pass(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            let to_server = self.from_client.read(&mut buffer);
            assert_eq!(self.to_server.write(&buffer[..to_server]), to_server);
            let to_client = self.to_server.read(&mut buffer);
            assert_eq!(self.from_client.write(&buffer[..to_client]), to_client);
            if to_server + to_client == 0 {
                return;
            }
        }
    }

    /// Reads on the server's side, and asks what the result means: would-block, if all is well.
    pub fn read(&mut self) -> Class {
        self.server.read(&mut [0; 64])
    }

    /// What the library believes of a read that would block on this connection while another task's
    /// error is queued: 4.0 and AWS-LC are not misled.
    pub fn misread(&self, stale: Class) -> Class {
        match self.server.tls().library().line() {
            Line::V1_0 | Line::V1_1 | Line::V3 => stale,
            _ => Class::WantRead,
        }
    }
}
