//! `sslsweep serve`: a real TLS server for HTTP/1.1 PUT, on whichever libssl it is given.
//!
//! A poller hands *socket tasks* to workers, as Tomcat does, so that one connection is served by many
//! threads in turn and each thread serves many connections. What the server does about errors that
//! tasks leave is chosen by `--cure`; the rest is the same for all cures, since this server is what
//! `sslsweep regress` measures them with.

mod age;
mod alone;
pub mod certificate;
mod client;
mod connection;
mod control;
mod cure;
mod http;
mod poller;
mod pool;
mod stats;
pub mod threads;
mod worker;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sslsweep::probe::{Library, Probe};
use sslsweep_libssl::{Context, ContextError, LoadError, Protocol, Tls};

use certificate::{Identity, IdentityError};
use connection::Served;
use cure::{Cure, Switch};
use pool::Pool;
use stats::Stats;
use threads::{NoRoom, Threads};

use crate::output;

/// How long threads may need to end when the server stops.
const PATIENCE: Duration = Duration::from_secs(10);

/// Options of `sslsweep serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArguments {
    /// The libssl to serve with: any from OpenSSL 1.0.2 to 4.0
    #[arg(long, value_name = "PATH")]
    libssl: PathBuf,
    /// The libcrypto it must use; left out, it is looked for beside libssl, then where the system has it
    #[arg(long, value_name = "PATH")]
    libcrypto: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Who serves: pool:N, elastic:MIN..MAX or per-connection
    #[arg(long, value_name = "MODEL", default_value = "elastic:10..200")]
    threads: Threads,
    /// What to do about errors that tasks leave on their threads
    #[arg(long, value_enum, default_value = "sweep")]
    cure: Cure,
    /// Before listening, let so many worker threads serve one small PUT each and end
    #[arg(long, value_name = "N", default_value_t = 0)]
    age: usize,
    /// Keep so many threads that have used the library and rest
    #[arg(long, value_name = "N", default_value_t = 0)]
    idle_threads: usize,
    /// Certificate chain in PEM form; left out, one is made for localhost
    #[arg(long, value_name = "PEM", requires = "key")]
    certificate: Option<PathBuf>,
    /// Its private key in PEM form
    #[arg(long, value_name = "PEM", requires = "certificate")]
    key: Option<PathBuf>,
    /// Longest body that is taken, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 40)]
    most_body: u64,
    /// Take orders on standard input (stats, cpu, states, cure NAME, age N, quit) and answer in lines of JSON
    #[arg(long)]
    json: bool,
}

