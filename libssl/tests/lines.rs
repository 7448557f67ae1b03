//! Client and server in memory, on every library of the manifest in one process.

mod common;

use std::ffi::{c_int, c_void};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use common::{Identity, Outcome as TestResult, contexts, identity};
use sslsweep_libssl::{
    Connection, Context, ContextError, LoadError, Outcome, Pair, Protocol, Tls, faults, lines,
};

/// Names the only line that a child process of these tests is to check.
const ONLY: &str = "SSLSWEEP_TEST_LINE";

/// Runs `check` on each library. After it the thread's queue must be empty: no wrapper leaves errors.
///
/// As many as possible share this process. What has the name of another one (all of 3.x) gets a
/// process of its own.
fn on_each(check: impl Fn(&'static Tls) -> TestResult) -> TestResult {
    let only = std::env::var(ONLY).ok();
    let lines = lines()?;
    assert!(!lines.is_empty(), "the manifest lists no library");
    for line in lines.iter().filter(|line| only.as_ref().is_none_or(|only| *only == line.name)) {
        let tls = match line.load() {
            Ok(tls) => tls,
            Err(LoadError::NameTaken { .. }) if only.is_none() => {
                in_a_process_of_its_own(&line.name)?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        check(tls).map_err(|error| format!("{}: {error}", line.name))?;
        assert_eq!(tls.peek_error(), 0, "{}: {}", line.name, tls.error_text(tls.peek_error()));
    }
    Ok(())
}

/// Runs the calling test again for one line.
fn in_a_process_of_its_own(line: &str) -> TestResult {
    let thread = std::thread::current();
    let test = thread.name().ok_or("the test's thread has no name")?;
    let output = Command::new(std::env::current_exe()?)
        .args([test, "--exact", "--nocapture"])
        .env(ONLY, line)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.contains("1 passed") {
        return Ok(());
    }
    Err(format!("{line}: {text}{}", String::from_utf8_lossy(&output.stderr)).into())
}

#[test]
fn the_library_is_the_one_of_the_manifest() -> TestResult {
    let lines = lines()?;
    on_each(|tls| {
        let file = tls.libssl();
        let line =
            lines.iter().find(|line| line.libssl.canonicalize().is_ok_and(|own| own == file));
        let line = line.ok_or("it is none of the manifest")?;
        assert!(tls.version().contains(&line.version), "{} is {}", line.name, tls.version());
        assert_eq!(tls.libcrypto().canonicalize()?, line.libcrypto.canonicalize()?);
        assert!(std::ptr::eq(tls, line.load()?), "loaded twice");
        Ok(())
    })
}

#[test]
fn handshake_data_and_close_notify() -> TestResult {
    on_each(|tls| {
        let (server, client) = contexts(tls)?;
        let mut pair = Pair::new(&server, &client)?;
        assert!(pair.handshake());
        assert!(
            ["TLSv1.2", "TLSv1.3"].contains(&pair.server.version()),
            "{}",
            pair.server.version()
        );
        let mut buffer = [0; 64];
        assert_eq!(pair.server.read(&mut buffer), Outcome::WantRead);
        assert_eq!(pair.client.write(b"a healthy connection"), Outcome::Done(20));
        assert_eq!(pair.server.read(&mut buffer[..9]), Outcome::Done(9));
        assert_eq!(pair.server.pending(), 11);
        assert_eq!(pair.server.read(&mut buffer[9..]), Outcome::Done(11));
        assert_eq!(&buffer[..20], b"a healthy connection");
        assert_eq!(pair.client.shutdown(), Outcome::Done(0));
        assert_eq!(pair.server.read(&mut buffer), Outcome::ZeroReturn);
        assert_eq!(pair.server.shutdown(), Outcome::Done(1));
        assert_eq!(pair.client.shutdown(), Outcome::Done(1));
        Ok(())
    })
}

#[test]
fn a_write_into_a_full_wire_blocks_and_goes_on_from_another_buffer() -> TestResult {
    on_each(|tls| {
        let (server, client) = contexts(tls)?;
        let mut pair = Pair::with_capacity(&server, &client, 4096)?;
        assert!(pair.handshake());
        let sent = vec![7; 100_000];
        let (mut written, mut received, mut blocked) = (0, 0, 0);
        let mut buffer = vec![0; 16 * 1024];
        while received < sent.len() {
            if written < sent.len() {
                let copy = sent[written..].to_vec();
                match pair.server.write(&copy) {
                    Outcome::Done(count) => written += count,
                    Outcome::WantWrite => blocked += 1,
                    other => return Err(format!("write: {other:?}").into()),
                }
            }
            match pair.client.read(&mut buffer) {
                Outcome::Done(count) => received += count,
                Outcome::WantRead => {}
                other => return Err(format!("read: {other:?}").into()),
            }
        }
        assert!(blocked > 0);
        assert_eq!((written, received), (sent.len(), sent.len()));
        Ok(())
    })
}

#[test]
fn a_session_is_resumed() -> TestResult {
    on_each(|tls| {
        let (server, _) = contexts(tls)?;
        let client = Context::client(tls)?.max_protocol(Protocol::Tls1_2)?.build();
        let mut first = Pair::new(&server, &client)?;
        assert!(first.handshake());
        assert!(!first.client.session_reused());
        let session = first.client.session().ok_or("no session")?;
        let mut second = Pair::new(&server, &client)?;
        assert!(second.client.set_session(&session));
        assert!(second.handshake());
        assert!(second.client.session_reused() && second.server.session_reused());
        Ok(())
    })
}

#[test]
fn a_protocol_below_the_oldest_is_refused() -> TestResult {
    on_each(|tls| {
        let Identity { certificate, key } = identity()?;
        let server = Context::server(tls)?
            .min_protocol(Protocol::Tls1_2)?
            .certificate(certificate.as_bytes())?
            .private_key(key.as_bytes())?
            .build();
        let old =
            Context::client(tls)?.min_protocol(Protocol::Tls1_0)?.max_protocol(Protocol::Tls1_1)?;
        // OpenSSL 3 offers nothing below TLS 1.2 unless security is taken down; 1.0.2 has no level.
        let old = match old.cipher_list("ALL:@SECLEVEL=0") {
            Ok(old) => old.build(),
            Err(ContextError::Ciphers { .. }) => {
                Context::client(tls)?.max_protocol(Protocol::Tls1_1)?.build()
            }
            Err(error) => return Err(error.into()),
        };
        let mut pair = Pair::new(&server, &old)?;
        assert!(!pair.handshake());
        assert_ne!(tls.peek_error(), 0, "a refused handshake leaves errors");
        tls.clear_errors();
        Ok(())
    })
}

#[test]
fn a_certificate_is_verified_if_asked_for() -> TestResult {
    extern "C" fn accept(_preverify_ok: c_int, _store: *mut c_void) -> c_int {
        1
    }
    on_each(|tls| {
        let Identity { certificate, key } = identity()?;
        let server = Context::server(tls)?
            .certificate(certificate.as_bytes())?
            .private_key(key.as_bytes())?
            .build();
        let handshake = |client: Context| -> TestResult<bool> {
            let done = Pair::new(&server, &client)?.handshake();
            tls.clear_errors();
            Ok(done)
        };
        let client = || Context::client(tls);
        assert!(handshake(client()?.build())?);
        assert!(!handshake(client()?.verify(true).build())?);
        assert!(handshake(client()?.trust(certificate.as_bytes())?.verify(true).build())?);
        assert!(handshake(client()?.verify_with(accept).build())?);
        Ok(())
    })
}

#[test]
fn bad_certificates_and_keys_are_told_apart_and_leave_no_errors() -> TestResult {
    on_each(|tls| {
        let (one, other) = (identity()?, identity()?);
        let server = || Context::server(tls);
        let Err(ContextError::Certificate { reason }) = server()?.certificate(b"junk") else {
            return Err("junk was taken for a certificate".into());
        };
        assert!(
            reason.to_lowercase().contains("no start line") || reason.contains("NO_START_LINE"),
            "{reason}"
        );
        let with = || server()?.certificate(one.certificate.as_bytes());
        assert!(matches!(with()?.private_key(b"junk"), Err(ContextError::PrivateKey { .. })));
        let other_key = with()?.private_key(other.key.as_bytes());
        assert!(matches!(other_key, Err(ContextError::Mismatch { .. })));
        let nothing = server()?.cipher_list("NO-SUCH-CIPHER");
        assert!(matches!(nothing, Err(ContextError::Ciphers { .. })));
        Ok(())
    })
}

#[test]
fn a_wire_cut_or_full_of_garbage_is_fatal() -> TestResult {
    on_each(|tls| {
        let (server, _) = contexts(tls)?;
        let (mut connection, mut wire) = Connection::over_wire(&server, 1024)?;
        assert_eq!(connection.handshake(), Outcome::WantRead);
        assert_eq!(wire.write(b"GET / HTTP/1.1\r\nHost: not TLS\r\n\r\n"), 33);
        assert_eq!(connection.handshake(), Outcome::Ssl);
        tls.clear_errors();
        let (mut connection, mut wire) = Connection::over_wire(&server, 1024)?;
        assert_eq!(connection.handshake(), Outcome::WantRead);
        wire.cut();
        let ended = connection.handshake();
        assert!(ended.is_fatal(), "{ended:?}");
        tls.clear_errors();
        Ok(())
    })
}

#[test]
fn what_a_fault_leaves_makes_a_healthy_read_fatal() -> TestResult {
    on_each(|tls| {
        let (server, client) = contexts(tls)?;
        let mut pair = Pair::new(&server, &client)?;
        assert!(pair.handshake());
        // What TLS 1.3 sends after the handshake has no place in what follows.
        let _ = pair.client.read(&mut [0; 16]);
        let mut buffer = [0; 16];
        for (fault, poisoned) in [
            (faults::pem_junk as fn(&'static Tls), Outcome::Ssl),
            (faults::sys_miss, Outcome::Syscall),
        ] {
            fault(tls);
            assert_ne!(tls.peek_error(), 0);
            let returned = pair.server.read_raw(&mut buffer);
            assert_eq!(returned.value(), -1);
            let believed = pair.server.classify(returned);
            tls.clear_errors();
            if tls.version().starts_with("OpenSSL 4.") {
                assert_eq!(believed, Outcome::WantRead, "mended in 4.0");
            } else if tls.version().starts_with("OpenSSL") {
                assert_eq!(believed, poisoned);
            }
            assert_eq!(pair.server.read(&mut buffer), Outcome::WantRead);
        }
        Ok(())
    })
}

#[test]
fn over_a_socket_and_from_thread_to_thread() -> TestResult {
    on_each(|tls| {
        let (server, client) = contexts(tls)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let outgoing = TcpStream::connect(listener.local_addr()?)?;
        let (incoming, _) = listener.accept()?;
        incoming.set_nonblocking(true)?;
        outgoing.set_nonblocking(true)?;
        let mut server = Connection::over_socket(&server, incoming)?;
        let mut client = Connection::over_socket(&client, outgoing)?;
        while !matches!(
            (client.handshake(), server.handshake()),
            (Outcome::Done(_), Outcome::Done(_))
        ) {}
        assert_eq!(client.write(b"moved"), Outcome::Done(5));
        let received = std::thread::spawn(move || {
            let mut buffer = [0; 16];
            loop {
                match server.read(&mut buffer) {
                    Outcome::WantRead => std::thread::yield_now(),
                    other => return (other, buffer),
                }
            }
        });
        let (outcome, buffer) = received.join().map_err(|_| "the thread panicked")?;
        assert_eq!(outcome, Outcome::Done(5));
        assert_eq!(&buffer[..5], b"moved");
        // The thread has ended the server's connection.
        let mut rest = Vec::new();
        let outgoing = client.into_transport();
        outgoing.set_nonblocking(false)?;
        (&outgoing).read_to_end(&mut rest)?;
        Ok(())
    })
}
