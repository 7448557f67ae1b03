//! The processes of a run: the server under test and its clients, each this same program.
//!
//! Both end when their standard input ends, so nothing outlives the run. What a child says on standard
//! error is kept, and shown when it fails.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::RegressError;

/// Lines of standard error kept.
const KEPT: usize = 40;

/// A child process that speaks lines.
pub struct Talker {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    stderr_reader: Option<JoinHandle<()>>,
}

impl Talker {
    /// Starts `program`, or else this one, with `arguments`. `name` is for messages.
    pub fn start(
        name: String,
        program: Option<&Path>,
        arguments: Vec<OsString>,
    ) -> Result<Self, RegressError> {
        let spawn = |error: std::io::Error| RegressError::Spawn(name.clone(), error);
        let program = program.map_or_else(std::env::current_exe, |path| Ok(path.to_path_buf()));
        let mut child = Command::new(program.map_err(spawn)?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(spawn)?;
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let stderr_reader = child.stderr.take().map(|pipe| {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    if kept.len() == KEPT {
                        kept.pop_front();
                    }
                    kept.push_back(line);
                }
            })
        });
        let stdin = child.stdin.take();
        Ok(Self { name, child, stdin, lines, stderr, stderr_reader })
    }

    /// Says a line.
    pub fn say(&mut self, line: &str) -> Result<(), RegressError> {
        let said = match &mut self.stdin {
            Some(stdin) => writeln!(stdin, "{line}").and_then(|()| stdin.flush()).is_ok(),
            None => false,
        };
        if said { Ok(()) } else { Err(self.failed("is gone")) }
    }

    /// Hears the next line.
    pub fn hear(&mut self, patience: Duration) -> Result<String, RegressError> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.failed(&format!("said nothing for {} s", patience.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.failed("ended too early")),
        }
    }

    /// Ends its standard input, and hears what it still has to say; it must succeed.
    pub fn finish(mut self, patience: Duration) -> Result<Vec<String>, RegressError> {
        drop(self.stdin.take());
        let deadline = Instant::now() + patience;
        let mut last = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => last.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Err(self.failed("does not end")),
            }
        }
        match self.child.wait() {
            Ok(status) if status.success() => Ok(last),
            Ok(status) => Err(self.failed(&format!("failed ({status})"))),
            Err(error) => Err(self.failed(&error.to_string())),
        }
    }

    /// An error about this child, with what it said. The child does not survive it.
    pub fn failed(&mut self, what: &str) -> RegressError {
        // A child that is ending by itself has the better last words.
        let patience = Instant::now() + Duration::from_millis(500);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let status =
            self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        if let Some(reader) = self.stderr_reader.take() {
            let _ = reader.join();
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<&str> = stderr.iter().map(String::as_str).collect();
        let said =
            if said.is_empty() { "it said nothing about it".into() } else { said.join("\n  ") };
        RegressError::Child { name: self.name.clone(), what: what.into(), status, said }
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
