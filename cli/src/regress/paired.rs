//! The CPU cost of one cure over another, in one process.
//!
//! A difference of 2 % drowns in what two processes differ by (addresses, cache luck, the minute they ran
//! in). So one server runs all rounds and changes its cure between them. Four rounds make a *quad*:
//! baseline, cure, cure, baseline, and the next one the other way round. Within a quad a drift of the
//! machine, as long as it is steady, adds the same to both. The estimate is the median over the ratios of
//! the quads: compared with the ratio of two medians it loses what quads have in common.
//!
//! A Tomcat has a connector for each cure, in one process, and a client for each of them. There a third
//! connector, equal to the baseline's, tells what two equal ones seem to differ by.

use std::time::{Duration, Instant};

use super::RegressError;
use super::client::{Client, Finished};
use super::estimate::{Enough, Median};
use super::lines::Line;
use super::progress::Progress;
use super::server::Server;
use super::tomcat::CONTROL;
use super::warm;
use crate::report::model::{Cure, Paired, Quad};
use crate::serve::threads::Threads;

/// What is compared, over which work.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// The cure in question. The baseline: its second connector is.
    pub cure: Cure,
    /// Member `metric` of the report.
    pub metric: Metric,
    /// Idle threads in the process.
    pub idle_threads: u64,
    /// When to stop.
    pub enough: Enough,
    /// When to stop in any case, but not before the least number of quads.
    pub budget: Duration,
}

impl Comparison {
    /// The way of serving that is compared with the baseline.
    fn way(self) -> &'static str {
        if self.cure == BASELINE { CONTROL } else { self.cure.name() }
    }
}

/// A unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Small PUTs over connections that are kept alive.
    Request,
    /// Large PUTs.
    Megabyte,
    /// Small PUTs with a new connection each.
    Handshake,
}

/// Thread model of the server in paired runs: few threads, so that rounds resemble each other.
pub const THREADS: Threads = Threads::Pool { least: 8, most: 8 };
/// All cures are compared with doing nothing.
const BASELINE: Cure = Cure::None;
/// Requests to each connector, by which is seen which of them the guard works on.
const PROBE: u64 = 64;
/// A server whose ledger has not changed for so long is at rest ...
const MOMENT: Duration = Duration::from_millis(300);
/// ... and one that is not after so many of them is taken as it is.
const SETTLING: u32 = 20;

impl Metric {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "us_per_request",
            Self::Megabyte => "ms_per_mb",
            Self::Handshake => "us_per_handshake",
        }
    }

    fn start(self, server: &Server, way: &str) -> Result<Client, RegressError> {
        let (workload, requests, options) = match self {
            Self::Request => ("small", 400, "--threads 16 --new-connections 0 --chunked 0.5"),
            Self::Megabyte => ("large", 4, "--threads 4 --body 4000000 --keep-alive"),
            Self::Handshake => ("small", 64, "--threads 16 --new-connections 1 --chunked 0.5"),
        };
        Client::start_at(server.address_for(way)?, server, workload, requests, options)
    }
}

/// The clients of a comparison: one, and the server changes its cure; or one for each of two addresses.
enum Clients {
    One(Client),
    Two { baseline: Client, cure: Client },
}

impl Clients {
    fn start(server: &Server, metric: Metric, way: &str) -> Result<Self, RegressError> {
        Ok(if server.is_addressed() {
            let baseline = metric.start(server, BASELINE.name())?;
            Self::Two { baseline, cure: metric.start(server, way)? }
        } else {
            Self::One(metric.start(server, way)?)
        })
    }

    /// The client to send a round with; the server is ready for it.
    fn of(
        &mut self,
        server: &Server,
        cure: Cure,
        is_baseline: bool,
    ) -> Result<&mut Client, RegressError> {
        match self {
            Self::One(client) => {
                server.cure(cure)?;
                Ok(client)
            }
            Self::Two { baseline, .. } if is_baseline => Ok(baseline),
            Self::Two { cure, .. } => Ok(cure),
        }
    }

    fn finish(self) -> Result<Vec<Finished>, RegressError> {
        match self {
            Self::One(client) => Ok(vec![client.finish()?]),
            Self::Two { baseline, cure } => Ok(vec![baseline.finish()?, cure.finish()?]),
        }
    }
}

/// Carries out comparisons that share a process (the same number of idle threads).
pub fn compare(
    line: &Line,
    comparisons: &[Comparison],
    progress: &mut Progress,
) -> Result<Vec<Paired>, RegressError> {
    let Some(first) = comparisons.first() else { return Ok(Vec::new()) };
    let mut ways = vec![BASELINE.name()];
    for comparison in comparisons {
        if !ways.contains(&comparison.way()) {
            ways.push(comparison.way());
        }
    }
    let server = Server::start(&line.program, &ways, &THREADS.to_string(), first.idle_threads)?;
    if let Some(host) = &line.host {
        warm::up(&line.name, &server, &ways, host.warm_up, progress)?;
    }
    if server.is_addressed() {
        ways.iter().try_for_each(|way| hooked(line, &server, way))?;
    }
    let paired: Result<_, _> =
        comparisons.iter().map(|comparison| one(line, &server, *comparison, progress)).collect();
    let paired = paired?;
    server.quit()?;
    Ok(paired)
}

