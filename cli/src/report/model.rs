//! What `sslsweep regress` found out: the contents of `report.json`.
//!
//! `cli/schemas/regress.schema.json` is the same in JSON Schema; a test holds the two together.

use serde::{Deserialize, Serialize};

pub use crate::cure::Cure;
use crate::load::output::Latency;

/// Fewer samples than these have no 95 % interval for their median: the range of five covers it in 94 of 100
/// cases, that of three in 75.
pub const LEAST_FOR_INTERVAL: usize = 6;

/// The whole report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// How large everything was.
    pub settings: Settings,
    /// The Tomcats among the lines.
    pub hosts: Vec<Host>,
    /// One a library and cure.
    pub runs: Vec<Run>,
    /// Server CPU of one cure over another, in one process, interleaved.
    pub paired: Vec<Paired>,
    /// What must hold.
    pub verdicts: Vec<Verdict>,
    /// How long it all took.
    pub seconds: f64,
}

/// The size of the workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settings {
    /// `laptop` or `full`, before changes by hand.
    pub profile: String,
    /// Thread model of the server.
    pub server_threads: String,
    /// Client threads of the small phase.
    pub small_threads: usize,
    /// Requests of the small phase.
    pub small_requests: u64,
    /// Bytes of a small body.
    pub small_body: u64,
    /// Share of small requests on a new connection.
    pub new_connections: f64,
    /// Share of misbehaving clients.
    pub misbehave: f64,
    /// Client threads of the large phases.
    pub large_threads: usize,
    /// Bytes of a large body.
    pub large_body: u64,
    /// Least and most rounds of a large phase.
    pub large_rounds: (u64, u64),
    /// Worker threads that come and go between the small phase and the large PUTs after it, on 1.0.x.
    pub age: u64,
    /// Idle threads beside the ones that work, where releasing is compared with doing nothing.
    pub idle_threads: u64,
    /// Least and most quads of a paired comparison.
    pub pairs: (u64, u64),
}

/// A Tomcat that was run on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Host {
    /// Its name, as in `--server`; that of its line.
    pub line: String,
    /// Its release: `Apache Tomcat/9.0.70`.
    pub tomcat: String,
    /// What Tomcat calls its connector: protocol, and which implementation of TLS.
    pub connector: String,
    /// Release of tomcat-native.
    pub tcnative: String,
    /// The JVM and its release.
    pub java: String,
    /// How the JVM was started, beside paths.
    pub java_options: Vec<String>,
    /// What each process served before anything was measured.
    pub warm_up: WarmUp,
}

/// Work after which a JVM has compiled what it will compile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Small PUTs of each connector.
    pub requests: u64,
    /// ... of which so many were on a new connection.
    pub new_connections: u64,
    /// Large PUTs of each connector, in millions of bytes.
    pub megabytes: u64,
}

/// One library under one cure, in a process of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Name of the line, as in the manifest.
    pub line: String,
    /// The libssl that served.
    pub library: String,
    /// Its version.
    pub version: String,
    /// The cure.
    pub cure: Cure,
    /// The small phase.
    pub small: Small,
    /// The large phases, before and after.
    pub large: Large,
    /// Threads that came and went between the small phase and the large PUTs after it.
    pub aged: Option<Aged>,
    /// Thread states alive.
    pub thread_states: ThreadStates,
    /// What the guard recorded (of a Tomcat: after it was warm); `None` where the cure has no guard.
    pub ledger: Option<LedgerFigures>,
    /// All locks of the application's callback over the whole run; empty but on 1.0.x.
    pub locks: Vec<Lock>,
    /// The same, during the large PUTs after ageing only.
    pub locks_after: Vec<Lock>,
    /// Bodies of all healthy requests of the run, those of the twin too.
    pub bodies: Bodies,
    /// Healthy connections that the server ended.
    pub false_closes: u64,
    /// Samples, about four a second.
    pub growth: Vec<Growth>,
}

impl Run {
    /// What a heading calls the library.
    pub fn title(&self) -> String {
        if self.version.starts_with("OpenSSL ") {
            format!("OpenSSL {}", self.line)
        } else {
            self.line.clone()
        }
    }
}

/// Bodies of healthy requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bodies {
    /// That the clients were told to send.
    pub sent: u64,
    /// That were answered with the right count and hash.
    pub verified: u64,
}

impl std::iter::Sum for Bodies {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            sent: sum.sent + one.sent,
            verified: sum.verified + one.verified,
        })
    }
}

/// The small phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Small {
    /// Client threads.
    pub threads: usize,
    /// Requests, each answered and its body verified.
    pub requests: u64,
    /// Bytes of each body.
    pub bytes: u64,
    /// Requests a second.
    pub rps: f64,
    /// CPU time of the server process, misbehaving clients included.
    pub server_cpu_us_per_request: f64,
    /// Healthy connections opened.
    pub connections: u64,
    /// Misbehaving clients.
    pub misbehaved: u64,
    /// Service times at the client.
    pub latency_us: Latency,
}

