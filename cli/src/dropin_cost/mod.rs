//! `sslsweep dropin-cost`: what a Tomcat costs on our `libtcnative-2.so`, and on the C library of tomcat-native.
//!
//! Both libraries want to be the only tcnative of their process, so each has a JVM of its own, equal in all else:
//! the same Tomcat, the same OpenSSL, the same options, the same warm-up. Rounds of equal work alternate between
//! the two in quads (outer, inner, inner, outer), and the ratio of a quad loses what the minute costs both. What two
//! equal JVMs differ by, because one was compiled otherwise, is not lost so: hence several pairs of JVMs, and a
//! third JVM with the C library again, the *control*, whose ratio says how far the other can be trusted.

mod output;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::regress::RegressError;
use crate::regress::client::Client;
use crate::regress::estimate::Median;
use crate::regress::lines::Program;
use crate::regress::progress::Progress;
use crate::regress::server::Server;
use crate::regress::tomcat::{Tomcat, TomcatError};
use crate::regress::warm;
use crate::report::model::Cure;
use output::{Figures, Workload};

/// Measures a Tomcat on our libtcnative-2.so beside one on the C library
#[derive(Debug, Args)]
pub struct Arguments {
    /// Folder of our libtcnative-2.so
    #[arg(long, value_name = "FOLDER", default_value = "target/dropin")]
    dropin: PathBuf,
    /// Folder of the C library (default: where Debian has it)
    #[arg(long, value_name = "FOLDER")]
    tcnative: Option<PathBuf>,
    /// The Tomcat, of those that accept both: tomcat10-nio or tomcat10-nio2
    #[arg(long, value_name = "NAME", default_value = "tomcat10-nio")]
    server: String,
    /// Times that the JVMs are started anew
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    starts: u16,
    /// Quads of rounds per start and workload
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    quads: u16,
    /// Small PUTs that warm each JVM up
    #[arg(long, default_value_t = warm::REQUESTS, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    warm_up: u64,
    /// What `make bench-dropin` found the natives to cost, to be reported with the rest
    #[arg(long, value_name = "JSON")]
    natives: Option<PathBuf>,
    /// File for the figures
    #[arg(long, value_name = "JSON", default_value = "target/bench/dropin.json")]
    out: PathBuf,
    /// Fail where a ratio is beyond its bound: 0.90 for small PUTs on a connection kept alive, 0.95 elsewhere
    #[arg(long)]
    check: bool,
}

/// Why nothing was measured, or a figure is beyond its bound.
#[derive(Debug, thiserror::Error)]
pub enum DropinCostError {
    /// A server or a client.
    #[error(transparent)]
    Regress(#[from] RegressError),
    /// One of the Tomcats.
    #[error(transparent)]
    Tomcat(#[from] TomcatError),
    /// Twice the same library would be found equal.
    #[error(
        "both Tomcats run on tcnative {0}; --dropin and --tcnative must name folders with one library each"
    )]
    Same(String),
    /// The figures of the natives.
    #[error("{}: {why}; run `make bench-dropin`, which writes it", path.display())]
    Natives {
        /// Where they should be.
        path: PathBuf,
        /// What is wrong with them.
        why: String,
    },
    /// The figures cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

/// Worker threads of each server: as in the paired runs of `regress`.
const THREADS: &str = "pool:8";
/// What the workers still do after the last answer belongs to the round.
const AFTER: Duration = Duration::from_millis(2);

/// A server and its clients, one for each workload.
struct Side {
    server: Server,
    clients: Vec<Client>,
}

impl Side {
    fn start(program: &Program) -> Result<Self, RegressError> {
        let server = Server::start(program, &[Cure::None.name()], THREADS, 0)?;
        let start = |workload: &Workload| {
            Client::start(&server, workload.command, workload.requests, workload.options)
        };
        let clients = output::WORKLOADS.iter().map(start).collect::<Result<_, _>>()?;
        Ok(Self { server, clients })
    }

