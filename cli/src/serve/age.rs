//! Ageing: what months do to a process, in seconds; and threads that rest.
//!
//! Worker threads come, serve one small PUT each through the server's own code, and end. They are all
//! alive together, so that each has a stack, and with it a pthread_self(3), of its own: on 1.0.x that is
//! the key of the state that a thread leaves behind when nobody gives it back.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde::Serialize;

use super::client::{Client, ClientError};
use super::connection::Served;
use super::stats::Stats;
use super::threads::{NoRoom, check_room};
use super::worker::Worker;
use super::{Server, alone, poller};

/// Stack of a thread that serves one PUT. A handshake needs about 40 KB on any line.
const STACK: usize = 256 * 1024;
/// Stack of a thread that does nothing.
const IDLE_STACK: usize = 64 * 1024;
/// Clients at a time.
const CLIENTS: usize = 4;
/// How long a client may need to connect.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the server could not be aged.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    #[error(
        "only {started} of {wanted} threads could be started: {source}; ask for fewer, or raise the \
         limits (ulimit -u, sysctl vm.max_map_count, the container's limit on processes)"
    )]
    Threads { started: usize, wanted: usize, source: std::io::Error },
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("a small PUT failed while ageing: {0}")]
    Client(#[from] ClientError),
    #[error("a worker thread panicked while ageing")]
    Panicked,
    #[error("cannot listen for the clients that age the server: {0}")]
    Listen(std::io::Error),
    #[error("no client came in {} s while ageing", PATIENCE.as_secs())]
    NoClient,
}

/// What ageing has done.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Aged {
    /// Threads that came and went.
    pub threads: usize,
    /// Thread states that the process has after it.
    pub states: usize,
}

/// Keeps threads alive until it is opened.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn wait(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened.wait_while(open, |open| !*open);
        drop(opened.unwrap_or_else(PoisonError::into_inner));
    }

    fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }
}

/// Lets `count` worker threads serve one small PUT each, and end.
///
/// # Errors
/// One of [`AgeError`]; threads that were started have ended all the same.
pub fn age(server: &Arc<Server>, count: usize) -> Result<Aged, AgeError> {
    check_room(count.saturating_add(server.standing))?;
    let listener =
        poller::listen(SocketAddr::from(([127, 0, 0, 1], 0))).map_err(AgeError::Listen)?;
    let address = listener.local_addr().map_err(AgeError::Listen)?;
    let client = Client::new(&server.identity.certificate)?;
    let gate = Arc::new(Gate::default());
    let mut workers = Vec::with_capacity(count);
    let given = AtomicUsize::new(0);
    // Readable once a client has failed: then there is no use in waiting for the others.
    let broken = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| AgeError::Listen(error.into()))?;
    let outcome = std::thread::scope(|scope| {
        let (failed, failure) = mpsc::channel();
        for _ in 0..CLIENTS.min(count) {
            let (given, client, failed) = (&given, client.clone(), failed.clone());
            let broken = broken.as_fd();
            let clients = move || {
                while given.fetch_add(1, Ordering::Relaxed) < count {
                    if let Err(error) = client.put(address) {
                        // Nobody listens any more when another client has failed first.
                        let _ = failed.send(error);
                        // A counter that nobody reads can only be full, which is as good.
                        let _ = rustix::io::write(broken, &1_u64.to_ne_bytes());
                        return;
                    }
                }
            };
            scope.spawn(clients);
        }
        drop(failed);
        let started = start(server, count, &listener, broken.as_fd(), &gate, &mut workers);
        // The clients that are left give up when nobody accepts them.
        if started.is_err() {
            given.store(count, Ordering::Relaxed);
            drop(listener);
            gate.open();
        }
        // Ends when all clients have: after the last answer, or with what went wrong.
        match (failure.recv(), started) {
            (_, Err(error @ AgeError::Threads { .. })) => Err(error),
            (Ok(error), _) => Err(error.into()),
            (Err(_), started) => started,
        }
    });
    gate.open();
    let panicked = workers.into_iter().map(JoinHandle::join).any(|joined| joined.is_err());
    outcome?;
    if panicked {
        return Err(AgeError::Panicked);
    }
    Ok(Aged { threads: count, states: server.stats.thread_states(server.library).alive })
}

/// Starts a worker for each client that comes.
fn start(
    server: &Arc<Server>,
    count: usize,
    listener: &TcpListener,
    broken: BorrowedFd<'_>,
    gate: &Arc<Gate>,
    workers: &mut Vec<JoinHandle<()>>,
) -> Result<(), AgeError> {
    for number in 0..count {
        let stream = accept(listener, broken)?;
        let id = server.stats.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let served = Box::new(Served::new(id, stream, server.most_body));
        let (server, gate) = (Arc::clone(server), Arc::clone(gate));
        let thread = Builder::new().name("ageing".to_owned()).stack_size(STACK);
        let spawned = thread.spawn(move || {
            let mut worker = Worker::begin(&server);
            alone::serve(&mut worker, served);
            gate.wait();
        });
        let fail = |source| AgeError::Threads { started: number, wanted: count, source };
        workers.push(spawned.map_err(fail)?);
    }
    Ok(())
}

/// Accepts a client's connection, non-blocking as all connections of the server are.
///
/// # Errors
/// None comes: in time, or at all because `broken` is readable.
fn accept(listener: &TcpListener, broken: BorrowedFd<'_>) -> Result<TcpStream, AgeError> {
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true).map_err(AgeError::Listen)?;
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(AgeError::Listen(error)),
        }
        let mut waited = [
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(broken, PollFlags::IN),
        ];
        match poll(&mut waited, Some(&patience)) {
            Ok(0) => return Err(AgeError::NoClient),
            Ok(_) if !waited[1].revents().is_empty() => return Err(AgeError::NoClient),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(AgeError::Listen(error.into())),
        }
    }
}

/// Threads that have used the library once, and rest until this is dropped.
pub struct Idle {
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
}

impl Idle {
    /// # Errors
    /// A thread could not be started.
    pub fn start(server: &Arc<Server>, count: usize) -> Result<Self, AgeError> {
        let gate = Arc::new(Gate::default());
        let mut idle = Self { gate, threads: Vec::with_capacity(count) };
        let (touched, touches) = mpsc::channel();
        for started in 0..count {
            let (server, gate, touched) =
                (Arc::clone(server), Arc::clone(&idle.gate), touched.clone());
            let thread = Builder::new().name("idle".to_owned()).stack_size(IDLE_STACK);
            let spawned = thread.spawn(move || {
                // A look at the queue gives the thread its state.
                let _ = server.library.peek();
                let counted = Stats::counts_states(server.library);
                if counted {
                    server.stats.state_changed(true);
                }
                // Nobody listens when a later thread could not be started.
                let _ = touched.send(());
                drop(touched);
                gate.wait();
                if counted {
                    server.stats.state_changed(false);
                }
            });
            let fail = |source| AgeError::Threads { started, wanted: count, source };
            idle.threads.push(spawned.map_err(fail)?);
        }
        drop(touched);
        if touches.iter().count() < count {
            return Err(AgeError::Panicked);
        }
        Ok(idle)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.gate.open();
        for thread in self.threads.drain(..) {
            // A panic has been printed; what is left to do is to end.
            let _ = thread.join();
        }
    }
}
