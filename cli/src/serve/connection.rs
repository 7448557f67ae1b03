//! One connection, and the socket tasks that serve it, a different worker each time.
//!
//! A task does what can be done until a call would block: it goes on with the handshake, reads
//! requests and answers them, or closes. Would-block or not is what the library says (SSL_get_error),
//! as servers do: with the cure `none` an error that another connection's task left on the thread is
//! believed, and this connection is closed.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use sslsweep_libssl::{Connection, Context, Outcome};

use super::cure::Running;
use super::http::{Exchange, Progress, Refusal, refuse};
use super::worker::{Counters, Worker};

/// Room for a head that is not complete, and for a record behind it.
const BUFFER: usize = 32 * 1024;
/// Most bytes asked for at once: what a TLS record can hold.
const READ: usize = 16 * 1024;
/// After a refusal so many bytes are still read and dropped, so that the client sees the answer
/// instead of a reset.
const LINGER: usize = 1 << 20;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Readable,
    Writable,
}

/// What a task leaves to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait, then run another task.
    Wait(Interest),
    /// Nothing: the connection is gone.
    Closed,
}

/// How a task ended.
enum Step {
    /// The next task can begin at once.
    Go,
    Wait(Interest),
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Accept,
    Read,
    /// An answer is blocked.
    Write,
    Close {
        /// Whether close_notify is sent: not after a fatal result.
        notify: bool,
        /// Whether to read what the client still sends.
        linger: bool,
    },
    /// No TLS any more; what the client still sends is dropped.
    Linger,
}

impl Phase {
    fn label(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Read => "read",
            Self::Write => "write",
            Self::Close { .. } | Self::Linger => "close",
        }
    }
}

enum Link {
    /// Accepted; the first task makes the TLS connection.
    New(TcpStream),
    Tls(Connection<TcpStream>),
    Plain(TcpStream),
    Gone,
}

/// What happens once an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    ReadOn,
    NextRequest,
    Close { linger: bool },
}

/// A connection of the server.
pub struct Served {
    id: u64,
    link: Link,
    phase: Phase,
    exchange: Exchange,
    buffer: Box<[u8]>,
    /// The part of the buffer that is read and not parsed.
    start: usize,
    end: usize,
    answer: Vec<u8>,
    written: usize,
    then: Then,
    lingered: usize,
}

impl Served {
    /// A connection that was accepted. Its socket must be non-blocking.
    pub fn new(id: u64, stream: TcpStream, most_body: u64) -> Self {
        Self {
            id,
            link: Link::New(stream),
            phase: Phase::Accept,
            exchange: Exchange::new(most_body),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            answer: Vec::with_capacity(256),
            written: 0,
            then: Then::NextRequest,
            lingered: 0,
        }
    }

