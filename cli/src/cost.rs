//! `sslsweep cost`: what looks, clears, guards and releases cost on each library.
//!
//! Each library is measured in a process of its own: a guard looks at every libcrypto of its process.
//! The operations take turns in rounds, so that all of them meet the same disturbances; figures are
//! medians over the rounds, and the ratio is the median of the rounds' ratios.

use std::hint::black_box;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Instant;

use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};
use sslsweep::hygiene::Guard;
use sslsweep::probe::{Library, Line};
use sslsweep_libssl::{Tls, lines};

/// Rounds in which the operations take turns.
const ROUNDS: usize = 31;
/// Repetitions of one operation in a round.
const BATCH: u32 = 20_000;
/// Repetitions where one takes microseconds.
const SMALL_BATCH: u32 = 500;
/// Stack of a thread that does nothing but be there, in bytes.
const IDLE_STACK: usize = 64 * 1024;

/// What to measure.
#[derive(clap::Args)]
pub struct Arguments {
    /// A line that `make setup` has put ready, by name; may be repeated [default: all of them]
    #[arg(long = "line", value_name = "NAME")]
    lines: Vec<String>,
    /// A libssl whose libcrypto is measured; may be repeated
    #[arg(long = "libssl", value_name = "PATH")]
    libssl: Vec<PathBuf>,
    /// Threads that have used the library and rest, for the last column
    #[arg(long, value_name = "N", default_value_t = 2000)]
    idle_threads: usize,
    /// Print JSON (schema: cli/schemas/cost.schema.json)
    #[arg(long)]
    json: bool,
    /// Measure this one library in this process
    #[arg(long, hide = true, value_name = "PATH")]
    alone: Option<PathBuf>,
    /// The name it goes by
    #[arg(long, hide = true, requires = "alone")]
    name: Option<String>,
}

/// The report.
#[derive(Serialize, Deserialize)]
struct Report {
    libraries: Vec<Cost>,
}

/// What the operations cost on one library, in nanoseconds.
#[derive(Serialize, Deserialize)]
struct Cost {
    /// The line's name in the manifest, or of its release line.
    line: String,
    /// File of the libcrypto.
    library: PathBuf,
    /// ERR_peek_error on an empty queue.
    peek_ns: f64,
    /// ERR_clear_error on an empty queue.
    clear_ns: f64,
    /// Enter and exit of a guard around a task that leaves nothing; on 1.0.x the task makes a thread
    /// state, with one peek, and the guard gives it back.
    guard_clean_ns: f64,
    /// The same around a task that leaves one error.
    guard_dirty_ns: f64,
    /// A clean guard over a peek.
    guard_clean_over_peek: f64,
    /// Giving the thread state back, and the peek that makes it again.
    release_ns: f64,
    /// The same with idle threads that have a state.
    release_idle_ns: f64,
    /// So many idle threads.
    idle_threads: usize,
}

