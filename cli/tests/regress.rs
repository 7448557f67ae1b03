//! `sslsweep regress` from end to end with tiny settings, on 1.0.2, 1.1.1 and 3.0. What it says is looked at,
//! not how fast anything was: a few requests on a busy machine prove nothing about speed.

mod regression;
mod standin;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;

use regression::{Fallible, Folder, faults, named, regress};
use rustls::version::TLS13;
use serde_json::{Value, json};
use standin::{Faults, Standin};

const TINY: &str = "--small-threads 8 --small-requests 600 --misbehave 0.1 --large-threads 2 --large-body 1000000 \
    --rounds 2 --age 60 --idle-threads 20 --pairs 1 --server-threads pool:8";

#[test]
fn three_lines_four_cures() -> Fallible {
    let folder = Folder::new("all");
    let output = regress(&folder, TINY)?;
    let report: Value = match std::fs::read(folder.0.join("report.json")) {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(_) => return Err(String::from_utf8_lossy(&output.stderr).into()),
    };

    assert_eq!(faults(&report)?, [""; 0]);

    let runs = report["runs"].as_array().ok_or("no runs")?;
    let names: Vec<(&str, &str)> = runs
        .iter()
        .filter_map(|run| Some((run["line"].as_str()?, run["cure"].as_str()?)))
        .collect();
    let cures = ["none", "clear-each-call", "release-every-task", "sweep"];
    let expected: Vec<(&str, &str)> =
        ["1.0.2", "1.1.1", "3.0"].iter().flat_map(|line| cures.map(|cure| (*line, cure))).collect();
    assert_eq!(names, expected);

    for run in runs {
        let (line, cure) = (run["line"].as_str().unwrap_or(""), run["cure"].as_str().unwrap_or(""));
        assert_eq!(run["small"]["requests"], 600, "{line} {cure}");
        assert_eq!(run["small"]["misbehaved"], 60, "{line} {cure}");
        assert!(run["version"].as_str().is_some_and(|version| version.contains(line)), "{run}");
        assert_eq!(
            run["ledger"].is_null(),
            cure != "sweep",
            "{line} {cure}: only a guard keeps a ledger"
        );
        let old = line == "1.0.2";
        assert_eq!(run["thread_states"]["longest_chain"].is_null(), !old, "{line} {cure}");
        assert_eq!(run["aged"].is_null(), !old, "{line} {cure}");
        assert_eq!(run["locks"].as_array().is_none_or(Vec::is_empty), !old, "{line} {cure}");
        if old && cure == "clear-each-call" {
            assert!(
                run["thread_states"]["end"].as_u64() >= Some(60),
                "dead threads leave their states: {run}"
            );
        }
        if cure == "none" {
            assert!(run["false_closes"].as_u64() > Some(0), "leftovers are believed: {run}");
        }
        if cure == "sweep" {
            assert!(
                run["ledger"]["dirty_tasks"].as_u64() > Some(0),
                "misbehaving clients leave errors: {run}"
            );
            assert_eq!(run["false_closes"], 0, "{line}");
        }
    }
    for (line, cure, metric) in [
        ("1.1.1", "sweep", "us_per_request"),
        ("1.1.1", "sweep", "us_per_handshake"),
        ("3.0", "sweep", "ms_per_mb"),
        ("3.0", "release-every-task", "us_per_handshake"),
    ] {
        let mut all = report["paired"].as_array().into_iter().flatten();
        let pair = all
            .find(|pair| pair["line"] == line && pair["cure"] == cure && pair["metric"] == metric);
        assert!(pair.is_some_and(|pair| pair["ratio"].as_f64() > Some(0.0)), "{line} {metric}");
    }
    let verdicts = &report["verdicts"];
    assert_eq!(named(verdicts, "1.0.2, aged: thread states at the end, sweep")?["holds"], true);
    assert_eq!(named(verdicts, "3.0: healthy connections closed with sweep")?["holds"], true);

    // So few threads do not show the regression: the run must say so, and fail.
    let states = named(verdicts, "thread states at the end, clear-each-call")?;
    assert_eq!(states["holds"], false);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("verdicts do not hold")
            && said.contains("next: let more threads come and go"),
        "{said}"
    );
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("AGED") && table.contains("clear-each-call"), "{table}");
    assert!(std::fs::read_to_string(folder.0.join("report.html"))?.contains("<svg"));
    Ok(())
}

