//! Worker threads that share one queue of ready connections.
//!
//! The poller hands over; whichever worker has waited longest takes. A worker that becomes free while
//! others wait goes to the end of their line, so that one connection is served by many workers in
//! turn, as in Tomcat's executor.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Server;
use super::connection::{Next, Served};
use super::threads::IDLE;
use super::worker::Worker;

/// The queue, and the threads that serve it.
pub struct Pool {
    least: usize,
    most: usize,
    inner: Mutex<Inner>,
    ready: Condvar,
}

struct Inner {
    queue: VecDeque<Box<Served>>,
    /// Workers that wait.
    idle: usize,
    threads: usize,
    closed: bool,
}

impl Pool {
    pub fn new(least: usize, most: usize) -> Self {
        let queue = VecDeque::with_capacity(1024);
        let inner = Inner { queue, idle: 0, threads: 0, closed: false };
        Self { least, most, inner: Mutex::new(inner), ready: Condvar::new() }
    }

    /// Starts the least number of threads.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(self: &Arc<Self>, server: &Arc<Server>) -> std::io::Result<()> {
        for _ in 0..self.least {
            self.lock().threads += 1;
            self.spawn(server)?;
        }
        Ok(())
    }

    /// Hands connections over, and empties `ready`.
    #[expect(clippy::vec_box, reason = "a connection has a kilobyte, and moves often")]
    pub fn hand_over(self: &Arc<Self>, server: &Arc<Server>, ready: &mut Vec<Box<Served>>) {
        let (wake, spawn) = {
            let mut inner = self.lock();
            inner.queue.extend(ready.drain(..));
            let waiting = inner.queue.len();
            let spawn = waiting.saturating_sub(inner.idle).min(self.most - inner.threads);
            inner.threads += spawn;
            (waiting.min(inner.idle), spawn)
        };
        for _ in 0..wake {
            self.ready.notify_one();
        }
        for _ in 0..spawn {
            if let Err(error) = self.spawn(server) {
                eprintln!("sslsweep: no further worker thread: {error}");
            }
        }
    }

    /// Takes no more; workers end when their task does. Connections that wait are dropped.
    pub fn close(&self) {
        let dropped = {
            let mut inner = self.lock();
            inner.closed = true;
            std::mem::take(&mut inner.queue)
        };
        self.ready.notify_all();
        drop(dropped);
    }

    /// Starts a thread that is counted already.
    fn spawn(self: &Arc<Self>, server: &Arc<Server>) -> std::io::Result<()> {
        let (pool, server) = (Arc::clone(self), Arc::clone(server));
        let spawned = std::thread::Builder::new().name("worker".to_owned()).spawn(move || {
            let mut worker = Worker::begin(&server);
            while let Some(mut served) = pool.take() {
                match served.work(&mut worker) {
                    Next::Wait(interest) => server.poller.wait_for(served, interest),
                    Next::Closed => {}
                }
            }
        });
        if spawned.is_err() {
            self.lock().threads -= 1;
        }
        spawned.map(drop)
    }

    /// The next connection; `None` when the calling worker is to end.
    fn take(&self) -> Option<Box<Served>> {
        let mut inner = self.lock();
        loop {
            if inner.closed {
                break;
            }
            if let Some(served) = inner.queue.pop_front() {
                return Some(served);
            }
            inner.idle += 1;
            let timed_out;
            if inner.threads > self.least {
                let (guard, waited) =
                    self.ready.wait_timeout(inner, IDLE).unwrap_or_else(PoisonError::into_inner);
                timed_out = waited.timed_out();
                inner = guard;
            } else {
                inner = self.ready.wait(inner).unwrap_or_else(PoisonError::into_inner);
                timed_out = false;
            }
            inner.idle -= 1;
            if timed_out && inner.queue.is_empty() && inner.threads > self.least {
                break;
            }
        }
        inner.threads -= 1;
        None
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
