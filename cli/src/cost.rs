//! `sslsweep cost`: what looks, clears, guards and releases cost on each library.
//!
//! Each library is measured in a process of its own: a guard looks at every libcrypto of its process.
//! The operations take turns in rounds, so that all of them meet the same disturbances; figures are
//! medians over the rounds, and the ratio is the median of the rounds' ratios.

use std::hint::black_box;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};
use sslsweep::hygiene::Guard;
use sslsweep::probe::{Library, Line};
use sslsweep_libssl::idle::{Idle, IdleError, check_room};
use sslsweep_libssl::{LineFiles, LinesError, LoadError, Tls, lines};

/// Rounds in which the operations take turns. Many and short: another process takes a core for
/// milliseconds, and then hits one batch of one round, which the median leaves out.
const ROUNDS: usize = 301;
/// Repetitions of one operation in a round: some 30 microseconds of the shortest.
const BATCH: u32 = 2_000;
/// Repetitions where one takes microseconds.
const SMALL_BATCH: u32 = 50;
/// What a clean guard may cost, as a multiple of a peek, on 1.0.x, where it makes and releases a state.
const BOUND_1_0: f64 = 6.0;
/// The same on OpenSSL from 1.1.0 on.
const BOUND: f64 = 1.0;

/// What to measure.
#[derive(clap::Args)]
pub struct Arguments {
    /// A line that `make setup` has put ready, by name; may be repeated [default: all of them]
    #[arg(long = "line", value_name = "NAME")]
    lines: Vec<String>,
    /// A libssl whose libcrypto is measured; may be repeated
    #[arg(long = "libssl", value_name = "PATH")]
    libssl: Vec<PathBuf>,
    /// The libcrypto that it needs, where it is not found beside it or by the system; with one --libssl
    #[arg(long, value_name = "PATH")]
    libcrypto: Option<PathBuf>,
    /// Threads that have used the library and rest, for the last column
    #[arg(long, value_name = "N", default_value_t = 2000)]
    idle_threads: usize,
    /// Fail if a clean guard costs more than 1.0 x a peek on OpenSSL 1.1.0 to 4.x, or 6.0 x on 1.0.x
    #[arg(long)]
    check: bool,
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

/// What the process for one library says.
#[derive(Serialize, Deserialize)]
struct Measured {
    cost: Cost,
    /// What [`Cost::guard_clean_over_peek`] may be, where the line has a bound.
    bound: Option<f64>,
}

/// A library to measure.
struct Chosen {
    name: Option<String>,
    libssl: PathBuf,
    libcrypto: Option<PathBuf>,
}

impl From<LineFiles> for Chosen {
    fn from(line: LineFiles) -> Self {
        Self { name: Some(line.name), libssl: line.libssl, libcrypto: Some(line.libcrypto) }
    }
}

/// Why nothing, or not all, was measured, or a figure is beyond its bound.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The manifest cannot be read or has no such line.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// A library cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The idle threads cannot be had.
    #[error("--idle-threads: {0}")]
    Idle(#[from] IdleError),
    /// One libcrypto, and not one libssl that it could belong to.
    #[error(
        "--libcrypto belongs to one --libssl, and {0} are given; run sslsweep cost once for each"
    )]
    Libcrypto(usize),
    /// A check of a build that was not optimised.
    #[error(
        "--check judges an optimised build, and this is a debug build; run \
         cargo build --release --package sslsweep-cli, then target/release/sslsweep cost --check"
    )]
    DebugBuild,
    /// A check of libraries that have no bound.
    #[error(
        "--check has bounds for OpenSSL 1.0.x to 4.x, and none of the libraries is one; name one with --line"
    )]
    NothingToCheck,
    /// A guard costs too much.
    #[error("a clean guard costs more peeks than it may: {}; see docs/cost.md", .0.join("; "))]
    Beyond(Vec<String>),
    /// The process for one library said what is wrong, with the file's name.
    #[error("{0}")]
    Said(String),
    /// The process for one library ended in another way.
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
        let measured = measure(
            libssl,
            arguments.libcrypto.as_deref(),
            arguments.name.clone(),
            arguments.idle_threads,
        )?;
        return print(&json(&measured)?);
    }
    if arguments.check && cfg!(debug_assertions) {
        return Err(CostError::DebugBuild);
    }
    check_room(arguments.idle_threads)?;
    let mut measured = Vec::new();
    for chosen in chosen(arguments)? {
        if std::io::stderr().is_terminal() {
            let path = chosen.libssl.to_string_lossy();
            eprintln!("measuring {} ...", chosen.name.as_deref().unwrap_or(&path));
        }
        measured.push(in_own_process(&chosen, arguments.idle_threads)?);
    }
    let checked = if arguments.check { check(&measured) } else { Ok(()) };
    let report = Report { libraries: measured.into_iter().map(|one| one.cost).collect() };
    print(&if arguments.json { json(&report)? } else { table(&report) })?;
    checked
}

