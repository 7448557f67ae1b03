//! Case 7 of CASES.md with the `openssl` crate itself: a C library on the same thread fails, and the next
//! read of a Rust program is refused for it.
//!
//! A target of its own, because it links OpenSSL; each test is a process of its own for the ledger.

mod common;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use openssl::error::ErrorStack;
use openssl::pkey::PKey;
use openssl::ssl::{ErrorCode, Ssl, SslContext, SslMethod, SslStream};
use openssl::x509::X509;
use sslsweep::hygiene::{ledger, run};

use common::{Outcome, identity};

/// What a C library does that reads a PEM file and does not look at the queue afterwards.
fn c_library() {
    // SAFETY: four readable bytes, which outlive the BIO; it is freed below.
    let bio = unsafe { openssl_sys::BIO_new_mem_buf(c"junk".as_ptr().cast(), 4) };
    let null = std::ptr::null_mut();
    // SAFETY: a live BIO; nothing to reuse, no password to ask for.
    let none = unsafe { openssl_sys::PEM_read_bio_X509(bio, std::ptr::null_mut(), None, null) };
    assert!(none.is_null());
    // SAFETY: our own reference, given back once.
    unsafe { openssl_sys::BIO_free_all(bio) };
}

/// Two established connections' ends, in this order: server, client. Neither blocks.
fn connected() -> Outcome<(SslStream<TcpStream>, SslStream<TcpStream>)> {
    let identity = identity()?;
    let mut server = SslContext::builder(SslMethod::tls_server())?;
    server.set_certificate(X509::from_pem(identity.certificate.as_bytes())?.as_ref())?;
    server.set_private_key(PKey::private_key_from_pem(identity.key.as_bytes())?.as_ref())?;
    let client = SslContext::builder(SslMethod::tls_client())?.build();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let outgoing = TcpStream::connect(listener.local_addr()?)?;
    let (incoming, _) = listener.accept()?;
    incoming.set_nonblocking(true)?;
    outgoing.set_nonblocking(true)?;
    let mut server = SslStream::new(Ssl::new(&server.build())?, incoming)?;
    let mut client = SslStream::new(Ssl::new(&client)?, outgoing)?;
    while !(server.accept().is_ok() & client.connect().is_ok()) {
        std::thread::yield_now();
    }
    Ok((server, client))
}

fn read(stream: &mut SslStream<TcpStream>) -> Result<usize, ErrorCode> {
    stream.ssl_read(&mut [0; 16]).map_err(|error| error.code())
}

fn queued() -> usize {
    ErrorStack::get().errors().len()
}

alone! {
    fn a_failed_parse_refuses_the_next_read() {
        let (mut server, mut client) = connected()?;
        assert_eq!(read(&mut server), Err(ErrorCode::WANT_READ));
        c_library();
        assert_eq!(read(&mut server), Err(ErrorCode::SSL));
        // The crate has taken the error out with its own failing call. A successful one leaves it.
        assert_eq!(queued(), 0);
        c_library();
        client.write_all(b"data")?;
        server.get_ref().set_nonblocking(false)?;
        assert_eq!((read(&mut server), queued()), (Ok(4), 1));
        server.get_ref().set_nonblocking(true)?;

        run("C library", c_library);
        assert_eq!(run("read", || read(&mut server)), Err(ErrorCode::WANT_READ));
        let would_block = run("read", || server.read(&mut [0; 16])).expect_err("nothing is there");
        assert_eq!(would_block.kind(), io::ErrorKind::WouldBlock);
        let figures = ledger();
        let library = figures.label("C library").ok_or("no task")?;
        assert_eq!((library.dirty_tasks, library.leftovers), (1, 1));
        assert!(library.entries[0].reason.contains("no start line"));
        assert_eq!(figures.label("read").map(|read| (read.dirty_tasks, read.arrivals)), Some((0, 0)));
        Ok(())
    }
}