    /// CPU time of the server for a unit of one of the workloads.
    fn cost(&mut self, workload: usize) -> Result<f64, RegressError> {
        let before = self.server.cpu_ns()?;
        let round = self.clients[workload].round(&mut |_| {})?;
        std::thread::sleep(AFTER);
        let spent = self.server.cpu_ns()? - before;
        Ok(spent as f64 / 1e3 / round.requests as f64)
    }

    fn finish(self) -> Result<(), RegressError> {
        self.clients.into_iter().try_for_each(|client| client.finish().map(drop))?;
        self.server.quit()
    }
}

/// Runs the command.
///
/// # Errors
/// Nothing was measured. With `--check`, a figure beyond its bound is a failing exit code, not an error.
pub fn run(arguments: &Arguments) -> Result<ExitCode, DropinCostError> {
    let natives = arguments.natives.as_deref().map(output::read_natives).transpose()?;
    let tomcat = Tomcat::named(&arguments.server)?;
    let ours = Program::Tomcat(tomcat.find(Some(&arguments.dropin))?);
    let c = Program::Tomcat(tomcat.find(arguments.tcnative.as_deref())?);
    let starts = u64::from(arguments.starts);
    let mut progress = Progress::new(starts * (3 + output::WORKLOADS.len() as u64));
    let mut figures = Figures::new(natives);
    for start in 1..=starts {
        measure(&ours, &c, (start, starts), arguments, &mut figures, &mut progress)?;
    }
    progress.finish();
    figures.write(&arguments.out)?;
    let table = figures.table();
    // Whoever reads no further has the file.
    let _ = crate::output::print(&format!("{table}\n{}\n", arguments.out.display()));
    let beyond = figures.beyond();
    if arguments.check && !beyond.is_empty() {
        eprintln!(
            "sslsweep dropin-cost: beyond the bound: {}. Where the control is far from 1 the machine was busy: run it \
             again. Else profile the server (perf record -g -p PID).",
            beyond.join(", ")
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// One start of the JVMs: ours, the C library's, and the control.
fn measure(
    ours: &Program,
    c: &Program,
    (start, starts): (u64, u64),
    arguments: &Arguments,
    figures: &mut Figures,
    progress: &mut Progress,
) -> Result<(), DropinCostError> {
    let mut sides = [Side::start(ours)?, Side::start(c)?, Side::start(c)?];
    let release = |side: &Side| {
        side.server.announced.clone().map(|announced| (announced.tcnative, announced.tomcat))
    };
    if let (Some((ours, tomcat)), Some((c, _))) = (release(&sides[0]), release(&sides[1])) {
        if ours == c {
            return Err(DropinCostError::Same(c));
        }
        figures.ran_on(tomcat, ours, c, sides[0].server.version.clone());
    }
    for (side, name) in sides.iter().zip(["drop-in", "C library", "control"]) {
        let name = format!("{start} of {starts}, {name}");
        warm::up(
            &name,
            &side.server,
            &[Cure::None.name()],
            warm::size(arguments.warm_up),
            progress,
        )?;
    }
    let quads = u64::from(arguments.quads);
    for (number, workload) in output::WORKLOADS.iter().enumerate() {
        progress.step(format!("{start} of {starts}, {}", workload.name), quads);
        for side in &mut sides {
            side.cost(number)?;
        }
        let mut ratios = Vec::new();
        for quad in 0..quads {
            // There and back: what drifts steadily costs all three the same. Who is first changes with the quad.
            let mut order: Vec<usize> = (0..sides.len()).collect();
            order.rotate_left((quad % sides.len() as u64) as usize);
            let there_and_back = order.iter().chain(order.iter().rev());
            let mut costs = [0.0; 3];
            for &side in there_and_back {
                costs[side] += sides[side].cost(number)? / 2.0;
            }
            ratios.push(costs[0] / costs[1]);
            figures.add(number, costs);
            progress.set(quad + 1);
        }
        progress.done(&Median::of(&ratios).unwrap_or(Median::nothing()).to_string());
    }
    sides.into_iter().try_for_each(Side::finish)?;
    Ok(())
}
