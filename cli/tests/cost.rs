//! What `sslsweep cost` prints, and when it fails. Its figures are those of a debug build here, and are
//! not judged.

// A helper that unwraps fails the test at the place, as the tests themselves do.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sslsweep_libssl::{LineFiles, lines};

/// Few enough to start quickly.
const IDLE_THREADS: &str = "20";

fn cost(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sslsweep"));
    command.args(["cost", "--idle-threads", IDLE_THREADS]).args(arguments).output().unwrap()
}

fn line(name: &str) -> LineFiles {
    LineFiles::named(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A library of a line, as an argument.
fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn said(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON of a run that succeeds.
fn report(arguments: &[&str]) -> Value {
    serde_json::from_str(&said(cost(&[arguments, &["--json"]].concat()))).unwrap()
}

/// The message of a run that must fail.
fn refused(arguments: &[&str]) -> String {
    let output = cost(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.matches("sslsweep: ").count(), 1, "one prefix: {message}");
    message
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../schemas/cost.schema.json")).unwrap()
}

#[test]
fn every_line_is_measured_and_the_schema_holds() {
    let report = report(&[]);
    jsonschema::validate(&schema(), &report).unwrap_or_else(|error| panic!("{error}: {report:#}"));
    let measured = report["libraries"].as_array().unwrap();
    let known = lines().unwrap_or_else(|error| panic!("{error}"));
    assert!(known.len() >= 3, "{known:?}");
    assert_eq!(measured.len(), known.len(), "{report:#}");
    for (cost, line) in measured.iter().zip(&known) {
        assert_eq!(cost["line"], line.name);
        assert_eq!(
            fs::canonicalize(cost["library"].as_str().unwrap()).unwrap(),
            fs::canonicalize(&line.libcrypto).unwrap()
        );
        assert_eq!(cost["idle_threads"].to_string(), IDLE_THREADS);
    }
}

/// The control: what the schema must refuse, of a report that is otherwise one.
#[test]
fn the_schema_refuses_what_is_no_report() {
    let schema = schema();
    let good = report(&["--line", "3.0"]);
    jsonschema::validate(&schema, &good).unwrap_or_else(|error| panic!("{error}: {good:#}"));
    let changed = |change: fn(&mut Value)| {
        let mut report = good.clone();
        change(&mut report);
        assert!(jsonschema::validate(&schema, &report).is_err(), "{report:#}");
    };
    changed(|report| report["libraries"] = json!([]));
    changed(|report| report["more"] = json!(1));
    changed(|report| report["libraries"][0]["more"] = json!(1));
    changed(|report| report["libraries"][0]["peek_ns"] = json!("17.1"));
    changed(|report| report["libraries"][0]["peek_ns"] = json!(0));
    changed(|report| report["libraries"][0]["guard_clean_over_peek"] = Value::Null);
    changed(|report| report["libraries"][0]["idle_threads"] = json!(0.5));
    for name in good["libraries"][0].as_object().unwrap().keys() {
        let mut report = good.clone();
        report["libraries"][0].as_object_mut().unwrap().remove(name);
        assert!(jsonschema::validate(&schema, &report).is_err(), "without {name}: {report:#}");
    }
}

#[test]
fn the_table_has_a_row_for_each_library() {
    let table = said(cost(&["--line", "1.0.2", "--line", "3.0"]));
    let rows: Vec<_> = table.lines().filter(|row| !row.trim().is_empty()).collect();
    for (line, row) in [("line", 1), ("1.0.2", 3), ("3.0", 5)] {
        assert!(rows[row].starts_with(&format!(" {line} ")), "{table}");
    }
    for heading in ["peek", "clear", "guard, clean", "/ peek", "guard, dirty", "release"] {
        assert!(rows[1].contains(heading), "{table}");
    }
    assert!(table.contains(&format!("with {IDLE_THREADS} idle threads")), "{table}");
    assert!(!table.contains("1.1.1"), "{table}");
}

#[test]
fn a_library_by_path_goes_by_its_release_line() {
    let old = line("1.0.2");
    let report = report(&["--libssl", path(&old.libssl), "--libcrypto", path(&old.libcrypto)]);
    assert_eq!(report["libraries"][0]["line"], "1.0.x");
    assert_eq!(report["libraries"][0]["library"], path(&old.libcrypto));
}

#[test]
fn another_librarys_libcrypto_is_refused() {
    let (old, new) = (line("1.1.1"), line("3.0"));
    let message = refused(&["--libssl", path(&old.libssl), "--libcrypto", path(&new.libcrypto)]);
    assert!(message.contains(&format!("does not use {}", new.libcrypto.display())), "{message}");
    for arguments in [
        &["--libcrypto", path(&old.libcrypto)][..],
        &[
            "--libssl",
            path(&old.libssl),
            "--libssl",
            path(&new.libssl),
            "--libcrypto",
            path(&old.libcrypto),
        ],
    ] {
        assert!(refused(arguments).contains("--libcrypto belongs to one --libssl"));
    }
}

#[test]
fn what_cannot_be_measured_says_why_and_what_to_do() {
    let message = refused(&["--libssl", "/nonexistent/libssl.so"]);
    assert!(message.contains("/nonexistent/libssl.so does not exist; `ldconfig"), "{message}");
    let message = refused(&["--libssl", "/etc/passwd"]);
    assert!(message.contains("/etc/passwd is not an ELF file; give a shared object"), "{message}");
    let message = refused(&["--line", "9.9"]);
    assert!(message.contains("line 9.9 is not among the libraries put ready (1.0.2"), "{message}");
    assert!(message.contains("make setup"), "{message}");
    // Good libraries beside a bad one do not make it good.
    let message = refused(&["--line", "3.0", "--libssl", "/etc/passwd"]);
    assert!(message.contains("not an ELF file"), "{message}");
}

#[test]
fn idle_threads_without_room_are_refused_before_anything_is_measured() {
    let output = Command::new(env!("CARGO_BIN_EXE_sslsweep"))
        .args(["cost", "--idle-threads", "100000000", "--libssl", "/etc/passwd"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("--idle-threads: 100000000 threads are asked for"), "{message}");
    assert!(message.contains("ask for fewer"), "{message}");
}

#[test]
fn what_is_no_option_is_refused() {
    for wrong in [&["--idle-threads", "-1"][..], &["--lines", "3.0"], &["3.0"]] {
        assert_eq!(cost(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

/// The bounds themselves are held by `make bench`, and their logic by the tests in `cost.rs`.
#[test]
fn a_check_judges_an_optimised_build_only() {
    let output = cost(&["--check", "--line", "3.0", "--line", "aws-lc"]);
    if cfg!(debug_assertions) {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("--check judges an optimised build"), "{message}");
        assert!(message.contains("cargo build --release"), "{message}");
    } else {
        said(output);
        let message = refused_but_printed(&["--check", "--line", "aws-lc"]);
        assert!(message.contains("none of the libraries is one"), "{message}");
    }
}

/// The message of a check that fails, which prints the figures all the same.
fn refused_but_printed(arguments: &[&str]) -> String {
    let output = cost(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}
