//! One library under one cure: large PUTs, the small phase, ageing, the large PUTs again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::RegressError;
use super::client::{Client, Finished};
use super::large;
use super::lines::Line;
use super::progress::Progress;
use super::server::{Server, States};
use super::warm;
use crate::report::model::{Cure, Growth, Large, Lock, Run, Settings, Small, ThreadStates};

/// Time between two samples of the growth curve.
const SAMPLE: Duration = Duration::from_millis(250);
/// Steps that a run reports to [`Progress`].
pub fn steps(line: &Line) -> u64 {
    if line.host.is_some() { 5 } else { 4 }
}

/// Carries a run out.
pub fn run(
    line: &Line,
    cure: Cure,
    settings: &Settings,
    progress: &mut Progress,
) -> Result<Run, RegressError> {
    let name = format!("{} {cure}", line.name);
    let mut warm_clients = Vec::new();
    let server = start(line, cure, settings, progress, &mut warm_clients)?;
    let recorder = Recorder {
        server: &server,
        growth: Mutex::default(),
        old: line.old,
        judged: line.old || line.host.is_some(),
    };
    let warm = server.ledger(cure)?;

    progress.step(format!("{name}: large PUTs, fresh"), settings.large_rounds.1);
    let (first, first_client) =
        large::first(&recorder, settings, &mut |rounds| progress.set(rounds))?;
    progress.done(&format!("{:.0} MB/s", large::median(&first, |round| round.mb_s)));
    let (small, small_client) = small(&recorder, settings, &name, progress)?;
    let aged = if recorder.old && settings.age > 0 {
        progress.step(format!("{name}: {} threads come and go", settings.age), 1);
        let aged = server.age(settings.age)?;
        recorder.sample("aged", &server.states()?);
        progress.done(&format!("{} thread states", aged.states));
        Some(aged)
    } else {
        None
    };
    let twin = start(line, cure, settings, progress, &mut warm_clients)?;
    progress
        .step(format!("{name}: large PUTs, after, beside a fresh twin"), settings.large_rounds.1);
    let compared = large::compare(&recorder, &twin, settings, &mut |pairs| progress.set(pairs))?;
    twin.quit()?;
    recorder.sample("after", &server.states()?);
    let (fresh, after) = (&compared.fresh, &compared.after);
    progress.done(&format!(
        "{:.0} MB/s, fresh {:.0}, {:.2} ({} pairs)",
        large::median(after, |round| round.mb_s),
        large::median(fresh, |round| round.mb_s),
        compared.ratio,
        compared.ratio.samples
    ));

    let growth = recorder.growth.into_inner().unwrap_or_else(PoisonError::into_inner);
    let end = &compared.end;
    let clients =
        || [&first_client, &small_client].into_iter().chain(&compared.clients).chain(&warm_clients);
    let run = Run {
        line: line.name.clone(),
        library: line.program.library(),
        version: server.version.clone(),
        cure,
        small,
        large: Large {
            threads: settings.large_threads,
            bytes: settings.large_body,
            fresh_mb_s: large::median(fresh, |round| round.mb_s),
            after_mb_s: large::median(after, |round| round.mb_s),
            after_over_fresh: compared.ratio.value,
            ratio_low: compared.ratio.low,
            ratio_high: compared.ratio.high,
            fresh_server_cpu_ms_per_mb: large::median(fresh, |round| round.server_cpu_ms_per_mb),
            after_server_cpu_ms_per_mb: large::median(after, |round| round.server_cpu_ms_per_mb),
            first_mb_s: large::median(&first, |round| round.mb_s),
            first_rounds: first,
            fresh_rounds: compared.fresh.clone(),
            after_rounds: compared.after.clone(),
        },
        aged,
        thread_states: ThreadStates {
            peak: growth
                .iter()
                .map(|sample| sample.states)
                .max()
                .unwrap_or(0)
                .max(end.thread_states.peak),
            end: end.thread_states.alive,
            longest_chain: end.thread_states.longest_chain,
            bytes: end.thread_states.bytes,
            live_threads: end.live_threads,
        },
        ledger: end.ledger.zip(warm).map(|(end, warm)| end.since(warm)),
        locks: sorted(end.locks.clone()),
        locks_after: sorted(difference(&compared.before.locks, &end.locks)),
        bodies: clients().map(|client| client.bodies).sum(),
        false_closes: clients().map(|client| client.done.false_closes).sum(),
        growth,
    };
    server.quit()?;
    Ok(run)
}

