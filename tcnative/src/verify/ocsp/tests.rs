//! Clients with certificates of an authority of the tests' own, whose responder is in this process and has its answers from
//! `openssl ocsp`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, IsCa, Issuer, KeyPair, SerialNumber,
};

use super::Settings as Ocsp;
use super::*;
use crate::certificate;
use crate::connection::pair::{Pair, TLS_1_2, TLS_1_3, client, library, server};
use crate::queue::take_last;
use crate::verify::{Level, set_authorities, set_for_context};

/// What the authority knows of serial numbers.
const INDEX: &str = "V\t491231235959Z\t\t10\tunknown\t/CN=good\n\
                     R\t491231235959Z\t240101000000Z\t11\tunknown\t/CN=revoked\n";
const GOOD: u8 = 0x10;
const REVOKED: u8 = 0x11;
const UNKNOWN: u8 = 0x12;

/// How a responder answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Rightly,
    /// As somebody else.
    Forged,
    Rubbish,
    Endlessly,
    Never,
}

struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Writes the certificate of an authority, and its key.
fn authority(folder: &Path, name: &str) -> Issuer<'static, KeyPair> {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "authority of a test");
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    Issuer::new(parameters, key)
}

impl Authority {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("sslsweep-ocsp-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("index"), INDEX).unwrap();
        authority(&folder, "other");
        let issuer = authority(&folder, "authority");
        Self { folder, issuer }
    }

    /// A certificate that names responders, and its key.
    fn certificate(&self, serial: u8, responders: &[String]) -> (Vec<u8>, String) {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "client of a test");
        parameters.serial_number = Some(SerialNumber::from_slice(&[serial]));
        if !responders.is_empty() {
            parameters.custom_extensions.push(information_access(responders));
        }
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (certificate.der().to_vec(), key.serialize_pem())
    }

    /// Starts a responder; returns its address. It ends with the process.
    fn responder(&self, manner: Manner, at: &str) -> String {
        let listener = TcpListener::bind((at, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let folder = self.folder.clone();
        thread::spawn(move || {
            let mut silent = Vec::new();
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if manner == Manner::Never {
                    silent.push(stream);
                } else {
                    let _ = answer(stream, manner, &folder, &format!("{port}-{number}"));
                }
            }
        });
        if at.contains(':') {
            format!("http://[{at}]:{port}/")
        } else {
            format!("http://{at}:{port}/")
        }
    }

    /// Whether a server lets a client in.
    fn lets_in(&self, serial: u8, responders: &[String], settings: Ocsp) -> bool {
        let results = [TLS_1_2, TLS_1_3].map(|protocol| {
            let serves = server(protocol);
            let file = CString::new(self.folder.join("authority.pem").to_str().unwrap()).unwrap();
            set_authorities(&serves, Some(&file), None).unwrap();
            set_for_context(&serves, Level::Require, 1);
            serves.set_ocsp(settings);
            let asks = client(protocol);
            let (der, key) = self.certificate(serial, responders);
            certificate::set_raw(&asks, &der, key.as_bytes(), 0).unwrap();
            let pair = Pair::new(&asks, &serves, 4096);
            // With TLS 1.3 the client is through before the server has looked.
            let good = pair.handshake();
            let error = take_last();
            assert_eq!(good, error == 0, "{}", crate::queue::text(error.into()).to_string_lossy());
            pair.free();
            good
        });
        assert_eq!(results[0], results[1]);
        results[0]
    }
}

/// The extension of RFC 5280, 4.2.2.1.
fn information_access(responders: &[String]) -> CustomExtension {
    let sequence =
        |content: Vec<u8>| [vec![0x30, content.len().try_into().unwrap()], content].concat();
    let ocsp = [0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01];
    let each = responders.iter().map(|url| {
        let length = url.len().try_into().unwrap();
        sequence([&ocsp[..], &[0x86, length], url.as_bytes()].concat())
    });
    let content = sequence(each.collect::<Vec<_>>().concat());
    CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], content)
}

