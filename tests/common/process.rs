//! A process of its own for each test.

use std::error::Error;
use std::process::Command;

use sslsweep_libssl::{LineFiles, Tls};

pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Set in the process that a test has made for itself.
const ALONE: &str = "SSLSWEEP_TEST_ALONE";

/// A process that takes so many seconds hangs; the alarm ends it, and the test says so.
const HANGS: u32 = 300;

/// Runs the test named `test` (with the crate's name in front) again in a process of its own, and
/// there `work`, on a thread named `worker`.
pub fn alone(test: &str, work: impl FnOnce() -> Outcome + Send) -> Outcome {
    if std::env::var_os(ALONE).is_some() {
        // SAFETY: takes no pointer; without a handler the signal ends the process.
        unsafe { libc::alarm(HANGS) };
        return on_worker(work);
    }
    let (_, name) = test.split_once("::").ok_or("a test's name begins with its crate's")?;
    let output = Command::new(std::env::current_exe()?)
        .args([name, "--exact", "--nocapture"])
        .env(ALONE, "yes")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !text.contains("1 passed") {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} ended with {}:\n{text}{errors}", output.status).into());
    }
    // Tables of the inner process; shown with --nocapture.
    text.lines().filter(|line| line.starts_with('|')).for_each(|line| println!("{line}"));
    Ok(())
}

fn on_worker(work: impl FnOnce() -> Outcome + Send) -> Outcome {
    std::thread::scope(|scope| {
        let worker =
            std::thread::Builder::new().name("worker".to_owned()).spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// As [`alone`], with the line loaded that a test of the name `on_1_0_2` is about. After it the
/// worker's queue must be empty.
pub fn on_line(test: &str, name: &str, check: fn(&'static Tls) -> Outcome) -> Outcome {
    let line = line_named(name);
    alone(test, || {
        let tls = LineFiles::named(&line)?.load()?;
        check(tls)?;
        assert_eq!(tls.peek_error(), 0, "left by the test: {}", tls.error_text(tls.peek_error()));
        Ok(())
    })
}

/// `on_1_0_2` is about line 1.0.2, `on_aws_lc` about aws-lc.
pub fn line_named(test: &str) -> String {
    let line = test.trim_start_matches("on_");
    if line.starts_with(|first: char| first.is_ascii_digit()) {
        line.replace('_', ".")
    } else {
        line.replace('_', "-")
    }
}
