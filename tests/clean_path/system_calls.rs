//! A clean task makes no system call: shown by strace(1).

use std::process::Command;

use sslsweep::hygiene::{Label, run};
use sslsweep_libssl::{LineFiles, faults};

use crate::common::{Outcome, line_named};
use crate::{clean_guards, warmed_up};

/// Names the line in the process that is traced.
const TRACED: &str = "SSLSWEEP_TEST_TRACED";

/// System calls that nobody else makes, before and after what is looked at.
const CLEAN_FROM: i32 = -7701;
const CLEAN_TO: i32 = -7702;
const DIRTY_TO: i32 = -7703;

fn mark(number: i32) {
    // SAFETY: a descriptor that cannot be open; the call fails.
    assert_eq!(unsafe { libc::close(number) }, -1);
}

fn traced(line: &str) -> Outcome {
    let tls = LineFiles::named(line)?.load()?;
    let label = Label::intern("interned");
    warmed_up(tls, label);
    mark(CLEAN_FROM);
    clean_guards(100_000, label);
    mark(CLEAN_TO);
    // The control: the ledger asks for the thread's name.
    run("dirty", || faults::pem_junk(tls));
    mark(DIRTY_TO);
    Ok(())
}

/// The calls of the thread that made the marks, from one mark to another.
fn between(log: &str, from: i32, to: i32) -> Outcome<Vec<&str>> {
    let find = |mark: i32| {
        let mark = format!("close({mark})");
        log.lines().position(|line| line.contains(&mark)).ok_or(format!("no {mark} in {log}"))
    };
    let (from, to) = (find(from)?, find(to)?);
    let lines: Vec<&str> = log.lines().collect();
    let thread = lines[from].split_whitespace().next();
    let own = |line: &&str| line.split_whitespace().next() == thread;
    Ok(lines[from + 1..to].iter().copied().filter(own).collect())
}

fn check(test: &str, line: &str) -> Outcome {
    if std::env::var_os(TRACED).is_some() {
        return traced(line);
    }
    let (_, name) = test.split_once("::").ok_or("a test's name begins with its crate's")?;
    let log = std::env::temp_dir().join(format!("sslsweep-strace-{line}-{}", std::process::id()));
    let output = Command::new("strace")
        .args(["-f", "-q", "-o"])
        .arg(&log)
        .arg(std::env::current_exe()?)
        .args([name, "--exact", "--nocapture"])
        .env(TRACED, "yes")
        .output()
        .map_err(|error| format!("strace: {error}; run make setup"))?;
    let text = std::fs::read_to_string(&log)?;
    std::fs::remove_file(&log)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(between(&text, CLEAN_FROM, CLEAN_TO)?, Vec::<&str>::new());
    let dirty = between(&text, CLEAN_TO, DIRTY_TO)?;
    assert!(dirty.iter().any(|call| call.contains("prctl(PR_GET_NAME")), "{dirty:?}");
    Ok(())
}

macro_rules! trace {
    ($($test:ident)+) => { $(
        #[test]
        fn $test() -> Outcome {
            let test = concat!(module_path!(), "::", stringify!($test));
            check(test, &line_named(stringify!($test)))
        }
    )+ };
}

trace!(on_1_1_1 on_3_0 on_3_6 on_4_0);