fn answer(mut stream: TcpStream, manner: Manner, folder: &Path, name: &str) -> std::io::Result<()> {
    let mut asked = Vec::new();
    let mut buffer = [0; 4096];
    let body = loop {
        let read = stream.read(&mut buffer)?;
        asked.extend_from_slice(&buffer[..read]);
        let Some(head) = asked.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&asked[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
        if asked.len() >= head + 4 + length.trim().parse::<usize>().unwrap() {
            break asked.split_off(head + 4);
        }
        assert_ne!(read, 0);
    };
    let head = b"HTTP/1.0 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\n";
    stream.write_all(head)?;
    match manner {
        Manner::Rubbish => stream.write_all(b"\x30\x03no response of anybody's"),
        Manner::Endlessly => {
            // DER that says that it has 16 MiB.
            stream.write_all(&[0x30, 0x83, 0xff, 0xff, 0xff])?;
            while stream.write_all(&[0; 4096]).is_ok() {}
            Ok(())
        }
        _ => stream.write_all(&response(&body, manner, folder, name)),
    }
}

fn response(request: &[u8], manner: Manner, folder: &Path, name: &str) -> Vec<u8> {
    let asked = folder.join(format!("{name}.request"));
    let answered = folder.join(format!("{name}.response"));
    fs::write(&asked, request).unwrap();
    let signer = if manner == Manner::Forged { "other" } else { "authority" };
    let mut command = Command::new("openssl");
    command.current_dir(folder).arg("ocsp").args(["-index", "index", "-CA", "authority.pem"]);
    command.args(["-rsigner", &format!("{signer}.pem"), "-rkey", &format!("{signer}.key")]);
    command
        .arg("-reqin")
        .arg(&asked)
        .arg("-respout")
        .arg(&answered)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    assert!(command.status().expect("the openssl command is installed").success());
    fs::read(answered).unwrap()
}

fn asks(soft_fail: bool) -> Ocsp {
    Ocsp { asks: true, soft_fail, ..Ocsp::default() }
}

#[test]
fn a_responder_is_believed() {
    let _library = library();
    let authority = Authority::new();
    for at in ["127.0.0.1", "::1"] {
        let responder = [authority.responder(Manner::Rightly, at)];
        for soft_fail in [true, false] {
            assert!(authority.lets_in(GOOD, &responder, asks(soft_fail)), "{at}");
            assert!(!authority.lets_in(REVOKED, &responder, asks(soft_fail)), "{at}");
            assert!(!authority.lets_in(UNKNOWN, &responder, asks(soft_fail)), "{at}");
        }
        assert!(authority.lets_in(REVOKED, &responder, Ocsp::default()), "nobody is asked");
    }
}

#[test]
fn nobody_is_asked_where_nobody_is_named() {
    let _library = library();
    assert!(Authority::new().lets_in(REVOKED, &[], asks(false)));
}

#[test]
fn an_answer_that_cannot_be_believed_is_none() {
    let _library = library();
    let authority = Authority::new();
    for manner in [Manner::Forged, Manner::Rubbish, Manner::Endlessly, Manner::Never] {
        let responder = [authority.responder(manner, "127.0.0.1")];
        for soft_fail in [true, false] {
            let settings = Ocsp { timeout: Duration::from_millis(700), ..asks(soft_fail) };
            assert_eq!(authority.lets_in(GOOD, &responder, settings), soft_fail, "{manner:?}");
        }
    }
    for responder in ["https://127.0.0.1:1/", "http://127.0.0.1:1/", "ftp:", "no address"] {
        assert!(authority.lets_in(GOOD, &[responder.to_owned()], asks(true)), "{responder}");
        assert!(!authority.lets_in(GOOD, &[responder.to_owned()], asks(false)), "{responder}");
    }
}

#[test]
fn the_next_responder_is_asked_where_one_does_not_answer() {
    let _library = library();
    let authority = Authority::new();
    let rubbish = authority.responder(Manner::Rubbish, "127.0.0.1");
    let right = authority.responder(Manner::Rightly, "127.0.0.1");
    assert!(authority.lets_in(GOOD, &[rubbish.clone(), right.clone()], asks(false)));
    assert!(!authority.lets_in(REVOKED, &[rubbish, right], asks(true)));
}
