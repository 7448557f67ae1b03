//! The server under test, in a process of its own: `sslsweep serve --json`, or a Tomcat.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::RegressError;
use super::child::Talker;
use super::lines::{Files, Program};
use super::tomcat::Folder;
use crate::report::model::{Aged, Cure, LedgerFigures, Lock};
use crate::serve::threads::Threads;

/// Time for an answer that needs no work.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time to start, with idle threads, and to age.
const LONG: Duration = Duration::from_secs(300);

/// A running server. Ends when dropped.
pub struct Server {
    // Goes first: the process must not outlive its folder.
    talker: Mutex<Talker>,
    _folder: Option<Folder>,
    /// Where it listens, with the cure that it was started with.
    pub address: String,
    /// Where it listens, by cure, if it has several addresses.
    addresses: BTreeMap<String, String>,
    /// What it says it is, beside its library.
    pub announced: Option<Announced>,
    /// What the library says it is.
    pub version: String,
    /// Its certificate, in PEM form.
    pub certificate: String,
    /// When it was up.
    pub since: Instant,
}

#[derive(Deserialize)]
struct Listening {
    address: Option<String>,
    #[serde(default)]
    addresses: BTreeMap<String, String>,
    certificate: String,
    version: String,
    server: Option<Announced>,
}

/// What a server says about itself, beside its library.
#[derive(Debug, Clone, Deserialize)]
pub struct Announced {
    /// `Apache Tomcat/9.0.70`
    pub tomcat: String,
    /// Name of its connector.
    pub connector: String,
    /// Release of tomcat-native.
    pub tcnative: String,
    /// The JVM.
    pub java: String,
}

/// Answer to `cpu`.
#[derive(Deserialize)]
struct Cpu {
    cpu_ns: u64,
}

/// Answer to `states`.
#[derive(Debug, Clone, Deserialize)]
pub struct States {
    /// Worker threads alive.
    pub live_threads: u64,
    /// Thread states.
    pub thread_states: StateFigures,
}

/// Answer to `stats`. Members that nobody here needs are left out.
#[derive(Debug, Clone, Deserialize)]
pub struct Stats {
    /// Worker threads alive.
    pub live_threads: u64,
    /// Thread states.
    pub thread_states: StateFigures,
    /// The guard's ledger.
    pub ledger: Option<LedgerFigures>,
    /// Locks of 1.0.x.
    #[serde(default)]
    pub locks: Vec<Lock>,
}

/// Thread states of the process.
#[derive(Debug, Clone, Deserialize)]
pub struct StateFigures {
    /// Alive now.
    pub alive: u64,
    /// Most alive at a time.
    pub peak: u64,
    /// Bytes of those alive.
    #[serde(default)]
    pub bytes: u64,
    /// Longest chain of the table of 1.0.x.
    pub longest_chain: Option<u64>,
}

impl Server {
    /// Starts a server and waits until it listens. `ways` are the ways of serving that are asked of it: cures, or
    /// [`CONTROL`](super::tomcat::CONTROL). It begins with the first; the others are for servers with an address each.
    pub fn start(
        program: &Program,
        ways: &[&str],
        threads: &str,
        idle: u64,
    ) -> Result<Self, RegressError> {
        let first = ways.first().copied().unwrap_or_default();
        let name = format!("the server on {} with cure {first}", program.name());
        let (executable, arguments, folder) = match program {
            Program::Serve(files) => {
                (files.program.clone(), serve_arguments(files, first, threads, idle), None)
            }
            Program::Tomcat(tomcat) => {
                let folder = Folder::make()?;
                let arguments = tomcat.arguments(&ways.join(","), bounds(threads), &folder);
                (Some(tomcat.program().to_path_buf()), arguments, Some(folder))
            }
        };
        let mut talker = Talker::start(name, executable.as_deref(), arguments)?;
        let listening: Listening = event(&mut talker, "listening", LONG)?;
        let own = match listening.addresses.get(first) {
            Some(address) => Some(address.clone()),
            None if listening.addresses.is_empty() => listening.address,
            None => None,
        };
        let Some(address) = own else {
            return Err(talker.failed(&format!("does not say where it listens with {first}")));
        };
        Ok(Self {
            talker: Mutex::new(talker),
            _folder: folder,
            address,
            addresses: listening.addresses,
            announced: listening.server,
            version: listening.version,
            certificate: listening.certificate,
            since: Instant::now(),
        })
    }

