//! A profiler's signal interrupts a blocking read, which could be repeated, and is taken for a failure.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::{Connection, Outcome as Class, Tls, faults};

use crate::common::{Expected, Outcome, contexts, told};

extern "C" fn sample(_signal: libc::c_int) {}

/// A profiler's handler, which does not let the system restart what it interrupts.
fn install() {
    // SAFETY: zeros are a valid sigaction: no flags, so no SA_RESTART, and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = sample as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the action is complete, and its handler touches nothing; nobody asks for the old one.
    let installed =
        unsafe { libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut()) };
    assert_eq!(installed, 0);
}

/// Reads from a peer that is slow, while signals arrive.
fn interrupted(connection: &mut Connection<TcpStream>) -> Class {
    // SAFETY: no preconditions.
    let reader = unsafe { libc::pthread_self() };
    let returned = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !returned.load(Ordering::Acquire) {
                // SAFETY: the reader waits for this thread's end, so that it is alive.
                unsafe { libc::pthread_kill(reader, libc::SIGPROF) };
                std::thread::yield_now();
            }
        });
        let read = connection.read_raw(&mut [0; 16]);
        returned.store(true, Ordering::Release);
        connection.classify(read)
    })
}

/// Both ends of an established connection, blocking.
fn connected(tls: &'static Tls) -> Outcome<(Connection<TcpStream>, Connection<TcpStream>)> {
    let (server, client) = contexts(tls)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = Connection::over_socket(&client, TcpStream::connect(listener.local_addr()?)?)?;
    let server = Connection::over_socket(&server, listener.accept()?.0)?;
    let (mut client, mut server) = (client, server);
    client.transport().set_nonblocking(true)?;
    server.transport().set_nonblocking(true)?;
    loop {
        match (client.handshake(), server.handshake()) {
            (Class::Done(_), Class::Done(_)) => break,
            (client, server) if client.is_fatal() || server.is_fatal() => {
                return Err(format!("handshake: {client:?}, {server:?}").into());
            }
            _ => std::thread::yield_now(),
        }
    }
    client.transport().set_nonblocking(false)?;
    server.transport().set_nonblocking(false)?;
    Ok((server, client))
}

fn check(tls: &'static Tls) -> Outcome {
    install();
    let (mut server, mut client) = connected(tls)?;

    faults::sys_miss(tls);
    let mended = tls.version().starts_with("OpenSSL 4.");
    let believed = if mended { Class::WantRead } else { Class::Syscall };
    assert_eq!(interrupted(&mut server), believed);
    tls.clear_errors();

    let since = SystemTime::now();
    run("open a log", || faults::sys_miss(tls));
    assert_eq!(run("read", || interrupted(&mut server)), Class::WantRead);
    // So the program repeats it.
    assert_eq!(client.write(b"late"), Class::Done(4));
    assert_eq!(run("read", || server.read(&mut [0; 16])), Class::Done(4));
    let reason = "no such file or directory";
    told(Expected { label: "open a log", reason, file: "bss_file.c", count: 1, since });
    assert_eq!(ledger().label("read").map(|read| (read.tasks, read.dirty_tasks)), Some((2, 0)));
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