/// What is to be measured.
fn chosen(arguments: &Arguments) -> Result<Vec<Chosen>, CostError> {
    if arguments.libcrypto.is_some() && arguments.libssl.len() != 1 {
        return Err(CostError::Libcrypto(arguments.libssl.len()));
    }
    let given = arguments.libssl.iter().map(|libssl| Chosen {
        name: None,
        libssl: libssl.clone(),
        libcrypto: arguments.libcrypto.clone(),
    });
    let mut chosen: Vec<_> = given.collect();
    if arguments.lines.is_empty() && chosen.is_empty() {
        chosen.extend(lines()?.into_iter().map(Chosen::from));
    }
    for name in &arguments.lines {
        chosen.push(LineFiles::named(name)?.into());
    }
    Ok(chosen)
}

/// Holds each library to the bound of its line.
fn check(measured: &[Measured]) -> Result<(), CostError> {
    let bounds = || measured.iter().filter_map(|one| Some((&one.cost, one.bound?)));
    if bounds().next().is_none() {
        return Err(CostError::NothingToCheck);
    }
    let within = |(cost, bound): &(&Cost, f64)| cost.guard_clean_over_peek <= *bound;
    let beyond: Vec<_> = bounds()
        .filter(|one| !within(one))
        .map(|(cost, bound)| {
            format!(
                "{} ({}): guard_clean_over_peek is {} and may be {bound:.1}",
                cost.line,
                cost.library.display(),
                cost.guard_clean_over_peek
            )
        })
        .collect();
    if beyond.is_empty() { Ok(()) } else { Err(CostError::Beyond(beyond)) }
}

/// What a clean guard may cost on a line, as a multiple of a peek.
fn bound(line: Line) -> Option<f64> {
    match line {
        Line::V1_0 => Some(BOUND_1_0),
        Line::V1_1 | Line::V3 | Line::V4 => Some(BOUND),
        // Their queues are read through the public interface.
        _ => None,
    }
}

