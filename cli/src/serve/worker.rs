//! What each worker thread has of its own: its counters, and what it knows of its thread state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sslsweep::probe::{Library, ThreadState};

use super::Server;
use super::cure::Cure;
use super::stats::Stats;

/// A figure that one worker counts and anybody reads.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it; only the worker that owns it may.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one worker has done.
#[derive(Debug, Default)]
pub struct Counters {
    /// Socket tasks.
    pub tasks: Count,
    /// Requests answered with 200.
    pub requests: Count,
    /// Bytes of bodies, of incomplete ones too.
    pub bytes: Count,
    /// Requests refused with a 4xx or 5xx.
    pub refused: Count,
    /// Handshakes that failed.
    pub handshake_failures: Count,
    /// Fatal results on connections whose handshake was done: real ones, and healthy connections
    /// that were believed to have failed.
    pub fatal_on_established: Count,
}

/// A worker thread, from its beginning to its end. Lives on that thread.
pub struct Worker {
    pub server: Arc<Server>,
    pub counters: Arc<Counters>,
    pub library: &'static Library,
    /// Whether the thread is known to have a thread state; not kept where the table tells.
    has_state: bool,
}

impl Worker {
    /// To be called on the worker's thread, first thing.
    pub fn begin(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            counters: server.stats.worker_begins(),
            library: server.library,
            has_state: false,
        }
    }

    /// The cure in force now.
    #[inline]
    pub fn cure(&self) -> Cure {
        self.server.cure.get()
    }

    /// To be called after each task, outside of it.
    #[inline]
    pub fn task_ended(&mut self) {
        self.counters.tasks.add(1);
        if Stats::counts_states(self.library) {
            let has_state = self.library.state() != ThreadState::Absent;
            if has_state != self.has_state {
                self.server.stats.state_changed(has_state);
                self.has_state = has_state;
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.has_state {
            // The thread ends, and its state goes with it.
            self.server.stats.state_changed(false);
        }
        self.server.stats.worker_ends(std::thread::panicking());
    }
}
