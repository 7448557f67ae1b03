//! `sslsweep load`: the load client.
//!
//! A process of its own, with rustls and nothing of the shim or of OpenSSL: the workload is not measured by
//! its own cure. `small` is the traffic that ages a server (many PUTs of 4 KB, new connections and
//! kept-alive ones mixed, some clients that misbehave), `large` the one that suffers from it.
//!
//! A *false close* is a healthy connection that the server ended: in its handshake, between two requests,
//! or in the middle of one. It is counted and the request is sent again, so nothing is lost. A body that
//! arrives changed, or cannot be delivered at all, fails the run, and so does a server that does not answer.

mod body;
mod client;
mod engine;
mod misbehave;
mod mix;
pub mod output;

use std::io::BufRead;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use client::Target;
use engine::{Engine, Plan};
use output::Line;

/// Time between two lines of progress.
const TICK: Duration = Duration::from_millis(250);

/// Sends verified PUTs to a TLS server.
#[derive(Debug, Args)]
pub struct LoadArguments {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Small bodies over many threads, with new connections and misbehaving clients mixed in
    Small(Small),
    /// Large bodies; connections are opened before the clock starts
    Large(Large),
}

#[derive(Debug, Args)]
struct Common {
    /// Address of the server
    #[arg(long)]
    address: SocketAddr,
    /// The server's certificate, a PEM file; nothing else is trusted. `-`: it comes on standard input, before
    /// anything else, and an empty line ends it
    #[arg(long, value_name = "PEM")]
    certificate: PathBuf,
    /// Rounds; each sends --requests
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Run a round for each line `go` on standard input; its end stops the run at once
    #[arg(long)]
    step: bool,
    /// Seed of the bodies
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give up after this many seconds
    #[arg(long, default_value_t = 3600)]
    limit: u64,
    /// Fail after waiting this many seconds for one answer
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
}

#[derive(Debug, Args)]
struct Small {
    #[command(flatten)]
    common: Common,
    /// Client threads
    #[arg(long, default_value_t = 200)]
    threads: usize,
    /// Requests a round
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
    /// Bytes of each body
    #[arg(long, default_value_t = 4096)]
    body: u64,
    /// Share of requests on a new connection (0 to 1), exact and spread evenly
    #[arg(long, default_value_t = 0.1, value_parser = share)]
    new_connections: f64,
    /// Misbehaving clients as a share of the requests; they come on top
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    misbehave: f64,
    /// Share of requests with a chunked body
    #[arg(long, default_value_t = 0.5, value_parser = share)]
    chunked: f64,
}

#[derive(Debug, Args)]
struct Large {
    #[command(flatten)]
    common: Common,
    /// Client threads
    #[arg(long, default_value_t = 20)]
    threads: usize,
    /// Requests a round (default: one a thread)
    #[arg(long)]
    requests: Option<u64>,
    /// Bytes of each body
    #[arg(long, default_value_t = 100_000_000)]
    body: u64,
    /// Share of requests with a chunked body
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    chunked: f64,
    /// Keep connections alive between requests and rounds
    #[arg(long)]
    keep_alive: bool,
}

/// Why a load run could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The certificate file cannot be read.
    #[error("cannot read the certificate {0}: {1}; give a PEM file")]
    Read(PathBuf, std::io::Error),
    /// The certificate file is of no use.
    #[error("--certificate cannot be used: {0}")]
    Certificate(String),
    /// Whoever read our output is gone.
    #[error("cannot print: {0}")]
    Print(#[from] std::io::Error),
}

/// Runs the command.
///
/// # Errors
/// When the run could not start. A run in which a body was lost or changed prints its figures and ends
/// with a failing exit code.
pub fn run(arguments: LoadArguments) -> Result<ExitCode, LoadError> {
    let (common, plan) = match arguments.workload {
        Workload::Small(small) => {
            let plan = Plan {
                threads: small.threads.max(1),
                requests: small.requests,
                body: small.body,
                new_connections: small.new_connections,
                misbehave: small.misbehave,
                chunked: small.chunked,
                connect_first: false,
            };
            (small.common, plan)
        }
        Workload::Large(large) => {
            let threads = large.threads.max(1);
            let plan = Plan {
                threads,
                requests: large.requests.unwrap_or(threads as u64),
                body: large.body,
                new_connections: if large.keep_alive { 0.0 } else { 1.0 },
                misbehave: 0.0,
                chunked: large.chunked,
                connect_first: true,
            };
            (large.common, plan)
        }
    };
    let pem = certificate(&common.certificate)
        .map_err(|error| LoadError::Read(common.certificate.clone(), error))?;
    let deadline = Instant::now() + Duration::from_secs(common.limit);
    let patience = Duration::from_secs(common.patience);
    let target = Target::new(common.address, &pem, deadline, patience)?;
    let engine = Engine::new(plan, target, common.seed);
    let printed = rounds(&common, &engine);
    let done = engine.finish();
    printed?;
    for error in &done.errors {
        eprintln!("sslsweep load: {error}");
    }
    let code = if done.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    output::print(&Line::Done(done))?;
    Ok(code)
}

fn certificate(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path);
    }
    let mut pem = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        pem.extend_from_slice(line.as_bytes());
        pem.push(b'\n');
    }
    Ok(pem)
}

/// Runs the rounds that were asked for, with progress beside them.
fn rounds(common: &Common, engine: &Engine) -> std::io::Result<()> {
    let over = AtomicBool::new(false);
    let (go, orders) = mpsc::channel();
    std::thread::scope(|scope| {
        let progress = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(TICK);
                if output::print(&Line::Progress(engine.progress())).is_err() {
                    engine.stop();
                }
            }
        });
        if common.step {
            // Not in the scope: a thread that waits for standard input cannot be called back.
            let stopper = engine.stopper();
            std::thread::spawn(move || listen(&go, &stopper));
        } else {
            (0..common.rounds).for_each(|_| drop(go.send(Order::Go)));
            drop(go);
        }
        let done = serve_orders(engine, &orders);
        over.store(true, Ordering::Relaxed);
        progress.thread().unpark();
        done
    })
}

enum Order {
    Go,
    End,
}

/// Turns lines of standard input into orders.
fn listen(go: &mpsc::Sender<Order>, stopper: &AtomicBool) {
    for line in std::io::stdin().lock().lines() {
        match line.as_deref().map(str::trim) {
            Ok("go") => drop(go.send(Order::Go)),
            Ok("") => {}
            Ok(other) => eprintln!("sslsweep load: ignoring {other:?}; `go` starts a round"),
            Err(_) => break,
        }
    }
    stopper.store(true, Ordering::Relaxed);
    drop(go.send(Order::End));
}

fn serve_orders(engine: &Engine, orders: &mpsc::Receiver<Order>) -> std::io::Result<()> {
    while let Ok(Order::Go) = orders.recv() {
        let round = engine.round();
        output::print(&Line::Round(round))?;
        if engine.stopped() {
            break;
        }
    }
    Ok(())
}

/// A share, for clap.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to 1".into()),
    }
}
