//! `sslsweep regress`: the large-after-small PUT regression, its cures, and what they cost.
//!
//! For each library and cure a server process of its own serves large PUTs while it is fresh, then the
//! small traffic of a public server, then (on 1.0.x) ages by the threads of months, then serves the large
//! PUTs again. Beside that, on 1.1.0 and later, pairs of cures are compared in one process.
//! `docs/regress.md` says what is measured and how far to trust it.

mod child;
pub mod client;
pub mod estimate;
mod large;
pub mod lines;
mod paired;
pub mod progress;
mod run;
pub mod server;
pub mod tomcat;
mod verdicts;
pub mod warm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;

use crate::load::share;
use crate::output;
use crate::report::model::{Cure, LEAST_FOR_INTERVAL, Report, Settings};
use crate::report::{self, ReportError};
use crate::serve::threads::{NoRoom, Threads, check_room};
use estimate::Enough;
use lines::Line;
use paired::{Comparison, Metric};
use progress::Progress;
use tomcat::TomcatError;
#[cfg(test)]
pub use verdicts::judge;

/// Shows the large-after-small PUT regression and what each cure does about it
#[derive(Debug, Args)]
pub struct RegressArguments {
    /// Line to run on, as named in the manifest (repeatable; default: 1.0.2, 1.1.1 and 3.0)
    #[arg(long = "line", value_name = "NAME")]
    lines: Vec<String>,
    /// Another libssl to run on (repeatable)
    #[arg(long = "libssl", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The libcrypto of the first --libssl (repeatable: of the second, and so on); left out, it is looked for
    #[arg(long = "libcrypto", value_name = "PATH", requires = "paths")]
    libcryptos: Vec<PathBuf>,
    /// A Tomcat to run on instead, its listener off and on: tomcat9-apr, tomcat9-nio, tomcat10-nio or tomcat10-nio2
    /// (repeatable). The path of a program: it is used like `sslsweep serve --json` (docs/design.md)
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// Folder of the tcnative library for a Tomcat (default: where Debian has it)
    #[arg(long, value_name = "FOLDER", requires = "servers")]
    tcnative: Option<PathBuf>,
    /// Small PUTs that warm each connector of a Tomcat up, before anything is measured
    #[arg(long, default_value_t = warm::REQUESTS, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    warm_up: u64,
    /// Cure to run (repeatable; default: all four)
    #[arg(long = "cure", value_name = "CURE")]
    cures: Vec<Cure>,
    /// The original size: 200 threads, 2,000,000 small PUTs, 20 large ones of 100 MB at a time
    #[arg(long)]
    full: bool,
    /// Folder for report.json and report.html
    #[arg(long, default_value = "report")]
    out: PathBuf,
    /// Print the report as JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Thread model of the server (as in `sslsweep serve`)
    #[arg(long, value_name = "MODEL", default_value = "pool:200")]
    server_threads: Threads,
    /// Client threads of the small phase
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    small_threads: u16,
    /// Requests of the small phase
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    small_requests: Option<u64>,
    /// Share of small requests on a new connection
    #[arg(long, default_value_t = 0.1, value_parser = share)]
    new_connections: f64,
    /// Misbehaving clients, as a share of the small requests
    #[arg(long, default_value_t = 0.02, value_parser = share)]
    misbehave: f64,
    /// Client threads of the large phases
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    large_threads: u16,
    /// Bytes of a large body
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    large_body: Option<u64>,
    /// Most rounds of a large phase (each: one large PUT a thread)
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Worker threads that come and go before the large PUTs are repeated, on 1.0.x
    #[arg(long)]
    age: Option<u64>,
    /// Idle threads beside the working ones, where releasing is compared with doing nothing
    #[arg(long, default_value_t = 2000)]
    idle_threads: u64,
    /// Most quads of a paired CPU comparison (0: no comparison)
    #[arg(long)]
    pairs: Option<u64>,
}

impl RegressArguments {
    fn names_a_tomcat(&self) -> bool {
        self.servers.iter().any(|server| !server.contains('/'))
    }

    /// Whether the options are of use with a Tomcat.
    fn suit_a_tomcat(&self) -> Result<(), TomcatError> {
        let refused = |option, why| Err(TomcatError::Option { option, why });
        if !self.lines.is_empty() || !self.paths.is_empty() {
            return refused(
                "--line and --libssl are",
                "the OpenSSL is the one that tomcat-native uses",
            );
        }
        if self.age.is_some() {
            return refused(
                "--age is",
                "its releases of OpenSSL keep no state of a thread that has ended",
            );
        }
        if self.server_threads == Threads::PerConnection {
            return refused(
                "--server-threads per-connection is",
                "its workers are a pool, pool:N or elastic:N..M",
            );
        }
        Ok(())
    }
}

