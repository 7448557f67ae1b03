//! Delivers the requests of a round, and keeps count.
//!
//! Each client thread owns a slot with at most one connection, which lives on between rounds. Threads take
//! the next request when they are done with the last one (closed loop), so a latency here is a service
//! time; there is no intended start to measure from.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::body::Bodies;
use super::client::{Connection, Fault, Target};
use super::misbehave::misbehave;
use super::mix::Spread;
use super::output::{Done, Latency, Progress, Round};

/// A request is sent this many times before it counts as lost.
const ATTEMPTS: u32 = 40;
/// Errors kept word for word.
const ERRORS: usize = 20;
/// Longest latency that is told apart.
const LONGEST_US: u64 = 600_000_000;

/// The work of one round.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Client threads.
    pub threads: usize,
    /// Requests a round.
    pub requests: u64,
    /// Bytes of each body.
    pub body: u64,
    /// Share of requests that use a connection of their own.
    pub new_connections: f64,
    /// Misbehaving clients, as a share of the requests; they come on top.
    pub misbehave: f64,
    /// Share of requests with a chunked body.
    pub chunked: f64,
    /// Connections are opened before the clock starts.
    pub connect_first: bool,
}

/// A run: its plan, its target, its counts.
pub struct Engine {
    plan: Plan,
    target: Target,
    bodies: Bodies,
    new: Spread,
    bad: Spread,
    chunked: Spread,
    slots: Mutex<Vec<Slot>>,
    /// Requests of earlier rounds.
    base: AtomicU64,
    /// First connections of threads, to be saved at the next request that is due a new one.
    credit: AtomicU64,
    stop: Arc<AtomicBool>,
    counts: Counts,
    errors: Mutex<Vec<String>>,
    protocols: Mutex<BTreeMap<String, u64>>,
    rounds: Mutex<Vec<Round>>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
    connections: AtomicU64,
    closes_in_handshake: AtomicU64,
    closes_in_request: AtomicU64,
    timeouts: AtomicU64,
    retries: AtomicU64,
    misbehaved: AtomicU64,
    hash_failures: AtomicU64,
    lost: AtomicU64,
}

struct Slot {
    connection: Option<Connection>,
    opened: bool,
    latency: Histogram<u64>,
}

impl Engine {
    /// Prepares a run.
    pub fn new(plan: Plan, target: Target, seed: u64) -> Self {
        let slot = |_| Slot { connection: None, opened: false, latency: histogram() };
        Self {
            new: Spread::new(plan.requests, plan.new_connections, 0.0),
            bad: Spread::new(plan.requests, plan.misbehave, 0.5),
            chunked: Spread::new(plan.requests, plan.chunked, 0.75),
            slots: Mutex::new((0..plan.threads).map(slot).collect()),
            plan,
            target,
            bodies: Bodies::new(seed),
            base: AtomicU64::new(0),
            credit: AtomicU64::new(0),
            stop: Arc::default(),
            counts: Counts::default(),
            errors: Mutex::default(),
            protocols: Mutex::default(),
            rounds: Mutex::default(),
        }
    }