/// Why nothing, or not all, was measured.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The manifest cannot be read or has no such line.
    #[error(transparent)]
    Lines(#[from] sslsweep_libssl::LinesError),
    /// A library cannot be loaded.
    #[error(transparent)]
    Load(#[from] sslsweep_libssl::LoadError),
    /// The process for one library failed.
    #[error("measuring {}: {message}", library.display())]
    Child {
        /// The library.
        library: PathBuf,
        /// What it said.
        message: String,
    },
    /// Threads or processes cannot be made, or the output not written.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

fn system(doing: &'static str) -> impl FnOnce(std::io::Error) -> CostError {
    move |source| CostError::System { doing, source }
}

/// Runs the command.
///
/// # Errors
/// One of [`CostError`].
pub fn run(arguments: &Arguments) -> Result<(), CostError> {
    if let Some(libssl) = &arguments.alone {
        let cost = measure(libssl, arguments.name.clone(), arguments.idle_threads)?;
        return print_json(&cost);
    }
    let mut libraries = Vec::new();
    for (name, libssl) in chosen(arguments)? {
        if std::io::stderr().is_terminal() {
            eprintln!("measuring {} ...", name.as_deref().unwrap_or(&libssl.to_string_lossy()));
        }
        libraries.push(in_own_process(name, &libssl, arguments.idle_threads)?);
    }
    let report = Report { libraries };
    if arguments.json { print_json(&report) } else { print_table(&report) }
}

/// Name and libssl of what is to be measured.
fn chosen(arguments: &Arguments) -> Result<Vec<(Option<String>, PathBuf)>, CostError> {
    let mut chosen: Vec<_> = arguments.libssl.iter().map(|path| (None, path.clone())).collect();
    if arguments.lines.is_empty() && chosen.is_empty() {
        chosen.extend(lines()?.into_iter().map(|line| (Some(line.name), line.libssl)));
    }
    for name in &arguments.lines {
        let line = sslsweep_libssl::LineFiles::named(name)?;
        chosen.push((Some(line.name), line.libssl));
    }
    Ok(chosen)
}

fn in_own_process(
    name: Option<String>,
    libssl: &Path,
    idle_threads: usize,
) -> Result<Cost, CostError> {
    let program = std::env::current_exe().map_err(system("finding this program"))?;
    let mut command = Command::new(program);
    command.args(["cost", "--idle-threads", &idle_threads.to_string(), "--alone"]).arg(libssl);
    if let Some(name) = name {
        command.args(["--name", &name]);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(system("starting a process for one library"))?;
    let failed = |message: String| CostError::Child { library: libssl.to_owned(), message };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{} ({})", said.trim(), output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// Measures the library in this process.
fn measure(libssl: &Path, name: Option<String>, idle_threads: usize) -> Result<Cost, CostError> {
    let library = Tls::load(libssl, None)?.library();
    // As in a server, ours is not the only thread: on 1.0.x an empty table would be freed each time.
    let _other = Idle::start(library, 1)?;
    let shared = library.shares_states();
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let _ = library.peek();
        let peek = time(BATCH, || {
            black_box(library.peek());
        });
        let clear = time(BATCH, || library.clear());
        let clean = if shared {
            time(BATCH, || {
                let _guard = Guard::enter("cost");
                black_box(library.peek());
            })
        } else {
            time(BATCH, || {
                let _guard = Guard::enter("cost");
            })
        };
        let dirty = time(SMALL_BATCH, || {
            let _guard = Guard::enter("cost");
            library.raise(128, 1, c"cost", 1);
        });
        let release = time(SMALL_BATCH, || release_and_peek(library));
        rounds.peek.push(peek);
        rounds.clear.push(clear);
        rounds.clean.push(clean);
        rounds.dirty.push(dirty);
        rounds.release.push(release);
        rounds.clean_over_peek.push(clean / peek);
    }
    let idle = Idle::start(library, idle_threads)?;
    for _ in 0..ROUNDS {
        rounds.release_idle.push(time(SMALL_BATCH, || release_and_peek(library)));
    }
    drop(idle);
    Ok(Cost {
        line: name.unwrap_or_else(|| Line::to_string(&library.line())),
        library: library.path().to_owned(),
        peek_ns: median(rounds.peek),
        clear_ns: median(rounds.clear),
        guard_clean_ns: median(rounds.clean),
        guard_dirty_ns: median(rounds.dirty),
        guard_clean_over_peek: median(rounds.clean_over_peek),
        release_ns: median(rounds.release),
        release_idle_ns: median(rounds.release_idle),
        idle_threads,
    })
}

fn release_and_peek(library: &Library) {
    library.release();
    black_box(library.peek());
}

#[derive(Default)]
struct Rounds {
    peek: Vec<f64>,
    clear: Vec<f64>,
    clean: Vec<f64>,
    dirty: Vec<f64>,
    clean_over_peek: Vec<f64>,
    release: Vec<f64>,
    release_idle: Vec<f64>,
}

/// Nanoseconds of one `operation`.
fn time(batch: u32, mut operation: impl FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..batch {
        operation();
    }
    begun.elapsed().as_secs_f64() * 1e9 / f64::from(batch)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN);
    // Tenths are more than the clock and the machine give.
    if middle < 10.0 { (middle * 100.0).round() / 100.0 } else { (middle * 10.0).round() / 10.0 }
}

/// Threads that have a state in the library and rest.
struct Idle {
    end: Arc<Barrier>,
    threads: Vec<JoinHandle<()>>,
}

impl Idle {
    fn start(library: &'static Library, count: usize) -> Result<Self, CostError> {
        let ready = Arc::new(Barrier::new(count + 1));
        let end = Arc::new(Barrier::new(count + 1));
        let mut threads = Vec::with_capacity(count);
        for _ in 0..count {
            let (ready, end) = (Arc::clone(&ready), Arc::clone(&end));
            let thread = std::thread::Builder::new().stack_size(IDLE_STACK).spawn(move || {
                let _ = library.peek();
                ready.wait();
                end.wait();
                library.release();
            });
            // Those that were started wait for ever: the process ends with the error.
            threads
                .push(thread.map_err(system("starting idle threads; try fewer --idle-threads"))?);
        }
        ready.wait();
        Ok(Self { end, threads })
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.end.wait();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn print_json(value: &impl Serialize) -> Result<(), CostError> {
    let mut text =
        serde_json::to_vec(value).map_err(|error| system("writing JSON")(error.into()))?;
    text.push(b'\n');
    std::io::stdout().write_all(&text).map_err(system("writing to standard output"))
}

fn print_table(report: &Report) -> Result<(), CostError> {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "line",
        "peek",
        "clear",
        "guard, clean",
        "/ peek",
        "guard, dirty",
        "release",
        "with idle",
        "x",
    ]);
    for cost in &report.libraries {
        table.add_row([
            cost.line.clone(),
            format!("{:.1}", cost.peek_ns),
            format!("{:.1}", cost.clear_ns),
            format!("{:.1}", cost.guard_clean_ns),
            format!("{:.2}", cost.guard_clean_over_peek),
            format!("{:.0}", cost.guard_dirty_ns),
            format!("{:.0}", cost.release_ns),
            format!("{:.0}", cost.release_idle_ns),
            format!("{:.1}", cost.release_idle_ns / cost.release_ns),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let idle = report.libraries.first().map_or(0, |cost| cost.idle_threads);
    let text = format!(
        "{table}\nNanoseconds, medians. Guard: enter and exit together; on 1.0.x with the making and the release of\n\
         the thread state. Release: with the peek that makes the state again; with {idle} idle threads.\n"
    );
    std::io::stdout().write_all(text.as_bytes()).map_err(system("writing to standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.004]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }
}