/// Whether the guard works where it should, and nowhere else: two connectors with it, or two without, would be
/// found equal.
fn hooked(line: &Line, server: &Server, way: &str) -> Result<(), RegressError> {
    let tasks = || settled(server);
    let before = tasks()?;
    let options = "--threads 4 --new-connections 0.5";
    let mut client = Client::start_at(server.address_for(way)?, server, "small", PROBE, options)?;
    client.round(&mut |_| {})?;
    client.finish()?;
    let guarded = tasks()? - before;
    // A connection is one task at the least; half of the requests have their own.
    let expected = if way == Cure::Sweep.name() { guarded >= PROBE / 2 } else { guarded == 0 };
    if expected {
        return Ok(());
    }
    Err(RegressError::Hooked { line: line.name.clone(), way: way.into(), requests: PROBE, guarded })
}

/// Tasks under a guard so far, once they are no more than a moment ago: the last ones of a client that has gone, the
/// ends of its connections, are worked on after it.
fn settled(server: &Server) -> Result<u64, RegressError> {
    let tasks = || -> Result<u64, RegressError> {
        Ok(server.stats()?.ledger.map_or(0, |ledger| ledger.tasks))
    };
    let mut before = tasks()?;
    for _ in 0..SETTLING {
        std::thread::sleep(MOMENT);
        let now = tasks()?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(before)
}

fn one(
    line: &Line,
    server: &Server,
    comparison: Comparison,
    progress: &mut Progress,
) -> Result<Paired, RegressError> {
    let Comparison { cure, metric, idle_threads, enough, budget } = comparison;
    progress.step(
        format!("{}: CPU of {} over {BASELINE}, {}", line.name, comparison.way(), metric.name()),
        enough.most,
    );
    let mut clients = Clients::start(server, metric, comparison.way())?;
    let ledger = if server.is_addressed() { server.ledger(cure)? } else { None };
    let mut cost = |is_baseline: bool| -> Result<f64, RegressError> {
        let client = clients.of(server, if is_baseline { BASELINE } else { cure }, is_baseline)?;
        let before = server.cpu_ns()?;
        let round = client.round(&mut |_| {})?;
        // What the workers still do after the last answer belongs to this round.
        std::thread::sleep(Duration::from_millis(2));
        let spent = server.cpu_ns()? - before;
        Ok(match metric {
            Metric::Megabyte => spent as f64 / 1e6 / (round.bytes as f64 / 1e6),
            Metric::Request | Metric::Handshake => spent as f64 / 1e3 / round.requests as f64,
        })
    };
    // One round of each to warm up, not used.
    cost(true)?;
    cost(false)?;
    let start = Instant::now();
    let mut samples: Vec<Quad> = Vec::new();
    let mut ratios = Vec::new();
    while !enough.is_reached(&ratios)
        && (start.elapsed() < budget || (ratios.len() as u64) < enough.least)
    {
        // Whether the outer rounds of this quad are the baseline's.
        let outer = ratios.len() % 2 == 0;
        let rounds = [cost(outer)?, cost(!outer)?, cost(!outer)?, cost(outer)?];
        let (outer_cost, inner_cost) =
            (f64::midpoint(rounds[0], rounds[3]), f64::midpoint(rounds[1], rounds[2]));
        let quad = if outer {
            Quad { baseline: outer_cost, cure: inner_cost }
        } else {
            Quad { baseline: inner_cost, cure: outer_cost }
        };
        ratios.push(quad.cure / quad.baseline);
        samples.push(quad);
        progress.set(ratios.len() as u64);
    }
    let ledger = match ledger {
        Some(earlier) => server.ledger(cure)?.map(|ledger| ledger.since(earlier)),
        None => None,
    };
    if !server.is_addressed() {
        server.cure(BASELINE)?;
    }
    let clients = clients.finish()?;
    let ratio = Median::of(&ratios).unwrap_or(Median::nothing());
    let median = |cost: fn(&Quad) -> f64| {
        Median::of(&samples.iter().map(cost).collect::<Vec<_>>()).map_or(0.0, |median| median.value)
    };
    progress.done(&format!("{ratio:.3}, {} quads", ratio.samples));
    Ok(Paired {
        line: line.name.clone(),
        cure,
        baseline: BASELINE,
        metric: metric.name().into(),
        idle_threads,
        ratio: ratio.value,
        ratio_low: ratio.low,
        ratio_high: ratio.high,
        baseline_cost: median(|quad| quad.baseline),
        cure_cost: median(|quad| quad.cure),
        samples,
        bodies: clients.iter().map(|client| client.bodies).sum(),
        false_closes: clients.iter().map(|client| client.done.false_closes).sum(),
        ledger,
    })
}
