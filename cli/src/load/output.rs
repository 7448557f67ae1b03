//! The lines of JSON that `sslsweep load` prints.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A line of output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Line {
    /// Four times a second while a round runs.
    Progress(Progress),
    /// After each round.
    Round(Round),
    /// The last line.
    Done(Done),
}

/// Figures so far.
#[derive(Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Requests answered and verified so far.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Healthy connections that the server ended.
    pub false_closes: u64,
    /// Misbehaving clients so far.
    pub misbehaved: u64,
}

/// One round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Round {
    /// Requests answered.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Wall time.
    pub seconds: f64,
    /// CPU time of the client, connections opened ahead included.
    pub cpu_seconds: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Millions of bytes of body a second.
    pub mb_per_second: f64,
}

impl Round {
    /// Rates from counts.
    pub fn new(requests: u64, bytes: u64, seconds: f64, cpu_seconds: f64) -> Self {
        let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        Self {
            requests,
            bytes,
            seconds,
            cpu_seconds,
            requests_per_second: rate(requests as f64),
            mb_per_second: rate(bytes as f64 / 1e6),
        }
    }
}

/// The whole run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    /// Requests answered and verified.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Wall time of all rounds.
    pub seconds: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Millions of bytes of body a second.
    pub mb_per_second: f64,
    /// Healthy connections that the server ended: in the handshake, and later.
    pub false_closes: u64,
    /// ... in the handshake.
    pub closes_in_handshake: u64,
    /// ... kept alive, perhaps until the client wanted to close it, or in a request.
    pub closes_in_request: u64,
    /// Waits of healthy clients that were given up; each fails the run.
    pub timeouts: u64,
    /// Requests sent again, after a false close.
    pub retries: u64,
    /// Healthy connections opened.
    pub connections: u64,
    /// Misbehaving clients.
    pub misbehaved: u64,
    /// Bodies that arrived shorter, longer or changed.
    pub hash_failures: u64,
    /// Requests that could not be delivered.
    pub lost: u64,
    /// What went wrong, in words (the first 20).
    pub errors: Vec<String>,
    /// Service time of requests, retries included.
    pub latency_us: Latency,
    /// Connections by protocol version.
    pub protocols: BTreeMap<String, u64>,
    /// Each round.
    pub rounds: Vec<Round>,
}

impl Done {
    /// Whether every request was answered in time and every body verified.
    pub fn is_good(&self) -> bool {
        self.hash_failures == 0 && self.lost == 0 && self.timeouts == 0 && self.errors.is_empty()
    }
}

/// Microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// Longest.
    pub max: u64,
}

impl Latency {
    /// Reads the quantiles off.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: histogram.max() }
    }
}

/// Prints a line of JSON. A reader that is gone ends the run: nobody is left to measure for.
pub fn print(line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    crate::output::say(&text)
}