/// Why a regression run could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegressError {
    /// A line is not there.
    #[error("{0}; or name a library by --libssl PATH")]
    Lines(#[from] sslsweep_libssl::LinesError),
    /// A library given by path is not there.
    #[error(
        "cannot open {0}: {1}; give the path of a libssl with --libssl, of its libcrypto with --libcrypto"
    )]
    NoLibrary(PathBuf, std::io::Error),
    /// A Tomcat is not there, or cannot do what is asked of it.
    #[error(transparent)]
    Tomcat(#[from] TomcatError),
    /// More than one program, or a program and a Tomcat.
    #[error(
        "--server takes names of Tomcats, or the path of one program; run them one after the other"
    )]
    Servers,
    /// The guard works on the wrong connector.
    #[error("{line}: {requests} requests to the connector {way} were {guarded} tasks under a guard; {}", if *guarded == 0 {
        "the HygieneListener did not hook it: see what it says in the server's log, and build anew with `make jar`"
    } else {
        "it must have no guard: the HygieneListener hooked a connector of another server"
    })]
    Hooked {
        /// The server.
        line: String,
        /// The connector.
        way: String,
        /// Requests sent to it.
        requests: u64,
        /// Tasks that the ledger counted.
        guarded: u64,
    },
    /// More libcryptos than libssls.
    #[error("there are more --libcrypto than --libssl; give one of each, in the same order")]
    Unpaired,
    /// A child process did not start.
    #[error(
        "cannot start {0}: {1}; look whether this program is still where it was started from, and at the limit on processes (ulimit -u)"
    )]
    Spawn(String, std::io::Error),
    /// A child process failed.
    #[error("{name} {what} ({status})\n  {said}")]
    Child {
        /// Which.
        name: String,
        /// How.
        what: String,
        /// Its exit status.
        status: String,
        /// The end of its standard error.
        said: String,
    },
    /// A client ended well and said nothing of use.
    #[error("the client ended without its figures; its last line was {0:?}")]
    Silent(String),
    /// More threads than a process can have.
    #[error("{0}: {1}")]
    NoRoom(&'static str, NoRoom),
    /// Standard output is full or closed.
    #[error("cannot print the report: {source}; it is in {}", folder.display())]
    Print {
        /// Where the report is.
        folder: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The report cannot be made.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// Runs the command.
///
/// # Errors
/// When the run could not be carried out. A run whose verdicts do not all hold prints its report and ends
/// with a failing exit code.
pub fn run(arguments: &RegressArguments) -> Result<ExitCode, RegressError> {
    let start = Instant::now();
    let lines = lines::choose(arguments)?;
    let wanted = |cure: &Cure| arguments.cures.is_empty() || arguments.cures.contains(cure);
    let wanted: Vec<Cure> = Cure::ALL.into_iter().filter(wanted).collect();
    let settings = settings(arguments);
    let plan = |line| {
        let cures = Line::cures(line, &wanted);
        Plan { line, comparisons: comparisons(line, &cures, &settings), cures }
    };
    let plans: Vec<Plan<'_>> = lines.iter().map(plan).collect();
    fits(&plans, &settings, arguments.server_threads)?;
    let mut report = Report {
        settings,
        hosts: lines.iter().filter_map(|line| line.host.clone()).collect(),
        runs: Vec::new(),
        paired: Vec::new(),
        verdicts: vec![verdicts::unfinished("it goes on")],
        seconds: 0.0,
    };
    let out = &arguments.out;
    // That there is no room for a report is known before the work rather than after it.
    report::write(&report, out)?;
    let outcome = carry_out(&plans, &mut report, out);
    report.verdicts = verdicts::judge(&report);
    report.seconds = start.elapsed().as_secs_f64();
    if let Err(error) = outcome {
        report.verdicts.push(verdicts::unfinished(&error.to_string()));
        let [json, _] = report::write(&report, out)?;
        eprintln!("sslsweep regress: what was done so far is in {}", json.display());
        return Err(error);
    }
    finish(&report, out, arguments.json)
}

/// What is run on a line.
struct Plan<'a> {
    line: &'a Line,
    cures: Vec<Cure>,
    /// Paired comparisons, in groups that share a process.
    comparisons: Vec<Vec<Comparison>>,
}

/// Does the work. The report lies in `out` after each part of it, whatever happens to the next one.
fn carry_out(plans: &[Plan<'_>], report: &mut Report, out: &Path) -> Result<(), RegressError> {
    let steps = plans.iter().map(Plan::steps).sum();
    let mut progress = Progress::new(steps);
    for Plan { line, cures, comparisons } in plans {
        for cure in cures {
            report.runs.push(run::run(line, *cure, &report.settings, &mut progress)?);
            report::write(report, out)?;
        }
        for group in comparisons {
            report.paired.extend(paired::compare(line, group, &mut progress)?);
            report::write(report, out)?;
        }
    }
    progress.finish();
    Ok(())
}

impl Plan<'_> {
    fn steps(&self) -> u64 {
        let warming = if self.line.host.is_some() { self.comparisons.len() } else { 0 };
        let comparing: usize = self.comparisons.iter().map(Vec::len).sum();
        self.cures.len() as u64 * run::steps(self.line) + (warming + comparing) as u64
    }
}

/// Whether all processes have room for their threads. A server would refuse them only when their phase
/// comes, minutes later.
fn fits(plans: &[Plan<'_>], settings: &Settings, model: Threads) -> Result<(), RegressError> {
    let clients = settings.small_threads.max(settings.large_threads);
    check_room(clients).map_err(|error| RegressError::NoRoom("--small-threads", error))?;
    let workers = match model {
        // Each client thread has a connection, and may have a misbehaving one beside it.
        Threads::PerConnection => clients * 2,
        Threads::Pool { most, .. } => most,
    };
    check_room(workers).map_err(|error| RegressError::NoRoom("--server-threads", error))?;
    let with = |workers: usize, more: u64| {
        workers.saturating_add(usize::try_from(more).unwrap_or(usize::MAX))
    };
    if plans.iter().any(|plan| plan.line.old) {
        check_room(with(workers, settings.age))
            .map_err(|error| RegressError::NoRoom("--age", error))?;
    }
    let idle = plans.iter().flat_map(|plan| &plan.comparisons).flatten();
    let idle = idle.map(|comparison| comparison.idle_threads).max().unwrap_or(0);
    check_room(with(paired::THREADS.most(), idle))
        .map_err(|error| RegressError::NoRoom("--idle-threads", error))
}

fn finish(report: &Report, out: &Path, json: bool) -> Result<ExitCode, RegressError> {
    let files = report::write(report, out)?;
    let text = if json {
        report::json(report)? + "\n"
    } else {
        let files = files.map(|path| path.display().to_string()).join(", ");
        format!("{}\nreport: {files}\n", report::table::text(report))
    };
    output::print(&text)
        .map_err(|source| RegressError::Print { folder: out.to_path_buf(), source })?;
    let failing = report.verdicts.iter().filter(|verdict| !verdict.holds).count();
    if failing == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("sslsweep regress: {failing} of {} verdicts do not hold", report.verdicts.len());
    for verdict in report.verdicts.iter().filter(|verdict| !verdict.holds) {
        let next = verdict.next_step.as_deref().unwrap_or_default();
        eprintln!(
            "  {}: {}, must be {}\n    next: {next}",
            verdict.name, verdict.value, verdict.bound
        );
    }
    Ok(ExitCode::FAILURE)
}

fn settings(arguments: &RegressArguments) -> Settings {
    let full = arguments.full;
    let large_rounds = match (arguments.rounds, full) {
        (Some(most), _) => (most.min(LEAST_FOR_INTERVAL as u64), most),
        (None, false) => (7, 15),
        (None, true) => (LEAST_FOR_INTERVAL as u64, 8),
    };
    let pairs = match arguments.pairs {
        Some(most) => (most.min(15), most),
        // A JVM is noisier.
        None if arguments.names_a_tomcat() => (15, 1_600),
        None => (15, 400),
    };
    Settings {
        profile: if full { "full" } else { "laptop" }.into(),
        server_threads: arguments.server_threads.to_string(),
        small_threads: arguments.small_threads.into(),
        small_requests: arguments.small_requests.unwrap_or(if full { 2_000_000 } else { 20_000 }),
        small_body: 4096,
        new_connections: arguments.new_connections,
        misbehave: arguments.misbehave,
        large_threads: arguments.large_threads.into(),
        large_body: arguments.large_body.unwrap_or(if full { 100_000_000 } else { 16_000_000 }),
        large_rounds,
        age: arguments.age.unwrap_or(4_000),
        idle_threads: arguments.idle_threads,
        pairs,
    }
}

/// The paired comparisons for a line, in groups that share a process.
fn comparisons(line: &Line, cures: &[Cure], settings: &Settings) -> Vec<Vec<Comparison>> {
    // On 1.0.x the cures differ by what they leave behind; their CPU side by side would not say which is right.
    let (least, most) = settings.pairs;
    if line.old || most == 0 || !cures.contains(&Cure::None) {
        return Vec::new();
    }
    let mut groups = Vec::new();
    if cures.contains(&Cure::Sweep) {
        let enough = Enough { least, most, uncertainty: 0.003 };
        // The bound is 2 % away.
        let budget =
            |judged| Duration::from_secs(if line.host.is_some() && judged { 120 } else { 12 });
        let comparison = |cure, metric| {
            let judged = metric == Metric::Request;
            Comparison { cure, metric, idle_threads: 0, enough, budget: budget(judged) }
        };
        let metrics = [Metric::Request, Metric::Handshake, Metric::Megabyte];
        let mut group: Vec<_> = metrics.map(|metric| comparison(Cure::Sweep, metric)).into();
        if line.control {
            group.insert(1, comparison(Cure::None, Metric::Request));
        }
        groups.push(group);
    }
    if cures.contains(&Cure::ReleaseEveryTask) {
        // The effect is tens of per cent: fewer quads are enough.
        let enough = Enough { least: least.min(9), most: most.min(60), uncertainty: 0.02 };
        let comparison = |metric| Comparison {
            cure: Cure::ReleaseEveryTask,
            metric,
            idle_threads: settings.idle_threads,
            enough,
            budget: Duration::from_secs(6),
        };
        groups.push(vec![comparison(Metric::Request), comparison(Metric::Handshake)]);
    }
    groups
}
