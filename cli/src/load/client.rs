//! One TLS connection of the load client, and one PUT over it.
//!
//! Blocking sockets, rustls: the server under test may run any OpenSSL, its client runs none. Every
//! handshake is a full one (resumption is off), so that a new connection costs the same in each run.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};
use serde::Deserialize;

use super::LoadError;
use super::body::Body;

/// Plaintext is handed to rustls in pieces of this size: four full records.
const PIECE: usize = 64 << 10;

/// The server, and how it is reached.
pub struct Target {
    address: SocketAddr,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    deadline: Instant,
    /// No answer for this long is a fault of the server.
    patience: Duration,
}

/// Why a PUT did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The server ended a healthy connection, in the handshake or later. The request can be sent again.
    #[error("connection ended by the server ({0})")]
    Closed(String),
    /// Nothing came in time. Sending again would hide that the server is stuck.
    #[error("no answer in time (--patience)")]
    Timeout,
    /// The server answered, and refused. Sending again would not help.
    #[error("{0}")]
    Refused(String),
    /// The time limit of the run is over.
    #[error("time limit reached")]
    OutOfTime,
}

/// What the server counted.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the body.
    pub bytes: u64,
    /// XXH3-64 of the body, 16 hexadecimal digits.
    pub xxh3: String,
}

impl Target {
    /// A target that trusts the certificates in `pem` and nothing else.
    pub fn new(
        address: SocketAddr,
        pem: &[u8],
        deadline: Instant,
        patience: Duration,
    ) -> Result<Self, LoadError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| LoadError::Certificate(error.to_string()))?;
            roots.add(certificate).map_err(|error| LoadError::Certificate(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(LoadError::Certificate("no certificate in it".into()));
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::aws_lc_rs::default_provider(),
        ))
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(|error| LoadError::Certificate(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Self {
            address,
            name: ServerName::from(address.ip()),
            config: Arc::new(config),
            deadline,
            patience,
        })
    }

    /// A plain TCP connection, for clients that misbehave.
    pub fn tcp(&self) -> Result<TcpStream, Fault> {
        let left = self.left()?;
        let socket = TcpStream::connect_timeout(&self.address, left).map_err(Fault::from_io)?;
        let ready = socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(left)))
            .and_then(|()| socket.set_write_timeout(Some(left)));
        ready.map_err(Fault::from_io)?;
        Ok(socket)
    }

    /// A TLS connection that has not spoken yet.
    pub fn tls(&self) -> Result<ClientConnection, Fault> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| Fault::Refused(error.to_string()))
    }

    /// Connects and shakes hands.
    pub fn connect(&self) -> Result<Connection, Fault> {
        let mut socket = self.tcp()?;
        let mut tls = self.tls()?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(Fault::from_io)?;
        }
        tls.set_buffer_limit(Some(4 * PIECE));
        Ok(Connection { tls, socket, answers: 0, outgoing: Vec::with_capacity(PIECE + 64) })
    }

    /// Time that a single wait may take.
    fn left(&self) -> Result<Duration, Fault> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Fault::OutOfTime),
            left => Ok(left.min(self.patience)),
        }
    }
}

impl Fault {
    fn from_io(error: io::Error) -> Self {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return Self::Timeout;
        }
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(reason)) => {
                Self::Refused(format!("the server's certificate is not the one given ({reason:?})"))
            }
            Some(other) => Self::Closed(other.to_string()),
            None => Self::Closed(error.to_string()),
        }
    }
}

/// An established connection.
pub struct Connection {
    tls: ClientConnection,
    socket: TcpStream,
    answers: u64,
    outgoing: Vec<u8>,
}

impl Connection {
    /// Whether no request was answered on it yet.
    pub fn is_unused(&self) -> bool {
        self.answers == 0
    }

    /// `TLSv1_2` or `TLSv1_3`.
    pub fn protocol(&self) -> String {
        self.tls
            .protocol_version()
            .map_or_else(|| "unknown".into(), |version| format!("{version:?}"))
    }

    /// Sends `length` bytes of `body`, and reads what the server counted. `false` beside the answer means
    /// that the server asked for the connection to be closed.
    pub fn put(
        &mut self,
        body: &mut Body<'_>,
        length: u64,
        chunked: bool,
    ) -> Result<(Answer, bool), Fault> {
        let sent = self.send(body, length, chunked);
        match (sent, self.answer()) {
            (Ok(()), Ok(answer)) => {
                self.answers += 1;
                Ok(answer)
            }
            // A refusal that arrived while the body was on its way says more than the broken pipe.
            (_, Err(refused @ Fault::Refused(_))) => Err(refused),
            (Err(error), _) => Err(Fault::from_io(error)),
            (Ok(()), Err(fault)) => Err(fault),
        }
    }

