//! The thread that accepts connections and learns which of them are ready.
//!
//! Each socket is registered one-shot (EPOLLONESHOT): once it is reported, nothing is reported for it
//! until the worker that served it registers it again. So one thread at a time has a connection: the
//! poller, a queue, or a worker. In between it lies in the slot of its descriptor, whose lock is
//! there for the compiler: only a registration that is just being made is ever waited for.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Server;
use super::connection::{Interest, Served};

/// Most descriptors, whatever the process's limit.
const MOST: u64 = 65_536;
/// Connections that wait to be accepted. std's listener has room for 128, and a burst of clients
/// above that waits a second for its retry.
const BACKLOG: i32 = 4096;

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// Registrations and the slots of connections that wait.
pub struct Poller {
    epoll: OwnedFd,
    /// Readable from the moment the server is to stop.
    stop: OwnedFd,
    slots: Box<[Mutex<Option<Box<Served>>>]>,
}

/// A listening socket.
///
/// # Errors
/// As bind(2) and listen(2).
pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

impl Poller {
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> std::io::Result<Self> {
        let descriptors = raise_limit();
        let slots = (0..descriptors).map(|_| Mutex::new(None)).collect();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        Ok(Self { epoll, stop, slots })
    }

    /// What becomes readable when the server is to stop.
    pub fn stopped(&self) -> impl AsFd {
        self.stop.as_fd()
    }

    /// Ends [`run`](Self::run), and whoever waits for [`stopped`](Self::stopped).
    pub fn stop(&self) {
        // The counter of an eventfd that nobody reads can only be full, which is as good.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }

    /// Lets a connection wait; the next event on it hands it over.
    pub fn wait_for(&self, served: Box<Served>, interest: Interest) {
        self.register(served, interest, false);
    }

    fn register(&self, served: Box<Served>, interest: Interest, new: bool) {
        let Some(descriptor) = served.socket().map(|socket| socket.as_raw_fd()) else { return };
        let index = usize::try_from(descriptor).unwrap_or(usize::MAX);
        let Some(slot) = self.slots.get(index) else {
            eprintln!("sslsweep: more than {} connections: one was closed", self.slots.len());
            return;
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let served = slot.insert(served);
        let Some(socket) = served.socket() else { return };
        let data = epoll::EventData::new_u64(index as u64);
        let flags = epoll::EventFlags::ONESHOT
            | match interest {
                Interest::Readable => epoll::EventFlags::IN | epoll::EventFlags::RDHUP,
                Interest::Writable => epoll::EventFlags::OUT,
            };
        let registered = if new {
            epoll::add(&self.epoll, socket, data, flags)
        } else {
            epoll::modify(&self.epoll, socket, data, flags)
        };
        if let Err(error) = registered {
            eprintln!("sslsweep: a connection was closed, as epoll refused it: {error}");
            *slot = None;
        }
    }

    /// Accepts and hands over until [`stop`](Self::stop).
    ///
    /// # Errors
    /// epoll itself failed.
    pub fn run(&self, server: &Arc<Server>, listener: &TcpListener) -> std::io::Result<()> {
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&self.epoll, listener, data, epoll::EventFlags::IN)?;
        let mut events = Vec::with_capacity(256);
        let mut ready = Vec::with_capacity(256);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let data = event.data;
                match data.u64() {
                    STOP => return Ok(()),
                    LISTENER => accept(server, listener),
                    index => ready.extend(self.take(index)),
                }
            }
            if !ready.is_empty() {
                server.hand_over(&mut ready);
            }
        }
    }

    fn take(&self, index: u64) -> Option<Box<Served>> {
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Drops the connections that wait.
    pub fn clear(&self) {
        for slot in &self.slots {
            let waited = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(waited);
        }
    }
}

/// Accepts all that wait.
fn accept(server: &Arc<Server>, listener: &TcpListener) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let stream = match rustix::net::accept_with(listener, flags) {
            Ok(socket) => TcpStream::from(socket),
            Err(Errno::AGAIN) => return,
            // The client is gone again, or a signal came.
            Err(Errno::CONNABORTED | Errno::INTR) => continue,
            Err(error) => {
                eprintln!(
                    "sslsweep: cannot accept: {error}; raise the limit on open files (ulimit -n)"
                );
                // The connection waits on; connections that end make room for it.
                std::thread::sleep(Duration::from_millis(10));
                return;
            }
        };
        // Answers are small: without this they would wait for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        let id = server.stats.connections.fetch_add(1, Ordering::Relaxed) + 1;
        server.accepted(Box::new(Served::new(id, stream, server.most_body)));
    }
}

impl Poller {
    /// Lets a new connection wait for its first bytes.
    pub fn add(&self, served: Box<Served>) {
        self.register(served, Interest::Readable, true);
    }
}

/// Raises the limit on open files as far as it goes; how many there can be.
fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(MOST).min(MOST);
    let raised = Rlimit { current: Some(most), maximum: limit.maximum };
    if limit.current.is_none_or(|current| current < most)
        && setrlimit(Resource::Nofile, raised).is_err()
    {
        return limit.current.unwrap_or(MOST);
    }
    most
}
