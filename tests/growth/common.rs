//! What these tests share.

use std::process::Command;

use sslsweep::libcrypto::memory::{self, Figures};
use sslsweep::sys::thread;
use sslsweep_libssl::{Context, LineFiles, Tls};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Names the line that a child process of these tests is to check.
const LINE: &str = "SSLSWEEP_TEST_LINE";

/// The lines that the cases are about.
pub const LINES: [&str; 3] = ["1.0.2", "1.1.1", "3.0"];

/// Runs `check` on each of these lines, with its memory counted, in a process of its own.
pub fn on_each(lines: &[&str], check: impl Fn(&'static Tls) -> Outcome) -> Outcome {
    in_processes(lines, |line| check(load(line)?))
}

/// Loads a line with its memory counted, and waits until the thread that has bound it is gone: its end
/// gives blocks back.
pub fn load(line: &str) -> Outcome<&'static Tls> {
    let before = thread::count();
    let tls = LineFiles::named(line)?.load_accounted()?;
    until(|| thread::count() <= before);
    Ok(tls)
}

/// Runs `check` for each of these lines, in a process of its own.
pub fn in_processes(lines: &[&str], check: impl Fn(&str) -> Outcome) -> Outcome {
    if let Ok(line) = std::env::var(LINE) {
        return check(&line);
    }
    lines.iter().try_for_each(|line| in_a_process_of_its_own(line))
}

/// Runs the calling test again for one line.
fn in_a_process_of_its_own(line: &str) -> Outcome {
    let thread = std::thread::current();
    let test = thread.name().ok_or("the test's thread has no name")?;
    let output = Command::new(std::env::current_exe()?)
        .args([test, "--exact", "--nocapture"])
        .env(LINE, line)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.contains("1 passed") {
        print!("{}", measured(line, &text));
        return Ok(());
    }
    Err(format!("{line}: {text}{}", String::from_utf8_lossy(&output.stderr)).into())
}

/// The lines that the test printed itself.
fn measured(line: &str, text: &str) -> String {
    let own = text.lines().filter_map(|text| text.split_once("measured: "));
    own.map(|(_, text)| format!("{line}: {text}\n")).collect()
}

/// Figures of a library whose memory is counted.
pub fn figures(tls: &'static Tls) -> Outcome<Figures> {
    Ok(memory::figures(tls.library())?)
}

#[allow(dead_code, reason = "not every check makes contexts")]
pub fn contexts(tls: &'static Tls) -> Outcome<(Context, Context)> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let server = Context::server(tls)?
        .certificate(made.cert.pem().as_bytes())?
        .private_key(made.signing_key.serialize_pem().as_bytes())?
        .build();
    Ok((server, Context::client(tls)?.build()))
}

/// Waits for something that another thread is about to do, such as to end.
pub fn until(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::yield_now();
    }
}