/// Why the server did not start or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(
        "cannot listen on {address}: {source}; choose another address with --listen, port 0 for any that is free"
    )]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(
        "only part of the worker threads could be started: {0}; ask for fewer with --threads, or raise the limits (ulimit -u)"
    )]
    Threads(std::io::Error),
    #[error("the poller cannot work: {0}; raise the limit on open files (ulimit -n)")]
    Poller(std::io::Error),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error(transparent)]
    Age(#[from] age::AgeError),
    #[error("standard input or output: {0}")]
    Talk(#[from] std::io::Error),
    #[error("a worker thread panicked; its message is above")]
    Panicked,
    #[error("threads were still at work {} s after the server was told to stop", PATIENCE.as_secs())]
    Stuck,
}

/// What the threads of a server share.
pub struct Server {
    tls: &'static Tls,
    library: &'static Library,
    context: Context,
    identity: Identity,
    cure: Switch,
    most_body: u64,
    /// Threads that stay: those that rest, and the workers.
    standing: usize,
    /// Threads that the process has room for.
    room: usize,
    poller: poller::Poller,
    /// None when each connection has its own thread.
    pool: Option<Arc<Pool>>,
    stats: Stats,
    probe: Probe,
}

impl Server {
    /// A connection was accepted.
    fn accepted(self: &Arc<Self>, served: Box<Served>) {
        if self.pool.is_some() {
            self.poller.add(served);
        } else if self.standing + self.stats.live_threads() >= self.room {
            eprintln!("sslsweep: a connection was closed, as there is no room for its thread");
        } else if let Err(error) = alone::spawn(self, served) {
            eprintln!("sslsweep: a connection was closed, as it got no thread: {error}");
        }
    }

    /// Connections are ready for their next task.
    #[expect(clippy::vec_box, reason = "a connection has a kilobyte, and moves often")]
    fn hand_over(self: &Arc<Self>, ready: &mut Vec<Box<Served>>) {
        match &self.pool {
            Some(pool) => pool.hand_over(self, ready),
            None => ready.clear(),
        }
    }

    /// Ends all threads and closes all connections.
    fn stop(&self) -> Result<(), ServeError> {
        self.poller.stop();
        if let Some(pool) = &self.pool {
            pool.close();
        }
        let begun = Instant::now();
        while self.stats.live_threads() > 0 {
            if begun.elapsed() > PATIENCE {
                return Err(ServeError::Stuck);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.poller.clear();
        if self.stats.panicked() { Err(ServeError::Panicked) } else { Ok(()) }
    }
}

/// Runs `sslsweep serve`.
///
/// # Errors
/// The server could not start, or a part of it failed while it ran.
pub fn run(arguments: ServeArguments) -> Result<ExitCode, ServeError> {
    let standing = arguments.threads.most().saturating_add(arguments.idle_threads);
    threads::check_room(standing.saturating_add(arguments.age))?;
    let tls = Tls::load(&arguments.libssl, arguments.libcrypto.as_deref())?;
    let identity = match (&arguments.certificate, &arguments.key) {
        (Some(certificate), Some(key)) => Identity::read(certificate, key)?,
        _ => Identity::make()?,
    };
    let context = Context::server(tls)?
        .min_protocol(Protocol::Tls1_2)?
        .certificate(identity.certificate.as_bytes())?
        .private_key(identity.key.as_bytes())?
        .build();
    let refused = |source| ServeError::Listen { address: arguments.listen, source };
    let listener = poller::listen(arguments.listen).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let pool = match arguments.threads {
        Threads::Pool { least, most } => Some(Arc::new(Pool::new(least, most))),
        Threads::PerConnection => None,
    };
    let server = Arc::new(Server {
        tls,
        library: tls.library(),
        context,
        identity,
        cure: Switch::new(arguments.cure),
        most_body: arguments.most_body,
        standing,
        room: threads::room(),
        poller: poller::Poller::new().map_err(ServeError::Poller)?,
        pool,
        stats: Stats::default(),
        probe: Probe::new(),
    });
    let idle = age::Idle::start(&server, arguments.idle_threads)?;
    let aged = match arguments.age {
        0 => None,
        count => Some(age::age(&server, count)?),
    };
    if let Some(pool) = &server.pool {
        pool.start(&server).map_err(ServeError::Threads)?;
    }
    let poller = poll(&server, listener)?;
    let outcome = if arguments.json {
        control::say(&listening(&server, address, aged)).and_then(|()| control::obey(&server))
    } else {
        introduce(&server, address, aged, &arguments)
            // Until SIGINT ends the process, or the poller fails and ends it.
            .and_then(|()| poller.join().map_err(|_| ServeError::Panicked))
    };
    drop(idle);
    outcome.and(server.stop())?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the poller's thread. If it fails later, the process ends with an error: nothing would be
/// served any more.
fn poll(
    server: &Arc<Server>,
    listener: TcpListener,
) -> Result<std::thread::JoinHandle<()>, ServeError> {
    let server = Arc::clone(server);
    let thread = std::thread::Builder::new().name("poller".to_owned());
    let spawned = thread.spawn(move || {
        if let Err(error) = server.poller.run(&server, &listener) {
            eprintln!("sslsweep: {}", ServeError::Poller(error));
            std::process::exit(1);
        }
    });
    spawned.map_err(ServeError::Threads)
}

fn listening(server: &Server, address: SocketAddr, aged: Option<age::Aged>) -> Value {
    let mut event = json!({
        "event": "listening",
        "address": address.to_string(),
        "pid": std::process::id(),
        "certificate": server.identity.certificate,
        "version": server.tls.version(),
    });
    if let Some(aged) = aged {
        event["aged"] = json!(aged);
    }
    event
}

fn introduce(
    server: &Server,
    address: SocketAddr,
    aged: Option<age::Aged>,
    arguments: &ServeArguments,
) -> Result<(), ServeError> {
    let (version, ServeArguments { threads, cure, .. }) = (server.tls.version(), arguments);
    let aged = aged.map_or_else(String::new, |age::Aged { threads, states }| {
        format!(
            "aged by {threads} threads that have served a small PUT each: {states} thread states\n"
        )
    });
    Ok(output::print(&format!(
        "{version} serves PUT on https://{address}, threads {threads}, cure {cure}\n{aged}\
         try: curl -k -T FILE https://{address}/\n"
    ))?)
}