/// Starts a server; a Tomcat is warmed up.
fn start(
    line: &Line,
    cure: Cure,
    settings: &Settings,
    progress: &mut Progress,
    clients: &mut Vec<Finished>,
) -> Result<Server, RegressError> {
    let ways = [cure.name()];
    let server = Server::start(&line.program, &ways, &settings.server_threads, 0)?;
    if let Some(host) = &line.host {
        clients.extend(warm::up(&line.name, &server, &ways, host.warm_up, progress)?);
    }
    Ok(server)
}

fn small(
    recorder: &Recorder<'_>,
    settings: &Settings,
    name: &str,
    progress: &mut Progress,
) -> Result<(Small, Finished), RegressError> {
    let Settings { small_threads, small_requests, small_body, new_connections, misbehave, .. } =
        settings;
    progress.step(format!("{name}: small PUTs"), *small_requests);
    let options = format!(
        "--threads {small_threads} --body {small_body} \
         --new-connections {new_connections} --misbehave {misbehave}"
    );
    let mut client = Client::start(recorder.server, "small", *small_requests, &options)?;
    let before = recorder.server.cpu_ns()?;
    recorder.during("small", None, || {
        client.round(&mut |so_far| progress.set(so_far.requests)).map(drop)
    })?;
    let cpu_ns = recorder.server.cpu_ns()? - before;
    recorder.sample("small", &recorder.server.states()?);
    let client = client.finish()?;
    let done = &client.done;
    progress.done(&format!(
        "{:.0} requests/s, {} false closes",
        done.requests_per_second, done.false_closes
    ));
    let small = Small {
        threads: *small_threads,
        requests: done.requests,
        bytes: *small_body,
        rps: done.requests_per_second,
        server_cpu_us_per_request: cpu_ns as f64 / 1e3 / (done.requests as f64).max(1.0),
        connections: done.connections,
        misbehaved: done.misbehaved,
        latency_us: done.latency_us.clone(),
    };
    Ok((small, client))
}

/// Samples the server beside a phase.
pub struct Recorder<'a> {
    pub server: &'a Server,
    growth: Mutex<Vec<Growth>>,
    /// Whether the thread states live in the table of 1.0.x.
    pub old: bool,
    /// Whether what comes out is judged.
    pub judged: bool,
}

impl Recorder<'_> {
    fn sample(&self, phase: &str, states: &States) {
        let sample = Growth {
            seconds: self.server.since.elapsed().as_secs_f64(),
            phase: phase.into(),
            states: states.thread_states.alive,
            longest_chain: states.thread_states.longest_chain,
            live_threads: states.live_threads,
        };
        self.growth.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
    }

    /// Runs `work` and samples until it is over. A server that is compared in it, `beside`, is asked as often.
    pub fn during(
        &self,
        phase: &str,
        beside: Option<&Server>,
        work: impl FnOnce() -> Result<(), RegressError>,
    ) -> Result<(), RegressError> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // A server that cannot answer fails the phase too, with a better message.
                    if let Ok(states) = self.server.states() {
                        self.sample(phase, &states);
                    }
                    let _ = beside.map(Server::states);
                    std::thread::park_timeout(SAMPLE);
                }
            });
            let outcome = work();
            over.store(true, Ordering::Relaxed);
            sampler.thread().unpark();
            outcome
        })
    }
}

/// What happened between two readings.
fn difference(before: &[Lock], end: &[Lock]) -> Vec<Lock> {
    let grown = end.iter().map(|lock| {
        let earlier = before.iter().find(|earlier| earlier.name == lock.name);
        let (acquisitions, contended, wait_ms) = earlier.map_or((0, 0, 0.0), |earlier| {
            (earlier.acquisitions, earlier.contended, earlier.wait_ms)
        });
        Lock {
            name: lock.name.clone(),
            acquisitions: lock.acquisitions.saturating_sub(acquisitions),
            contended: lock.contended.saturating_sub(contended),
            wait_ms: (lock.wait_ms - wait_ms).max(0.0),
        }
    });
    grown.filter(|lock| lock.acquisitions > 0).collect()
}

/// Longest wait first.
fn sorted(mut locks: Vec<Lock>) -> Vec<Lock> {
    locks.sort_by(|one, other| {
        other.wait_ms.total_cmp(&one.wait_ms).then(other.acquisitions.cmp(&one.acquisitions))
    });
    locks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(name: &str, acquisitions: u64, wait_ms: f64) -> Lock {
        Lock { name: name.into(), acquisitions, contended: 0, wait_ms }
    }

    #[test]
    fn lock_figures_of_a_phase() {
        let before = [lock("A", 10, 5.0), lock("B", 7, 1.0)];
        let end = [lock("A", 11, 6.0), lock("B", 7, 1.0), lock("C", 3, 2.5)];
        assert_eq!(sorted(difference(&before, &end)), [lock("C", 3, 2.5), lock("A", 1, 1.0)]);
    }
}
