//! A tiny rustls server that answers PUTs as `sslsweep serve` does, and can be told to fail.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

type Failure = Box<dyn std::error::Error>;

/// How the server fails.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// Every n-th request: the connection is dropped in its middle.
    pub drop_every: Option<u64>,
    /// The n-th connection is ended before its handshake.
    pub hang_up_on: Option<u64>,
    /// The n-th request is answered, and its connection ended.
    pub leave_after: Option<u64>,
    /// Every n-th request: one byte of the body is changed before it is hashed.
    pub change_every: Option<u64>,
    /// Every n-th request is read and never answered.
    pub stall_every: Option<u64>,
    /// Every n-th request is refused.
    pub refuse_every: Option<u64>,
}

/// What the server saw.
#[derive(Default)]
pub struct Seen {
    pub requests: AtomicU64,
    pub chunked: AtomicU64,
    pub handshakes: AtomicU64,
    pub broken: AtomicU64,
    /// Connections ended after an answer.
    pub left: AtomicU64,
}

pub struct Standin {
    pub address: String,
    pub certificate: PathBuf,
    pub seen: Arc<Seen>,
}

impl Drop for Standin {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.certificate);
    }
}

impl Standin {
    pub fn start(
        faults: Faults,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Self, Failure> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let made = rcgen::generate_simple_self_signed(["localhost".into(), "127.0.0.1".into()])?;
        let file =
            format!("sslsweep-standin-{}-{}.pem", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let certificate = std::env::temp_dir().join(file);
        std::fs::write(&certificate, made.cert.pem())?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
        let config = ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::aws_lc_rs::default_provider(),
        ))
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let seen = Arc::new(Seen::default());
        let (config, shared) = (Arc::new(config), Arc::clone(&seen));
        std::thread::spawn(move || {
            for (number, socket) in (1..).zip(listener.incoming().flatten()) {
                if faults.hang_up_on == Some(number) {
                    continue;
                }
                let (config, seen) = (Arc::clone(&config), Arc::clone(&shared));
                std::thread::spawn(move || {
                    if connection(socket, config, faults, &seen).is_err() {
                        seen.broken.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        Ok(Self { address, certificate, seen })
    }
}

fn connection(
    mut socket: TcpStream,
    config: Arc<ServerConfig>,
    faults: Faults,
    seen: &Seen,
) -> Result<(), Failure> {
    let mut tls = ServerConnection::new(config)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut socket)?;
    }
    seen.handshakes.fetch_add(1, Relaxed);
    let mut reader = BufReader::new(StreamOwned::new(tls, socket));
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_lowercase());
        }
        let number = seen.requests.fetch_add(1, Relaxed) + 1;
        let due = |every: Option<u64>| every.is_some_and(|every| number.is_multiple_of(every));
        if due(faults.refuse_every) {
            reader
                .get_mut()
                .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large")?;
            reader.get_mut().flush()?;
        }
        if due(faults.drop_every) {
            return Err("told to drop it".into());
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = match length {
            Some(length) => {
                let mut body = vec![0; length.parse()?];
                reader.read_exact(&mut body)?;
                body
            }
            None => {
                seen.chunked.fetch_add(1, Relaxed);
                chunks(&mut reader)?
            }
        };
        if due(faults.stall_every) {
            // Until the client gives up.
            reader.read_line(&mut String::new())?;
            return Ok(());
        }
        if due(faults.change_every) {
            body[0] ^= 1;
        }
        let hash = xxhash_rust::xxh3::xxh3_64(&body);
        let answer = format!("{{\"bytes\":{},\"xxh3\":\"{hash:016x}\"}}", body.len());
        let response =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
        reader.get_mut().write_all(response.as_bytes())?;
        reader.get_mut().flush()?;
        if faults.leave_after == Some(number) {
            drop(reader);
            seen.left.fetch_add(1, Relaxed);
            return Ok(());
        }
    }
}

fn chunks(reader: &mut impl BufRead) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16)?;
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..length]);
    }
}