    /// Its socket; none once it is closed.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.link {
            Link::New(stream) | Link::Plain(stream) => Some(stream.as_fd()),
            Link::Tls(connection) => Some(connection.transport().as_fd()),
            Link::Gone => None,
        }
    }

    /// Runs tasks until one has to wait.
    pub fn work(&mut self, worker: &mut Worker) -> Next {
        loop {
            let task = Running::begin(worker.cure(), worker.library, self.phase.label(), self.id);
            let step = self.task(&task, worker);
            drop(task);
            worker.task_ended();
            match step {
                Step::Go => {}
                Step::Wait(interest) => return Next::Wait(interest),
                Step::Closed => return Next::Closed,
            }
        }
    }

    fn task(&mut self, task: &Running, worker: &Worker) -> Step {
        let counters = &*worker.counters;
        match self.phase {
            Phase::Accept => self.accept(task, counters, &worker.server.context),
            Phase::Read => self.read(task, counters),
            Phase::Write => match self.write(task, counters) {
                Ok(()) => self.answered(),
                Err(step) => step,
            },
            Phase::Close { notify, linger } => self.close(task, notify, linger),
            Phase::Linger => self.linger(),
        }
    }

    fn accept(&mut self, task: &Running, counters: &Counters, context: &Context) -> Step {
        if let Link::New(_) = self.link {
            let Link::New(stream) = std::mem::replace(&mut self.link, Link::Gone) else {
                return Step::Closed;
            };
            task.before_call();
            match Connection::over_socket(context, stream) {
                Ok(connection) => self.link = Link::Tls(connection),
                Err(_) => {
                    counters.handshake_failures.add(1);
                    return Step::Closed;
                }
            }
        }
        let Link::Tls(connection) = &mut self.link else { return Step::Closed };
        task.before_call();
        match connection.handshake() {
            Outcome::Done(_) => {
                self.phase = Phase::Read;
                Step::Go
            }
            Outcome::WantRead => Step::Wait(Interest::Readable),
            Outcome::WantWrite => Step::Wait(Interest::Writable),
            Outcome::ZeroReturn | Outcome::Syscall | Outcome::Ssl | Outcome::Other(_) => {
                counters.handshake_failures.add(1);
                self.end(false)
            }
        }
    }

    fn read(&mut self, task: &Running, counters: &Counters) -> Step {
        loop {
            // Bytes of a next request may be here already.
            if self.start < self.end {
                match self.parse(counters) {
                    Ok(Progress::More) => {}
                    Ok(Progress::Continue) => {
                        self.answer.extend_from_slice(CONTINUE);
                        self.then = Then::ReadOn;
                    }
                    Ok(Progress::Complete) => {
                        counters.requests.add(1);
                        self.exchange.answer(&mut self.answer);
                        self.then = if self.exchange.keeps_alive() {
                            Then::NextRequest
                        } else {
                            Then::Close { linger: false }
                        };
                    }
                    Err(refusal) => {
                        counters.refused.add(1);
                        refuse(refusal, &mut self.answer);
                        self.then = Then::Close { linger: true };
                    }
                }
                if !self.answer.is_empty() {
                    if let Err(step) = self.write(task, counters) {
                        return step;
                    }
                    match self.answered() {
                        Step::Go if self.phase == Phase::Read => continue,
                        step => return step,
                    }
                }
            }
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.end + READ > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let Link::Tls(connection) = &mut self.link else { return Step::Closed };
            let room = (self.end + READ).min(self.buffer.len());
            task.before_call();
            match connection.read(&mut self.buffer[self.end..room]) {
                Outcome::Done(count) => self.end += count,
                Outcome::WantRead => return Step::Wait(Interest::Readable),
                Outcome::WantWrite => return Step::Wait(Interest::Writable),
                Outcome::ZeroReturn => return self.end(true),
                Outcome::Syscall | Outcome::Ssl | Outcome::Other(_) => {
                    counters.fatal_on_established.add(1);
                    return self.end(false);
                }
            }
        }
    }

    fn parse(&mut self, counters: &Counters) -> Result<Progress, Refusal> {
        let before = self.exchange.bytes();
        let (used, progress) = self.exchange.feed(&self.buffer[self.start..self.end])?;
        self.start += used;
        counters.bytes.add(self.exchange.bytes() - before);
        Ok(progress)
    }

    /// Writes what is left of the answer; `Err` when the task ends here.
    fn write(&mut self, task: &Running, counters: &Counters) -> Result<(), Step> {
        while self.written < self.answer.len() {
            let Link::Tls(connection) = &mut self.link else { return Err(Step::Closed) };
            task.before_call();
            match connection.write(&self.answer[self.written..]) {
                Outcome::Done(count) => self.written += count,
                Outcome::WantRead => return Err(self.blocked(Interest::Readable)),
                Outcome::WantWrite => return Err(self.blocked(Interest::Writable)),
                Outcome::ZeroReturn => return Err(self.end(true)),
                Outcome::Syscall | Outcome::Ssl | Outcome::Other(_) => {
                    counters.fatal_on_established.add(1);
                    return Err(self.end(false));
                }
            }
        }
        self.answer.clear();
        self.written = 0;
        Ok(())
    }

    fn blocked(&mut self, interest: Interest) -> Step {
        self.phase = Phase::Write;
        Step::Wait(interest)
    }

    /// What comes after an answer that is written.
    fn answered(&mut self) -> Step {
        self.phase = match self.then {
            Then::ReadOn => Phase::Read,
            Then::NextRequest => {
                self.exchange.next();
                Phase::Read
            }
            Then::Close { linger } => Phase::Close { notify: true, linger },
        };
        Step::Go
    }

    /// Lets the next task close the connection.
    fn end(&mut self, notify: bool) -> Step {
        self.phase = Phase::Close { notify, linger: false };
        Step::Go
    }

    fn close(&mut self, task: &Running, notify: bool, linger: bool) -> Step {
        let Link::Tls(mut connection) = std::mem::replace(&mut self.link, Link::Gone) else {
            return Step::Closed;
        };
        if notify {
            task.before_call();
            // A close_notify that finds no room is given up: the connection ends either way.
            let _ = connection.shutdown();
        }
        let stream = connection.into_transport();
        if !linger || stream.shutdown(Shutdown::Write).is_err() {
            return Step::Closed;
        }
        self.link = Link::Plain(stream);
        self.phase = Phase::Linger;
        self.linger()
    }

    fn linger(&mut self) -> Step {
        let Link::Plain(stream) = &mut self.link else { return Step::Closed };
        while self.lingered < LINGER {
            match stream.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => self.lingered += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    return Step::Wait(Interest::Readable);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.link = Link::Gone;
        Step::Closed
    }
}
