//! The server under test: `sslsweep serve --json` in a process of its own.

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::RegressError;
use super::child::Talker;
use super::lines::Files;
use crate::report::model::{Aged, Cure, LedgerFigures, Lock};

/// Time for an answer that needs no work.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time to start, with idle threads, and to age.
const LONG: Duration = Duration::from_secs(300);

/// A running server. Ends when dropped.
pub struct Server {
    talker: Mutex<Talker>,
    /// Where it listens.
    pub address: String,
    /// What the library says it is.
    pub version: String,
    /// Its certificate, in PEM form.
    pub certificate: String,
    /// When it was up.
    pub since: Instant,
}

#[derive(Deserialize)]
struct Listening {
    address: String,
    certificate: String,
    version: String,
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
    /// Starts a server on a library and waits until it listens.
    pub fn start(
        files: &Files,
        cure: Cure,
        threads: &str,
        idle: u64,
    ) -> Result<Self, RegressError> {
        let mut arguments: Vec<OsString> = [
            "serve",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--threads",
            threads,
            "--cure",
            cure.name(),
        ]
        .map(OsString::from)
        .into();
        arguments.extend(["--libssl".into(), files.libssl.clone().into_os_string()]);
        if let Some(libcrypto) = &files.libcrypto {
            arguments.extend(["--libcrypto".into(), libcrypto.clone().into_os_string()]);
        }
        if idle > 0 {
            arguments.extend(["--idle-threads".into(), idle.to_string().into()]);
        }
        let name = format!("the server on {} with cure {cure}", files.name());
        let mut talker = Talker::start(name, files.program.as_deref(), arguments)?;
        let listening: Listening = event(&mut talker, "listening", LONG)?;
        Ok(Self {
            talker: Mutex::new(talker),
            address: listening.address,
            version: listening.version,
            certificate: listening.certificate,
            since: Instant::now(),
        })
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

    /// Changes the cure of the running server.
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