/// The large phases.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Large {
    /// Client threads.
    pub threads: usize,
    /// Bytes of each body.
    pub bytes: u64,
    /// Median of the rounds of the fresh twin.
    pub fresh_mb_s: f64,
    /// Median of the rounds after the small phase and ageing, in turns with the twin's.
    pub after_mb_s: f64,
    /// After over fresh: median over the pairs of rounds.
    pub after_over_fresh: f64,
    /// 95 % interval of that median; with fewer than [`LEAST_FOR_INTERVAL`] pairs, their range.
    pub ratio_low: f64,
    /// Its upper end.
    pub ratio_high: f64,
    /// Server CPU of the twin; median.
    pub fresh_server_cpu_ms_per_mb: f64,
    /// Server CPU after; median.
    pub after_server_cpu_ms_per_mb: f64,
    /// Median of the rounds of the server itself, before the small phase. Minutes lie between them and the others,
    /// so nothing is judged by it.
    pub first_mb_s: f64,
    /// Each round of the server itself, before the small phase.
    pub first_rounds: Vec<LargeRound>,
    /// Each round of the twin.
    pub fresh_rounds: Vec<LargeRound>,
    /// Each round after.
    pub after_rounds: Vec<LargeRound>,
}

/// One large PUT a thread.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct LargeRound {
    /// As the clock on the wall has it.
    pub mb_s: f64,
    /// CPU time of the server.
    pub server_cpu_ms_per_mb: f64,
}

/// What ageing did.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Aged {
    /// Threads that came, served one small PUT and ended.
    pub threads: u64,
    /// Thread states alive afterwards.
    pub states: u64,
}

/// Thread states of the server process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadStates {
    /// Most alive at a time.
    pub peak: u64,
    /// Alive at the end.
    pub end: u64,
    /// Longest bucket chain of the table of 1.0.x.
    pub longest_chain: Option<u64>,
    /// Bytes of the states alive at the end.
    pub bytes: u64,
    /// Worker threads alive at the end.
    pub live_threads: u64,
}

/// What the ledger of the guard says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerFigures {
    /// Tasks that ran under the guard.
    pub tasks: u64,
    /// Tasks that left errors.
    pub dirty_tasks: u64,
    /// Errors that they left.
    pub leftovers: u64,
}

impl LedgerFigures {
    /// What was recorded after `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            tasks: self.tasks.saturating_sub(earlier.tasks),
            dirty_tasks: self.dirty_tasks.saturating_sub(earlier.dirty_tasks),
            leftovers: self.leftovers.saturating_sub(earlier.leftovers),
        }
    }
}

/// One lock of 1.0.x.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// `CRYPTO_LOCK_ERR` and its peers.
    pub name: String,
    /// Times it was taken.
    pub acquisitions: u64,
    /// Times it was held by another thread.
    pub contended: u64,
    /// Time spent waiting for it, over all threads.
    pub wait_ms: f64,
}

/// A sample.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Growth {
    /// Since the server was up.
    pub seconds: f64,
    /// `fresh`, `small`, `aged` or `after`.
    pub phase: String,
    /// Thread states alive.
    pub states: u64,
    /// Longest chain, on 1.0.x.
    pub longest_chain: Option<u64>,
    /// Worker threads alive.
    pub live_threads: u64,
}

/// Two cures compared in one process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Paired {
    /// Name of the line.
    pub line: String,
    /// The cure. The baseline itself: two equal connectors were compared, to know what the comparison can tell.
    pub cure: Cure,
    /// What it is compared with.
    pub baseline: Cure,
    /// `us_per_request`, `ms_per_mb` or `us_per_handshake`.
    pub metric: String,
    /// Idle threads in the process.
    pub idle_threads: u64,
    /// Median over the quads.
    pub ratio: f64,
    /// 95 % interval of the median; with fewer than [`LEAST_FOR_INTERVAL`] quads, their range.
    pub ratio_low: f64,
    /// Its upper end.
    pub ratio_high: f64,
    /// Median cost of the baseline.
    pub baseline_cost: f64,
    /// Median cost of the cure.
    pub cure_cost: f64,
    /// Each quad: baseline, cure, cure, baseline, or the other way round; costs averaged by cure.
    pub samples: Vec<Quad>,
    /// Bodies of its requests.
    pub bodies: Bodies,
    /// Healthy connections that the server ended, with either cure.
    pub false_closes: u64,
    /// What the guard recorded on a Tomcat's connector in all rounds; `None` where each cure has not its own connector.
    pub ledger: Option<LedgerFigures>,
}

impl Paired {
    /// What tables call it.
    pub fn title(&self) -> &'static str {
        if self.cure == self.baseline { "none again" } else { self.cure.name() }
    }

    /// The 95 % interval of the ratio, if there are enough quads for one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        (self.samples.len() >= LEAST_FOR_INTERVAL).then_some((self.ratio_low, self.ratio_high))
    }
}

/// Four rounds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Quad {
    /// Mean of the two rounds of the baseline.
    pub baseline: f64,
    /// Mean of the two rounds of the cure.
    pub cure: f64,
}

/// Something that must hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    /// What.
    pub name: String,
    /// Whether it does.
    pub holds: bool,
    /// What was seen.
    pub value: serde_json::Value,
    /// What was asked for.
    pub bound: String,
    /// What to do when it does not hold.
    pub next_step: Option<String>,
}
