//! The CPU cost of one cure over another, in one process.
//!
//! A difference of 2 % drowns in what two processes differ by (addresses, cache luck, the minute they ran
//! in). So one server runs all rounds and changes its cure between them. Four rounds make a *quad*:
//! baseline, cure, cure, baseline, and the next one the other way round. Within a quad a drift of the
//! machine, as long as it is steady, adds the same to both. The estimate is the median over the ratios of
//! the quads: compared with the ratio of two medians it loses what quads have in common.

use std::time::{Duration, Instant};

use super::RegressError;
use super::client::Client;
use super::estimate::{Enough, Median};
use super::lines::Line;
use super::progress::Progress;
use super::server::Server;
use crate::report::model::{Cure, Paired, Quad};
use crate::serve::threads::Threads;

/// What is compared, over which work.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// The cure in question.
    pub cure: Cure,
    /// Member `metric` of the report.
    pub metric: Metric,
    /// Idle threads in the process.
    pub idle_threads: u64,
    /// When to stop.
    pub enough: Enough,
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
/// Longest time for one comparison that is told, unless the least number of quads takes longer.
const BUDGET: Duration = Duration::from_secs(6);
/// The same for one that is judged, by a bound that is 2 % away.
const JUDGED_BUDGET: Duration = Duration::from_secs(12);

impl Metric {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "us_per_request",
            Self::Megabyte => "ms_per_mb",
            Self::Handshake => "us_per_handshake",
        }
    }

    fn start(self, server: &Server) -> Result<Client, RegressError> {
        match self {
            Self::Request => {
                let options = "--threads 16 --new-connections 0 --chunked 0.5";
                Client::start(server, "small", 400, options)
            }
            Self::Megabyte => {
                let options = "--threads 4 --body 4000000 --keep-alive";
                Client::start(server, "large", 4, options)
            }
            Self::Handshake => {
                let options = "--threads 16 --new-connections 1 --chunked 0.5";
                Client::start(server, "small", 64, options)
            }
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
    let server = Server::start(&line.files, BASELINE, &THREADS.to_string(), first.idle_threads)?;
    let paired: Result<_, _> =
        comparisons.iter().map(|comparison| one(line, &server, *comparison, progress)).collect();
    let paired = paired?;
    server.quit()?;
    Ok(paired)
}

fn one(
    line: &Line,
    server: &Server,
    comparison: Comparison,
    progress: &mut Progress,
) -> Result<Paired, RegressError> {
    let Comparison { cure, metric, idle_threads, enough } = comparison;
    progress.step(
        format!("{}: CPU of {cure} over {BASELINE}, {}", line.name, metric.name()),
        enough.most,
    );
    let mut client = metric.start(server)?;
    let mut cost = |cure: Cure| -> Result<f64, RegressError> {
        server.cure(cure)?;
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
    cost(BASELINE)?;
    cost(cure)?;
    let start = Instant::now();
    let mut samples: Vec<Quad> = Vec::new();
    let mut ratios = Vec::new();
    let budget = if cure == Cure::Sweep { JUDGED_BUDGET } else { BUDGET };
    while !enough.is_reached(&ratios)
        && (start.elapsed() < budget || (ratios.len() as u64) < enough.least)
    {
        let (outer, inner) =
            if ratios.len() % 2 == 0 { (BASELINE, cure) } else { (cure, BASELINE) };
        let rounds = [cost(outer)?, cost(inner)?, cost(inner)?, cost(outer)?];
        let (outer_cost, inner_cost) =
            (f64::midpoint(rounds[0], rounds[3]), f64::midpoint(rounds[1], rounds[2]));
        let quad = if outer == BASELINE {
            Quad { baseline: outer_cost, cure: inner_cost }
        } else {
            Quad { baseline: inner_cost, cure: outer_cost }
        };
        ratios.push(quad.cure / quad.baseline);
        samples.push(quad);
        progress.set(ratios.len() as u64);
    }
    server.cure(BASELINE)?;
    let client = client.finish()?;
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
        bodies: client.bodies,
        false_closes: client.done.false_closes,
    })
}
