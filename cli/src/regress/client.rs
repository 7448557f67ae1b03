//! The load client: `sslsweep load --step` in a process of its own, a round at a time.

use std::ffi::OsString;
use std::time::Duration;

use super::RegressError;
use super::child::Talker;
use super::server::Server;
use crate::load::output::{Done, Line, Progress, Round};
use crate::report::model::Bodies;

/// A client says something four times a second; silence for this long is a fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running client. Ends when dropped.
pub struct Client {
    talker: Talker,
    /// Requests a round.
    requests: u64,
    rounds: u64,
}

/// What a client says in the end.
pub struct Finished {
    pub done: Done,
    /// What it was told to send, and what it has verified.
    pub bodies: Bodies,
}

impl Client {
    /// Starts `sslsweep load WORKLOAD --step --requests REQUESTS` against `server`. `options` are separated by
    /// spaces.
    pub fn start(
        server: &Server,
        workload: &str,
        requests: u64,
        options: &str,
    ) -> Result<Self, RegressError> {
        Self::start_at(&server.address, server, workload, requests, options)
    }

    /// The same, against one of the server's addresses.
    pub fn start_at(
        address: &str,
        server: &Server,
        workload: &str,
        requests: u64,
        options: &str,
    ) -> Result<Self, RegressError> {
        let mut arguments: Vec<OsString> =
            ["load", workload, "--step", "--address", address, "--certificate", "-"]
                .map(OsString::from)
                .into();
        arguments.extend(["--requests".into(), requests.to_string().into()]);
        arguments.extend(options.split_whitespace().map(OsString::from));
        let name = format!("the client (load {workload} {options})");
        let mut talker = Talker::start(name, None, arguments)?;
        // An empty line ends it.
        talker.say(&format!("{}\n", server.certificate.trim_end()))?;
        Ok(Self { talker, requests, rounds: 0 })
    }

    /// Runs a round.
    pub fn round(&mut self, watch: &mut dyn FnMut(&Progress)) -> Result<Round, RegressError> {
        self.talker.say("go")?;
        self.rounds += 1;
        loop {
            match line(&mut self.talker)? {
                Line::Progress(progress) => watch(&progress),
                Line::Round(round) => return Ok(round),
                Line::Done(done) => return Err(self.talker.failed(&done.errors.join("; "))),
            }
        }
    }

    /// Ends it: every request must have been delivered, and every body verified.
    pub fn finish(self) -> Result<Finished, RegressError> {
        let lines = self.talker.finish(PATIENCE)?;
        let done = lines.iter().rev().find_map(|line| match serde_json::from_str(line) {
            Ok(Line::Done(done)) => Some(done),
            _ => None,
        });
        let done =
            done.ok_or_else(|| RegressError::Silent(lines.last().cloned().unwrap_or_default()))?;
        let bodies = Bodies { sent: self.requests * self.rounds, verified: done.requests };
        Ok(Finished { done, bodies })
    }
}

fn line(talker: &mut Talker) -> Result<Line, RegressError> {
    let line = talker.hear(PATIENCE)?;
    serde_json::from_str(&line).map_err(|error| talker.failed(&format!("said {line:?}: {error}")))
}