    /// Whether it has an address for each cure.
    pub fn is_addressed(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Its address for one way of serving, if it has several addresses and this among them.
    pub fn door(&self, way: &str) -> Option<&str> {
        self.addresses.get(way).map(String::as_str)
    }

    /// Its address for one way of serving.
    ///
    /// # Errors
    /// It has several addresses, but not this one.
    pub fn address_for(&self, way: &str) -> Result<&str, RegressError> {
        match self.door(way) {
            Some(address) => Ok(address),
            None if self.addresses.is_empty() => Ok(&self.address),
            None => Err(self.talker().failed(&format!("has no address for {way}"))),
        }
    }

    /// CPU time of its process. This order costs the server next to nothing, so it can be given right before
    /// and after what is measured.
    pub fn cpu_ns(&self) -> Result<u64, RegressError> {
        self.ask("cpu", "cpu", PATIENCE).map(|Cpu { cpu_ns }| cpu_ns)
    }

    /// Threads and their states, nearly as cheap.
    pub fn states(&self) -> Result<States, RegressError> {
        self.ask("states", "states", PATIENCE)
    }

    /// Its figures, with a look at the whole process: milliseconds where there are thousands of threads.
    pub fn stats(&self) -> Result<Stats, RegressError> {
        self.ask("stats", "stats", PATIENCE)
    }

    /// What the guard has recorded so far; none where `cure` has no guard.
    pub fn ledger(&self, cure: Cure) -> Result<Option<LedgerFigures>, RegressError> {
        Ok(if cure == Cure::Sweep { self.stats()?.ledger } else { None })
    }

    /// Changes the cure of the running server, which has one address.
    pub fn cure(&self, cure: Cure) -> Result<(), RegressError> {
        self.ask::<Value>(&format!("cure {cure}"), "cure", PATIENCE).map(drop)
    }

    /// Lets `threads` worker threads come, serve one small PUT each, and end.
    pub fn age(&self, threads: u64) -> Result<Aged, RegressError> {
        self.ask(&format!("age {threads}"), "aged", LONG)
    }

    /// Ends it; it must end well.
    pub fn quit(self) -> Result<(), RegressError> {
        self.ask::<Value>("quit", "quit", PATIENCE)?;
        self.talker.into_inner().unwrap_or_else(PoisonError::into_inner).finish(PATIENCE).map(drop)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        order: &str,
        answer: &str,
        patience: Duration,
    ) -> Result<T, RegressError> {
        let mut talker = self.talker();
        talker.say(order)?;
        event(&mut talker, answer, patience)
    }

    fn talker(&self) -> MutexGuard<'_, Talker> {
        self.talker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve_arguments(files: &Files, cure: &str, threads: &str, idle: u64) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["serve", "--json", "--listen", "127.0.0.1:0", "--threads", threads, "--cure", cure]
            .map(OsString::from)
            .into();
    arguments.extend(["--libssl".into(), files.libssl.clone().into_os_string()]);
    if let Some(libcrypto) = &files.libcrypto {
        arguments.extend(["--libcrypto".into(), libcrypto.clone().into_os_string()]);
    }
    if idle > 0 {
        arguments.extend(["--idle-threads".into(), idle.to_string().into()]);
    }
    arguments
}

/// Least and most threads of a pool. Another model was refused with the arguments.
fn bounds(threads: &str) -> (usize, usize) {
    match threads.parse() {
        Ok(Threads::Pool { least, most }) => (least, most),
        _ => (1, 1),
    }
}

/// Hears one event of the kind `name`.
fn event<T: DeserializeOwned>(
    talker: &mut Talker,
    name: &str,
    patience: Duration,
) -> Result<T, RegressError> {
    let line = talker.hear(patience)?;
    let value: Value =
        serde_json::from_str(&line).map_err(|_| talker.failed(&format!("said {line:?}")))?;
    if value.get("event").and_then(Value::as_str) != Some(name) {
        return Err(talker.failed(&format!("answered {line} where {name:?} was due")));
    }
    serde_json::from_value(value)
        .map_err(|error| talker.failed(&format!("answered {line}: {error}")))
}
