//! The large PUTs: of the server while it is fresh, and later of the server and a fresh twin in turns.
//!
//! Between "fresh" and "after" lie minutes, in which the machine may have found other things to do; a
//! ratio of rates from two such times would say as much about the machine as about the server. So what
//! the server does after the small phase and ageing is compared with what a *twin* does at the same time:
//! a second server process of the same library and cure, which has served nothing but such PUTs.
//! Server and twin take turns, and each pair of rounds gives a ratio.

use std::time::{Duration, Instant};

use super::RegressError;
use super::client::{Client, Finished};
use super::estimate::{Enough, Median};
use super::run::Recorder;
use super::server::{Server, Stats};
use crate::report::model::{LEAST_FOR_INTERVAL, LargeRound, Settings};

/// The comparison goes on until the median of the ratios is known this well.
const UNCERTAINTY: f64 = 0.015;
/// ... or this time is over (but not before the least number of pairs).
const BUDGET: Duration = Duration::from_secs(14);
/// Rounds of the fresh server itself, before the small phase.
const FIRST_ROUNDS: u64 = 3;

/// A server and the client that sends it large PUTs.
struct Side<'a> {
    server: &'a Server,
    client: Client,
    rounds: Vec<LargeRound>,
}

impl<'a> Side<'a> {
    /// Starts the client, and runs a round that warms up what is lazy in client, server and kernel.
    fn start(server: &'a Server, settings: &Settings) -> Result<Self, RegressError> {
        let (threads, body) = (settings.large_threads, settings.large_body);
        let options = format!("--threads {threads} --body {body}");
        let mut client = Client::start(server, "large", threads as u64, &options)?;
        client.round(&mut |_| {})?;
        Ok(Self { server, client, rounds: Vec::new() })
    }

    /// Runs a round; returns its rate.
    fn round(&mut self) -> Result<f64, RegressError> {
        let before = self.server.cpu_ns()?;
        let round = self.client.round(&mut |_| {})?;
        let cpu_ns = self.server.cpu_ns()? - before;
        self.rounds.push(LargeRound {
            mb_s: round.mb_per_second,
            server_cpu_ms_per_mb: cpu_ns as f64 / 1e6 / (round.bytes as f64 / 1e6),
        });
        Ok(round.mb_per_second)
    }
}

/// Rounds of the fresh server, before the small phase.
pub fn first(
    recorder: &Recorder<'_>,
    settings: &Settings,
    watch: &mut dyn FnMut(u64),
) -> Result<(Vec<LargeRound>, Finished), RegressError> {
    let mut side = Side::start(recorder.server, settings)?;
    recorder.during("fresh", None, || {
        for number in 1..=FIRST_ROUNDS.min(settings.large_rounds.1) {
            side.round()?;
            watch(number);
        }
        Ok(())
    })?;
    Ok((side.rounds, side.client.finish()?))
}

/// The server after all that happened to it, and its fresh twin.
pub struct Compared {
    pub fresh: Vec<LargeRound>,
    pub after: Vec<LargeRound>,
    /// After over fresh: the median over the pairs.
    pub ratio: Median,
    /// The server before and after its rounds.
    pub before: Stats,
    pub end: Stats,
    /// What the clients say.
    pub clients: [Finished; 2],
}

/// Compares the server with `twin`, a fresh process.
pub fn compare(
    recorder: &Recorder<'_>,
    twin: &Server,
    settings: &Settings,
    watch: &mut dyn FnMut(u64),
) -> Result<Compared, RegressError> {
    let (least, most) = settings.large_rounds;
    // Where nothing is judged: the fewest pairs that have an interval.
    let few = LEAST_FOR_INTERVAL as u64;
    let (least, most) =
        if recorder.judged { (least, most) } else { (least.min(few), most.min(few)) };
    let enough = Enough { least, most, uncertainty: UNCERTAINTY };
    let mut fresh = Side::start(twin, settings)?;
    let mut after = Side::start(recorder.server, settings)?;
    let before = recorder.server.stats()?;
    let start = Instant::now();
    let mut ratios = Vec::new();
    // Looking costs both the same.
    recorder.during("after", Some(twin), || {
        while !enough.is_reached(&ratios)
            && (start.elapsed() < BUDGET || (ratios.len() as u64) < enough.least)
        {
            // Each goes first in turn.
            let (rate, of_twin) = if ratios.len() % 2 == 0 {
                let of_twin = fresh.round()?;
                (after.round()?, of_twin)
            } else {
                (after.round()?, fresh.round()?)
            };
            ratios.push(rate / of_twin);
            watch(ratios.len() as u64);
        }
        Ok(())
    })?;
    let end = recorder.server.stats()?;
    let ratio = Median::of(&ratios).unwrap_or(Median::nothing());
    Ok(Compared {
        fresh: fresh.rounds,
        after: after.rounds,
        ratio,
        before,
        end,
        clients: [fresh.client.finish()?, after.client.finish()?],
    })
}

/// The median of one figure over rounds.
pub fn median(rounds: &[LargeRound], of: fn(&LargeRound) -> f64) -> f64 {
    let figures: Vec<_> = rounds.iter().map(of).collect();
    Median::of(&figures).map_or(0.0, |median| median.value)
}