/// What a library is must come from itself: a path says nothing about it.
#[test]
fn a_library_given_by_path_is_known_by_what_it_does() -> Fallible {
    let folder = Folder::new("path");
    let line = sslsweep_libssl::LineFiles::named("1.0.2")?;
    let libssl = line.libssl.to_str().ok_or("a path that is not UTF-8")?;
    let options =
        format!("{TINY} --libssl {libssl} --libssl {libssl} --cure none --cure sweep --json");
    let output = regress(&folder, &options)?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let runs = report["runs"].as_array().ok_or("no runs")?;
    let names: Vec<_> = runs.iter().map(|run| &run["line"]).collect();
    assert_eq!(names, ["1.0.2o", "1.0.2o", "1.0.2o (2)", "1.0.2o (2)"]);
    for run in runs {
        assert!(run["version"].as_str().is_some_and(|text| text.starts_with("OpenSSL 1.0.2o")));
        assert_eq!(run["aged"]["threads"], 60, "{run}");
    }
    // Cures that differ by what they leave behind are not compared by their CPU.
    assert_eq!(report["paired"].as_array().map(Vec::len), Some(0));
    named(&report["verdicts"], "1.0.2o, aged: thread states at the end, sweep")?;
    Ok(())
}

#[test]
fn a_run_whose_verdicts_hold_succeeds() -> Fallible {
    let folder = Folder::new("one");
    let output = regress(&folder, &format!("{TINY} --line 3.0 --cure sweep --json"))?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert!(output.status.success(), "{}", report["verdicts"]);
    assert_eq!(report["runs"][0]["line"], "3.0");
    Ok(())
}

#[test]
fn output_that_is_full_is_an_error_and_names_the_files() -> Fallible {
    let folder = Folder::new("full");
    let output = Command::new(env!("CARGO_BIN_EXE_sslsweep"))
        .args(["regress", "--line", "3.0", "--cure", "sweep", "--pairs", "0", "--out"])
        .arg(&folder.0)
        .args(TINY.split_whitespace().filter(|option| !matches!(*option, "--pairs" | "1")))
        .stdout(std::fs::File::options().write(true).open("/dev/full")?)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device") && said.contains("it is in"), "{said}");
    assert!(folder.0.join("report.json").is_file());
    Ok(())
}

#[test]
fn what_is_missing_is_named() -> Fallible {
    let folder = Folder::new("missing");
    let unknown = regress(&folder, "--line 0.9.8")?;
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        !unknown.status.success() && said.contains("0.9.8") && said.contains("make setup"),
        "{said}"
    );
    let gone = regress(&folder, "--libssl /no/such/libssl.so")?;
    let said = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(!gone.status.success() && said.contains("/no/such/libssl.so"), "{said}");
    let line = sslsweep_libssl::LineFiles::named("3.0")?;
    let libssl = line.libssl.display();
    let gone = regress(&folder, &format!("--libssl {libssl} --libcrypto /no/such/libcrypto.so"))?;
    let said = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(!gone.status.success() && said.contains("cannot open /no/such/libcrypto.so"), "{said}");
    // The one that is given is the one that is used: this one is another line's.
    let other = sslsweep_libssl::LineFiles::named("1.1.1")?.libcrypto;
    let mixed = regress(&folder, &format!("--libssl {libssl} --libcrypto {}", other.display()))?;
    let said = String::from_utf8_lossy(&mixed.stderr).into_owned();
    assert!(!mixed.status.success() && said.contains("does not use"), "{said}");
    Ok(())
}

