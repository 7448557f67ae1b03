//! A running `sslsweep serve`, and clients for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use sslsweep_libssl::LineFiles;

pub type Fallible<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The command, with these arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sslsweep"));
    command.arg("serve").args(arguments);
    command
}

/// A server of its own process; it dies with the test.
pub struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub address: String,
    certificate: String,
    /// What it said when it was up.
    pub listening: Value,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    pub fn start(line: &LineFiles, arguments: &[&str]) -> Fallible<Self> {
        let mut process = command(&["--json"])
            .arg("--libssl")
            .arg(&line.libssl)
            .arg("--libcrypto")
            .arg(&line.libcrypto)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().ok_or("no standard output")?);
        let mut server = Self {
            process,
            input,
            output,
            address: String::new(),
            certificate: String::new(),
            listening: Value::Null,
        };
        server.listening = server.hear()?;
        let text = |name: &str| server.listening[name].as_str().unwrap_or_default().to_owned();
        (server.address, server.certificate) = (text("address"), text("certificate"));
        assert_eq!(server.listening["event"], "listening");
        Ok(server)
    }

    fn hear(&mut self) -> Fallible<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(format!("the server ended: {:?}", self.process.wait()?).into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Gives an order and hears the answer.
    pub fn ask(&mut self, order: &str) -> Fallible<Value> {
        let input = self.input.as_mut().ok_or("standard input is closed")?;
        writeln!(input, "{order}")?;
        self.hear()
    }

    /// Figures, once `ready` says yes; an error if that does not happen within a minute.
    pub fn stats_when(&mut self, ready: impl Fn(&Value) -> bool) -> Fallible<Value> {
        let mut stats = Value::Null;
        for _ in 0..6_000 {
            stats = self.ask("stats")?;
            if ready(&stats) {
                return Ok(stats);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("not reached: {stats}").into())
    }

    /// Closes its standard input; its exit code.
    pub fn end(mut self) -> Fallible<Option<i32>> {
        self.input = None;
        Ok(self.process.wait()?.code())
    }

    pub fn connect(&self) -> Fallible<Client> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connection =
            ClientConnection::new(Arc::new(config), ServerName::try_from("127.0.0.1")?)?;
        Ok(Client { tls: StreamOwned::new(connection, self.connect_plain()?) })
    }

    pub fn connect_plain(&self) -> Fallible<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// A TLS connection that verifies the server's certificate.
pub struct Client {
    pub tls: StreamOwned<ClientConnection, TcpStream>,
}

impl Client {
    pub fn send(&mut self, bytes: &[u8]) -> Fallible {
        self.tls.write_all(bytes)?;
        Ok(self.tls.flush()?)
    }

    /// Reads one answer: its status, and its body.
    pub fn answer(&mut self) -> Fallible<(u16, String)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.tls.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head)?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(Ok(0), str::parse)?];
        self.tls.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body)?))
    }

    /// Sends a PUT with Content-Length, and checks what the server has counted.
    pub fn put(&mut self, body: &[u8]) -> Fallible {
        let head = format!("PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        self.send(head.as_bytes())?;
        if !body.is_empty() {
            self.send(body)?;
        }
        self.check(body)
    }

    /// The same, in chunks of odd sizes and with trailers.
    pub fn put_chunked(&mut self, body: &[u8]) -> Fallible {
        self.send(b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let (mut rest, mut size) = (body, 1);
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            self.send(format!("{:x};odd\r\n", chunk.len()).as_bytes())?;
            self.send(chunk)?;
            self.send(b"\r\n")?;
            (rest, size) = (after, size * 3 + 1);
        }
        self.send(b"0\r\nTrailer: x\r\n\r\n")?;
        self.check(body)
    }

    pub fn check(&mut self, body: &[u8]) -> Fallible {
        let hash = xxhash_rust::xxh3::xxh3_64(body);
        let expected = format!("{{\"bytes\":{},\"xxh3\":\"{hash:016x}\"}}", body.len());
        assert_eq!(self.answer()?, (200, expected));
        Ok(())
    }
}