    /// Delivers one round.
    pub fn round(&self) -> Round {
        let mut slots = lock(&self.slots);
        let cpu = cpu_seconds();
        if self.plan.connect_first {
            std::thread::scope(|scope| {
                for slot in slots.iter_mut() {
                    scope.spawn(|| self.connect_ahead(slot));
                }
            });
        }
        let base = self.base.fetch_add(self.plan.requests, Relaxed);
        // The first request of each thread is its own: with one a thread, no thread gets two of them.
        let next = AtomicU64::new(slots.len() as u64);
        let (requests, bytes) =
            (self.counts.requests.load(Relaxed), self.counts.bytes.load(Relaxed));
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (first, slot) in slots.iter_mut().enumerate() {
                let next = &next;
                scope.spawn(move || {
                    let mut index = first as u64;
                    while index < self.plan.requests && !self.stop.load(Relaxed) {
                        self.request(slot, base, index);
                        index = next.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let delivered = self.counts.requests.load(Relaxed) - requests;
        if delivered < self.plan.requests && lock(&self.errors).is_empty() {
            self.error("stopped in the middle of a round".into());
        }
        let round = Round::new(delivered, self.counts.bytes.load(Relaxed) - bytes, seconds, cpu);
        if self.plan.connect_first && self.plan.new_connections > 0.0 {
            slots.iter_mut().for_each(|slot| self.close(slot));
        }
        lock(&self.rounds).push(round.clone());
        round
    }

    /// Lets the current round end as soon as it can.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Set from elsewhere, does what [`stop`](Self::stop) does.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether the run was asked to stop, or cannot go on.
    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Figures so far, without waiting for a round to end.
    pub fn progress(&self) -> Progress {
        Progress {
            requests: self.counts.requests.load(Relaxed),
            bytes: self.counts.bytes.load(Relaxed),
            false_closes: self.false_closes(),
            misbehaved: self.counts.misbehaved.load(Relaxed),
        }
    }

    /// Closes the connections and sums up.
    pub fn finish(&self) -> Done {
        let mut latency = histogram();
        for mut slot in std::mem::take(&mut *lock(&self.slots)) {
            self.close(&mut slot);
            // Same bounds on both sides: adding cannot fail.
            let _ = latency.add(&slot.latency);
        }
        let rounds = std::mem::take(&mut *lock(&self.rounds));
        let seconds: f64 = rounds.iter().map(|round| round.seconds).sum();
        let cpu = rounds.iter().map(|round| round.cpu_seconds).sum();
        let total = Round::new(
            self.counts.requests.load(Relaxed),
            self.counts.bytes.load(Relaxed),
            seconds,
            cpu,
        );
        Done {
            requests: total.requests,
            bytes: total.bytes,
            seconds,
            requests_per_second: total.requests_per_second,
            mb_per_second: total.mb_per_second,
            false_closes: self.false_closes(),
            closes_in_handshake: self.counts.closes_in_handshake.load(Relaxed),
            closes_in_request: self.counts.closes_in_request.load(Relaxed),
            timeouts: self.counts.timeouts.load(Relaxed),
            retries: self.counts.retries.load(Relaxed),
            connections: self.counts.connections.load(Relaxed),
            misbehaved: self.counts.misbehaved.load(Relaxed),
            hash_failures: self.counts.hash_failures.load(Relaxed),
            lost: self.counts.lost.load(Relaxed),
            errors: std::mem::take(&mut *lock(&self.errors)),
            latency_us: Latency::of(&latency),
            protocols: std::mem::take(&mut *lock(&self.protocols)),
            rounds,
        }
    }

    /// Closes the slot's connection, and counts it if the server was first: nobody has asked it to.
    fn close(&self, slot: &mut Slot) {
        if slot.connection.take().is_some_and(|connection| !connection.close()) {
            self.counts.closes_in_request.fetch_add(1, Relaxed);
        }
    }

    fn false_closes(&self) -> u64 {
        self.counts.closes_in_handshake.load(Relaxed) + self.counts.closes_in_request.load(Relaxed)
    }

    fn connect_ahead(&self, slot: &mut Slot) {
        if slot.connection.is_none() && !self.stopped() {
            match self.connect() {
                Ok(connection) => slot.connection = Some(connection),
                Err(fault @ Fault::Timeout) => {
                    self.stop();
                    self.error(format!("a connection opened ahead: {fault}"));
                }
                // Counted, and mended when the request is due.
                Err(_) => {}
            }
        }
    }

    fn connect(&self) -> Result<Connection, Fault> {
        let connection = self
            .target
            .connect()
            .inspect_err(|fault| self.count(fault, &self.counts.closes_in_handshake))?;
        self.counts.connections.fetch_add(1, Relaxed);
        *lock(&self.protocols).entry(connection.protocol()).or_default() += 1;
        Ok(connection)
    }

    fn count(&self, fault: &Fault, closes: &AtomicU64) {
        match fault {
            Fault::Closed(_) => closes.fetch_add(1, Relaxed),
            Fault::Timeout => self.counts.timeouts.fetch_add(1, Relaxed),
            Fault::Refused(_) | Fault::OutOfTime => 0,
        };
    }

    fn request(&self, slot: &mut Slot, base: u64, index: u64) {
        if let Some(n) = self.bad.mark(index) {
            let number = base / self.plan.requests.max(1) * self.bad.marked() + n;
            match misbehave(&self.target, &self.bodies, number, self.plan.body) {
                Ok(met) => {
                    if let Some(fault) = &met {
                        self.count(fault, &self.counts.closes_in_handshake);
                    }
                    self.counts.misbehaved.fetch_add(1, Relaxed)
                }
                Err(fault) => self.error(format!("misbehaving client {number}: {fault}")),
            };
        }
        self.choose_connection(slot, index);
        let start = Instant::now();
        match self.deliver(slot, base + index, self.chunked.mark(index).is_some()) {
            Ok(()) => slot.latency.saturating_record(start.elapsed().as_micros() as u64),
            Err(fault) => {
                // The run has failed: the others would each find out for themselves, in seconds.
                self.stop();
                self.counts.lost.fetch_add(1, Relaxed);
                self.error(format!("request {}: {fault}", base + index));
            }
        }
    }

    /// Closes the slot's connection if this request is due a new one.
    fn choose_connection(&self, slot: &mut Slot, index: u64) {
        let due = self.new.mark(index).is_some();
        match &slot.connection {
            Some(connection) if due && !connection.is_unused() => {
                let saved =
                    self.credit.fetch_update(Relaxed, Relaxed, |credit| credit.checked_sub(1));
                if saved.is_err() {
                    self.close(slot);
                }
            }
            None if !due && !slot.opened => {
                self.credit.fetch_add(1, Relaxed);
            }
            _ => {}
        }
        slot.opened = true;
    }

    fn deliver(&self, slot: &mut Slot, number: u64, chunked: bool) -> Result<(), Fault> {
        let mut attempt = 0;
        loop {
            let fault = match self.attempt(slot, number, chunked) {
                Ok(()) => return Ok(()),
                Err(fault) => fault,
            };
            attempt += 1;
            if attempt == ATTEMPTS || self.stopped() || !matches!(fault, Fault::Closed(_)) {
                return Err(fault);
            }
            self.counts.retries.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(1 << attempt.min(6)));
        }
    }

    fn attempt(&self, slot: &mut Slot, number: u64, chunked: bool) -> Result<(), Fault> {
        let mut connection = match slot.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let mut body = self.bodies.body(number, self.plan.body);
        let (answer, keep) = connection
            .put(&mut body, self.plan.body, chunked)
            .inspect_err(|fault| self.count(fault, &self.counts.closes_in_request))?;
        let hash = format!("{:016x}", body.hash());
        if answer.bytes != self.plan.body || answer.xxh3 != hash {
            self.counts.hash_failures.fetch_add(1, Relaxed);
            self.error(format!(
                "request {number}: sent {} bytes with hash {hash}, the server counted {} with hash {}",
                self.plan.body, answer.bytes, answer.xxh3
            ));
        } else {
            self.counts.requests.fetch_add(1, Relaxed);
            self.counts.bytes.fetch_add(self.plan.body, Relaxed);
        }
        if keep {
            slot.connection = Some(connection);
        } else {
            // The server has said that it would end it.
            let _ = connection.close();
        }
        Ok(())
    }

    fn error(&self, text: String) -> u64 {
        let mut errors = lock(&self.errors);
        if errors.len() < ERRORS {
            errors.push(text);
        }
        0
    }
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, LONGEST_US, 3)
        .unwrap_or_else(|_| unreachable!("fixed bounds"));
    histogram.auto(false);
    histogram
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