/// What cannot work is refused at once: nothing is measured first.
#[test]
fn options_are_looked_at_before_the_work() -> Fallible {
    let folder = Folder::new("options");
    for (options, words) in [
        ("--misbehave 2", "a number from 0 to 1"),
        ("--new-connections=-0.1", "a number from 0 to 1"),
        ("--server-threads pool:0", "the number of threads must be"),
        ("--large-body 0", "--large-body"),
        ("--small-threads 0", "--small-threads"),
        ("--rounds 0", "--rounds"),
        ("--line 1.0.2 --age 10000000", "--age: 10000200 threads are asked for"),
        ("--line 3.0 --idle-threads 10000000", "--idle-threads: 10000008 threads are asked for"),
    ] {
        let output = regress(&folder, options)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{options}: {said}");
        assert!(!said.contains("MB/s"), "{options}: {said}");
    }
    // A folder lies where the report should.
    std::fs::create_dir_all(folder.0.join("report.json"))?;
    let output = regress(&folder, &format!("{TINY} --line 3.0"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("choose another folder with --out"),
        "{said}"
    );
    assert!(!said.contains("MB/s"), "{said}");
    Ok(())
}

#[test]
fn a_run_that_breaks_off_leaves_what_it_has_and_does_not_pass() -> Fallible {
    let folder = Folder::new("broken");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sslsweep"));
    command.arg("regress").arg("--out").arg(&folder.0).args(TINY.split_whitespace());
    command.args(["--line", "3.0", "--cure", "none", "--cure", "sweep"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stderr.take().ok_or("no standard error")?).lines();
    let begun = lines.by_ref().map_while(Result::ok).any(|line| line.contains("3.0 sweep: large"));
    assert!(begun, "the second run has begun");
    let id = child.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
    // The shell's own kill: the program is in a package that a fresh Debian lacks.
    let ended = Command::new("sh").args(["-c", &format!("kill -KILL {children}")]).status()?;
    assert!(ended.success(), "{children}");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait()?.code(), Some(1), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("what was done so far is in")), "{rest:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(folder.0.join("report.json"))?)?;
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(named(&report["verdicts"], "the run went to its end")?["holds"], false);
    Ok(())
}

/// A program that speaks for a real server, and sends the clients to another one.
fn impostor(folder: &Path, standin: &Standin) -> Fallible<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let listening = json!({
        "event": "listening",
        "address": standin.address,
        "certificate": std::fs::read_to_string(&standin.certificate)?,
        "version": "OpenSSL 3.0.19 27 Jan 2026",
    });
    std::fs::write(folder.join("listening"), format!("{listening}\n"))?;
    let program = folder.join("impostor");
    let (real, listening) = (env!("CARGO_BIN_EXE_sslsweep"), folder.join("listening"));
    let script = format!(
        "#!/bin/sh\n'{real}' \"$@\" | {{ read -r line; cat '{}'; exec cat; }}\n",
        listening.display()
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// From end to end: a server that does not do its work is not measured, it is named.
#[test]
fn a_server_that_changes_a_body_or_does_not_answer_fails_the_run() -> Fallible {
    for (faults, words) in [
        (
            Faults { change_every: Some(40), ..Faults::default() },
            "the server counted 4096 with hash",
        ),
        (Faults { stall_every: Some(40), ..Faults::default() }, "no answer in time"),
    ] {
        let folder = Folder::new("impostor");
        let standin = Standin::start(faults, &[&TLS13])?;
        let program = impostor(&folder.0, &standin)?;
        let options = format!("{TINY} --line 3.0 --cure sweep --server {}", program.display());
        let output = regress(&folder, &options)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(standin.seen.requests.load(Relaxed) >= 40);
        let report: Value = serde_json::from_slice(&std::fs::read(folder.0.join("report.json"))?)?;
        assert_eq!(named(&report["verdicts"], "the run went to its end")?["holds"], false);
    }
    Ok(())
}

/// The server's own words about a file that is no library reach the user.
#[test]
fn what_the_server_says_is_passed_on() -> Fallible {
    let folder = Folder::new("foreign");
    std::fs::create_dir_all(&folder.0)?;
    let file = folder.0.join("libssl.so");
    std::fs::write(&file, "not a library")?;
    let output = regress(&folder, &format!("{TINY} --libssl {}", file.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("the server on libssl.so"), "{said}");
    assert!(said.contains("ELF"), "{said}");
    Ok(())
}
