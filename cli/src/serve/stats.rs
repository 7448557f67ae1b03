//! Figures of the server, added up when somebody asks.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sslsweep::hygiene;
use sslsweep::probe::{Library, Line, Snapshot};

use super::cure::Cure;
use super::worker::Counters;

/// What is counted while the server runs.
#[derive(Debug, Default)]
pub struct Stats {
    /// Connections accepted.
    pub connections: AtomicU64,
    workers: Mutex<Workers>,
    live_threads: AtomicUsize,
    states: AtomicUsize,
    most_states: AtomicUsize,
    panicked: AtomicBool,
}

#[derive(Debug, Default)]
struct Workers {
    counters: Vec<Arc<Counters>>,
    /// What those had counted that are gone.
    ended: Totals,
    /// How many there may be before the next look for those that are gone.
    room: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    tasks: u64,
    requests: u64,
    bytes: u64,
    refused: u64,
    handshake_failures: u64,
    fatal_on_established: u64,
}

impl Totals {
    fn add(&mut self, counters: &Counters) {
        self.tasks += counters.tasks.get();
        self.requests += counters.requests.get();
        self.bytes += counters.bytes.get();
        self.refused += counters.refused.get();
        self.handshake_failures += counters.handshake_failures.get();
        self.fatal_on_established += counters.fatal_on_established.get();
    }
}

impl Workers {
    /// Adds up the counters whose threads have ended.
    fn collect(&mut self) {
        let ended = &mut self.ended;
        self.counters.retain(|counters| {
            let lives = Arc::strong_count(counters) > 1;
            if !lives {
                ended.add(counters);
            }
            lives
        });
        self.room = self.counters.len() * 2 + 64;
    }
}

/// Answer to `stats`.
#[derive(Debug, Serialize)]
pub struct Report {
    event: &'static str,
    /// CPU time of the process.
    cpu_ns: u64,
    cure: Cure,
    requests: u64,
    bytes: u64,
    connections: u64,
    refused: u64,
    handshake_failures: u64,
    tasks: u64,
    fatal_on_established: u64,
    live_threads: usize,
    thread_states: ThreadStates,
    /// Absent where the cure has no guard.
    ledger: Option<LedgerFigures>,
    locks: Vec<LockFigures>,
    snapshot: Snapshot,
}

/// Thread states of the process.
#[derive(Debug, Serialize)]
pub struct ThreadStates {
    /// Alive now.
    pub alive: usize,
    /// Most alive at a time: on 1.0.x the most that a look has found.
    peak: usize,
    bytes: usize,
    /// Buckets of the table of 1.0.x.
    buckets: Option<usize>,
    longest_chain: Option<usize>,
}

#[derive(Debug, Serialize)]
struct LedgerFigures {
    tasks: u64,
    dirty_tasks: u64,
    leftovers: u64,
    arrivals: u64,
}

#[derive(Debug, Serialize)]
struct LockFigures {
    name: String,
    acquisitions: u64,
    contended: u64,
    wait_ms: f64,
}

impl Stats {
    /// Whether the server itself counts thread states: where no table of the library's tells them.
    #[inline]
    pub fn counts_states(library: &Library) -> bool {
        !library.shares_states()
    }

    /// A worker thread begins.
    pub fn worker_begins(&self) -> Arc<Counters> {
        self.live_threads.fetch_add(1, Ordering::Relaxed);
        let counters = Arc::new(Counters::default());
        let mut workers = self.workers();
        if workers.counters.len() >= workers.room {
            workers.collect();
        }
        workers.counters.push(Arc::clone(&counters));
        counters
    }

    /// A worker thread ends, perhaps by a panic.
    pub fn worker_ends(&self, panicked: bool) {
        if panicked {
            self.panicked.store(true, Ordering::Relaxed);
        }
        self.live_threads.fetch_sub(1, Ordering::Release);
    }

    /// Worker threads alive.
    pub fn live_threads(&self) -> usize {
        self.live_threads.load(Ordering::Acquire)
    }

    /// Whether a worker has panicked.
    pub fn panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    /// A thread has got its state, or has given it back.
    pub fn state_changed(&self, has_state: bool) {
        if has_state {
            let states = self.states.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_states.fetch_max(states, Ordering::Relaxed);
        } else {
            self.states.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Thread states now.
    pub fn thread_states(&self, library: &Library) -> ThreadStates {
        if let Some(census) = library.census() {
            let peak = self.most_states.fetch_max(census.alive, Ordering::Relaxed);
            return ThreadStates {
                alive: census.alive,
                peak: peak.max(census.alive),
                bytes: census.bytes,
                buckets: census.buckets,
                longest_chain: census.longest_chain,
            };
        }
        let alive = self.states.load(Ordering::Relaxed);
        ThreadStates {
            alive,
            peak: self.most_states.load(Ordering::Relaxed),
            bytes: alive * state_bytes(library.line()),
            buckets: None,
            longest_chain: None,
        }
    }

    /// All figures.
    pub fn report(&self, server: &super::Server) -> Report {
        let totals = {
            let mut workers = self.workers();
            workers.collect();
            let mut totals = workers.ended;
            workers.counters.iter().for_each(|counters| totals.add(counters));
            totals
        };
        let cure = server.cure.get();
        Report {
            event: "stats",
            cpu_ns: cpu_ns(),
            cure,
            requests: totals.requests,
            bytes: totals.bytes,
            connections: self.connections.load(Ordering::Relaxed),
            refused: totals.refused,
            handshake_failures: totals.handshake_failures,
            tasks: totals.tasks,
            fatal_on_established: totals.fatal_on_established,
            live_threads: self.live_threads(),
            thread_states: self.thread_states(server.library),
            ledger: (cure == Cure::Sweep).then(ledger),
            locks: server.tls.locks().map_or(Vec::new(), |locks| {
                let figures = locks.figures().into_iter();
                figures
                    .map(|lock| LockFigures {
                        name: lock.name,
                        acquisitions: lock.acquisitions,
                        contended: lock.contended,
                        wait_ms: lock.wait_ns as f64 / 1e6,
                    })
                    .collect()
            }),
            snapshot: server.probe.snapshot(),
        }
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ledger() -> LedgerFigures {
    let ledger = hygiene::ledger();
    LedgerFigures {
        tasks: ledger.tasks(),
        dirty_tasks: ledger.dirty_tasks(),
        leftovers: ledger.leftovers(),
        arrivals: ledger.arrivals(),
    }
}

/// Size of ERR_STATE, without what hangs on it (OPENSSL.md, "Reading the queue").
fn state_bytes(line: Line) -> usize {
    match line {
        Line::V1_0 | Line::LibreSsl => 600,
        Line::V3 | Line::V4 => 904,
        _ => 584,
    }
}

/// CPU time of the process.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}