    /// Sends the head of a request and half of its body, then cuts the connection.
    pub fn cut_in_body(mut self, body: &mut Body<'_>, length: u64, reset: bool) -> io::Result<()> {
        self.head(length, false);
        while (self.outgoing.len() as u64) < length / 2 {
            let piece = body.piece();
            let half = piece.len().min((length / 2) as usize);
            self.outgoing.extend_from_slice(&piece[..half.max(1).min(piece.len())]);
            if piece.is_empty() {
                break;
            }
        }
        self.flush()?;
        cut(self.socket, reset)
    }

    /// Says goodbye as a well-behaved client does; `false` if the server had ended the connection before.
    pub fn close(mut self) -> bool {
        let lives = !self.has_ended();
        self.tls.send_close_notify();
        // The server may have gone already: nothing of this run depends on the goodbye.
        let _ = self.tls.complete_io(&mut self.socket);
        lives
    }

    /// Whether the server has ended it, by what has arrived up to now. Waits for nothing.
    fn has_ended(&mut self) -> bool {
        loop {
            let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            match rustix::net::recv(&self.socket, &mut [0; 1], look) {
                Err(Errno::AGAIN) => return false,
                Err(Errno::INTR) => continue,
                Ok((0, _)) | Err(_) => return true,
                // Session tickets, or an alert.
                Ok(_) => {}
            }
            if !self.tls.read_tls(&mut self.socket).is_ok_and(|bytes| bytes > 0)
                || !self.tls.process_new_packets().is_ok_and(|state| !state.peer_has_closed())
            {
                return true;
            }
        }
    }

    fn head(&mut self, length: u64, chunked: bool) {
        self.outgoing.extend_from_slice(b"PUT /load HTTP/1.1\r\nHost: localhost\r\n");
        if chunked {
            self.outgoing.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        } else {
            self.outgoing.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        }
    }

    fn send(&mut self, body: &mut Body<'_>, length: u64, chunked: bool) -> io::Result<()> {
        self.head(length, chunked);
        loop {
            let piece = body.piece();
            if piece.is_empty() {
                break;
            }
            if chunked {
                self.outgoing.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            }
            self.outgoing.extend_from_slice(piece);
            if chunked {
                self.outgoing.extend_from_slice(b"\r\n");
            }
            if self.outgoing.len() >= PIECE {
                self.flush()?;
            }
        }
        if chunked {
            self.outgoing.extend_from_slice(b"0\r\n\r\n");
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut stream = Stream::new(&mut self.tls, &mut self.socket);
        let written = stream.write_all(&self.outgoing).and_then(|()| stream.flush());
        self.outgoing.clear();
        written
    }

    fn answer(&mut self) -> Result<(Answer, bool), Fault> {
        let mut received = Vec::with_capacity(512);
        let mut piece = [0; 2048];
        loop {
            if let Some(answer) = parse(&received)? {
                return Ok(answer);
            }
            let mut stream = Stream::new(&mut self.tls, &mut self.socket);
            match stream.read(&mut piece).map_err(Fault::from_io)? {
                0 => return Err(Fault::Closed("end of stream before the answer".into())),
                n => received.extend_from_slice(&piece[..n]),
            }
        }
    }
}

/// Ends a connection without a goodbye: by FIN, or by RST.
pub fn cut(socket: TcpStream, reset: bool) -> io::Result<()> {
    if reset {
        rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    }
    drop(socket);
    Ok(())
}

/// Reads an answer, if all of it is there.
fn parse(received: &[u8]) -> Result<Option<(Answer, bool)>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(received) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(Fault::Refused(format!("the answer is not HTTP ({error})"))),
    };
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let length: usize = match header("Content-Length").map(str::parse) {
        Some(Ok(length)) => length,
        _ => return Err(Fault::Refused("the answer has no Content-Length".into())),
    };
    let Some(body) = received.get(head..head + length) else {
        return Ok(None);
    };
    match response.code {
        Some(200) => {
            let answer = serde_json::from_slice(body).map_err(|error| {
                Fault::Refused(format!("the answer is not the expected JSON ({error})"))
            })?;
            let close =
                header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            Ok(Some((answer, !close)))
        }
        code => {
            let text = String::from_utf8_lossy(body);
            Err(Fault::Refused(format!("answered {}: {}", code.unwrap_or(0), text.trim())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_when_complete() -> Result<(), Fault> {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n{\"bytes\":4,\"xxh3\":\"00000000000000ff\"}";
        for end in 0..whole.len() {
            assert!(parse(&whole[..end])?.is_none(), "{end} bytes");
        }
        let (answer, keep) = parse(whole)?.expect("complete");
        assert_eq!(answer, Answer { bytes: 4, xxh3: "00000000000000ff".into() });
        assert!(keep);
        Ok(())
    }

    #[test]
    fn refusals_carry_the_servers_words() {
        let refused = parse(b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large");
        assert!(
            matches!(&refused, Err(Fault::Refused(text)) if text == "answered 413: too large"),
            "{refused:?}"
        );
        assert!(parse(b"SSH-2.0-x\r\n\r\n").is_err());
    }
}