fn in_own_process(chosen: &Chosen, idle_threads: usize) -> Result<Measured, CostError> {
    let program = std::env::current_exe().map_err(system("finding this program"))?;
    let mut command = Command::new(program);
    command
        .args(["cost", "--idle-threads", &idle_threads.to_string(), "--alone"])
        .arg(&chosen.libssl);
    if let Some(libcrypto) = &chosen.libcrypto {
        command.arg("--libcrypto").arg(libcrypto);
    }
    if let Some(name) = &chosen.name {
        command.args(["--name", name]);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(system("starting a process for one library"))?;
    let failed = |message: String| CostError::Child { library: chosen.libssl.clone(), message };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(match said.strip_prefix("sslsweep: ") {
            Some(message) => CostError::Said(message.to_owned()),
            None => failed(format!("its process ended with {}: {said}", output.status)),
        });
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// Measures the library in this process.
fn measure(
    libssl: &Path,
    libcrypto: Option<&Path>,
    name: Option<String>,
    idle_threads: usize,
) -> Result<Measured, CostError> {
    let library = Tls::load(libssl, libcrypto)?.library();
    // As in a server, ours is not the only thread: on 1.0.x an empty table would be freed each time.
    let _other = Idle::start(library, 1)?;
    let shared = library.shares_states();
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let _ = library.peek();
        let peek = time(BATCH, || {
            black_box(library.peek());
        });
        // Right behind the peek: the ratio of the two is what is judged.
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
        let clear = time(BATCH, || library.clear());
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
    let cost = Cost {
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
    };
    Ok(Measured { cost, bound: bound(library.line()) })
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

fn json(value: &impl Serialize) -> Result<String, CostError> {
    let text =
        serde_json::to_string(value).map_err(|error| system("writing JSON")(error.into()))?;
    Ok(text + "\n")
}

fn print(text: &str) -> Result<(), CostError> {
    let mut output = std::io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        // The reader has seen enough (`sslsweep cost | head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(system("writing to standard output")),
    }
}

fn table(report: &Report) -> String {
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
    format!(
        "{table}\nNanoseconds, medians. Guard: enter and exit together; on 1.0.x with the making and the release of\n\
         the thread state. Release: with the peek that makes the state again; with {idle} idle threads.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.004]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }

    fn measured(line: &str, guard_clean_over_peek: f64, bound: Option<f64>) -> Measured {
        let library = PathBuf::from(format!("/lib/libcrypto-{line}.so"));
        let cost = Cost {
            line: line.to_owned(),
            library,
            peek_ns: 10.0,
            clear_ns: 20.0,
            guard_clean_ns: 10.0 * guard_clean_over_peek,
            guard_dirty_ns: 900.0,
            guard_clean_over_peek,
            release_ns: 200.0,
            release_idle_ns: 6000.0,
            idle_threads: 2000,
        };
        Measured { cost, bound }
    }

    #[test]
    fn each_line_is_held_to_its_bound() {
        for (line, expected) in [
            ("OpenSSL 1.0.2o  27 Mar 2018", Some(6.0)),
            ("OpenSSL 1.1.1g  21 Apr 2020", Some(1.0)),
            ("OpenSSL 3.0.19 27 Jan 2026", Some(1.0)),
            ("OpenSSL 4.0.3 1 Jan 2027", Some(1.0)),
            ("AWS-LC 5.12.0", None),
        ] {
            assert_eq!(bound(Line::from_version_text(line)), expected, "{line}");
        }
    }

    #[test]
    fn a_figure_beyond_its_bound_is_named() {
        let good = || {
            vec![
                measured("1.0.2", 6.0, Some(6.0)),
                measured("3.0", 1.0, Some(1.0)),
                measured("aws-lc", 3.0, None),
            ]
        };
        assert!(check(&good()).is_ok());
        let mut some = good();
        some.push(measured("1.1.1", 1.01, Some(1.0)));
        some.push(measured("4.0", f64::NAN, Some(1.0)));
        let message = check(&some).unwrap_err().to_string();
        for words in [
            "1.1.1 (/lib/libcrypto-1.1.1.so): guard_clean_over_peek is 1.01 and may be 1.0",
            "4.0 (/lib/libcrypto-4.0.so): guard_clean_over_peek is NaN and may be 1.0",
        ] {
            assert!(message.contains(words), "{message}");
        }
        assert!(!message.contains("3.0 ("), "{message}");
        assert!(check(&[measured("1.0.2", 6.01, Some(6.0))]).is_err());
    }

    #[test]
    fn a_check_of_nothing_fails() {
        let nothing = check(&[measured("aws-lc", 3.0, None)]);
        assert!(matches!(nothing, Err(CostError::NothingToCheck)));
    }
}
