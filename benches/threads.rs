//! What threads do to each other: a task that leaves one error, ended by a clear (today's practice), by
//! a guard, or by a guard that releases, on one and on two threads, with and without idle threads in the
//! process.
//!
//! Run: `cargo bench --bench threads [-- LINE ...]`. Prints operations per second of the clear, and the
//! others as ratios to it, from interleaved rounds; medians. Each line runs in a process of its own.

use std::process::{Command, ExitCode};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sslsweep::hygiene::{Guard, Release, Task};
use sslsweep::libcrypto::Library;
use sslsweep_libssl::idle::Idle;
use sslsweep_libssl::{LineFiles, lines};

const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(40);
const IDLE_THREADS: usize = 2000;
/// Names the line that a child process is to measure.
const LINE: &str = "SSLSWEEP_BENCH_LINE";

#[derive(Clone, Copy)]
enum End {
    Clear,
    Guard,
    GuardThatReleases,
}

const ENDS: [End; 3] = [End::Clear, End::Guard, End::GuardThatReleases];

fn main() -> ExitCode {
    let outcome = match std::env::var(LINE) {
        Ok(line) => measure(&line),
        Err(_) => each_line(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("threads: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn each_line() -> Outcome {
    let asked: Vec<_> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    println!("line     threads   idle     clear, per s        guard   with release");
    for line in lines()?.iter().filter(|line| asked.is_empty() || asked.contains(&line.name)) {
        let status = Command::new(std::env::current_exe()?).env(LINE, &line.name).status()?;
        if !status.success() {
            return Err(format!("{}: {status}", line.name).into());
        }
    }
    Ok(())
}

fn measure(name: &str) -> Outcome {
    let library = LineFiles::named(name)?.load()?.library();
    table(name, library, 0);
    let idle = Idle::start(library, IDLE_THREADS)?;
    table(name, library, IDLE_THREADS);
    drop(idle);
    Ok(())
}

fn table(name: &str, library: &'static Library, idle: usize) {
    for threads in [1, 2] {
        let mut rates = Vec::new();
        let mut ratios = [const { Vec::new() }; ENDS.len()];
        for _ in 0..ROUNDS {
            let round = ENDS.map(|end| rate(library, end, threads));
            rates.push(round[0]);
            for (ratios, rate) in ratios.iter_mut().zip(round) {
                ratios.push(rate / round[0]);
            }
        }
        let [_, guard, releases] = ratios.map(median);
        println!(
            "{name:8} {threads:>7} {idle:>6} {:>16.0} {guard:>12.2} {releases:>14.3}",
            median(rates)
        );
    }
}

/// Tasks per second, of all threads together.
fn rate(library: &'static Library, end: End, threads: usize) -> f64 {
    let (start, stop, tasks) =
        (Barrier::new(threads + 1), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                let mut done = 0;
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..100 {
                        task(library, end);
                    }
                    done += 100;
                }
                tasks.fetch_add(done, Ordering::Relaxed);
            });
        }
        start.wait();
        std::thread::sleep(ROUND);
        stop.store(true, Ordering::Relaxed);
    });
    tasks.load(Ordering::Relaxed) as f64 / ROUND.as_secs_f64()
}

fn task(library: &Library, end: End) {
    let raise = || library.raise(128, 1, c"bench", 1);
    match end {
        End::Clear => {
            raise();
            library.clear();
        }
        End::Guard => {
            let _guard = Guard::enter("bench");
            raise();
        }
        End::GuardThatReleases => {
            let _guard = Guard::enter(Task::new("bench").release(Release::EveryTask));
            raise();
        }
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
