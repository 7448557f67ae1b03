//! A program in C that uses `include/sslsweep.h` and links the shared object.

// A helper that unwraps fails the test at the place, as the tests themselves do.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sslsweep::edge::sslsweep_enter;
use sslsweep::hygiene::{ledger, libraries};
use sslsweep_libssl::LineFiles;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shared object that cargo has built for this test.
fn shim() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libsslsweep.so")
}

/// Compiles a program against the header, the shim and a libcrypto, if it uses one, and runs it.
fn run(source: &str, libcrypto: Option<&Path>, name: &str) -> String {
    let program = std::env::temp_dir().join(format!("sslsweep-{name}-{}", std::process::id()));
    let compiled = Command::new("gcc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", "-o"])
        .arg(&program)
        .arg(root().join("tests/c").join(source))
        .arg("-I")
        .arg(root().join("include"))
        .arg(shim())
        .args(libcrypto)
        // The wheels' libcrypto needs its neighbours, and has no path to them.
        .arg("-Wl,--allow-shlib-undefined")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let libraries = [Some(shim()), libcrypto.map(Path::to_owned)];
    let folders = libraries.iter().flatten().map(|library| library.parent().unwrap());
    let ran = Command::new(&program)
        .env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap())
        .output()
        .unwrap();
    fs::remove_file(&program).unwrap();
    assert!(ran.status.success(), "{name}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_worker_in_c_is_swept_on_each_line() {
    for name in ["1.0.2", "1.1.1", "3.0"] {
        let line = LineFiles::named(name).unwrap_or_else(|error| panic!("{error}"));
        let said = run("worker.c", Some(&line.libcrypto), &format!("worker-{name}"));
        let expected = format!(
            "version {}\n\
             without a task: dirty\n\
             inside the task: dirty\n\
             after the task: clean (0, 0)\n\
             after the inner task: dirty\n\
             after the outer task: clean\n\
             exit too many: -2, -2\n\
             without a label: clean (0, 0)\n\
             label that is no UTF-8: clean (0, 0)\n\
             long label: clean (0, 0)\n\
             too deep: 936 refused, 0 exits failed, clean\n\
             a thread ended inside a task\n\
             snapshot: whole, cut: ended, none: asked\n",
            env!("CARGO_PKG_VERSION")
        );
        let (checks, snapshot) = said.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(format!("{checks}\n"), expected, "on {name}");
        // Each task is in it under its label, the one that ended with its thread too.
        serde_json::from_str::<serde_json::Value>(snapshot).unwrap();
        let long = format!("\"{}\"", "x".repeat(128));
        let labels =
            ["\"parse\"", "\"inner\"", "\"(unnamed)\"", "\"not \u{fffd} UTF-8\"", "\"never left\""];
        for label in labels.into_iter().chain([long.as_str()]) {
            assert!(snapshot.contains(label), "{label} is missing on {name}: {snapshot}");
        }
    }
}

#[test]
fn a_program_without_openssl_that_floods_the_shim_with_names() {
    let said = run("no_openssl.c", None, "no-openssl");
    let (checks, snapshot) = said.trim_end().rsplit_once('\n').unwrap();
    let expected = "exit without an enter: -2\n\
                    flood: 0 and 0 calls failed\n\
                    memory: bounded\n\
                    snapshot: whole";
    assert_eq!(checks, expected);
    let snapshot: serde_json::Value = serde_json::from_str(snapshot).unwrap();
    assert_eq!(snapshot["libraries"], serde_json::json!([]), "{snapshot:#}");
    let labels = snapshot["ledger"]["labels"].as_array().unwrap();
    assert!(labels.len() <= 256, "{} labels", labels.len());
    let tasks = labels.iter().map(|label| label["tasks"].as_u64().unwrap());
    assert_eq!(tasks.sum::<u64>(), 200_001, "all are counted");
    assert!(labels.iter().any(|label| label["label"] == "first"), "{labels:?}");
    assert!(labels.iter().any(|label| label["label"] == "(other labels)"), "{labels:?}");
}

#[test]
fn what_a_task_leaves_that_ends_with_its_thread_is_recorded() {
    let line = LineFiles::named("3.0").unwrap_or_else(|error| panic!("{error}"));
    let _tls = line.load().unwrap();
    let library = libraries()[0];
    std::thread::spawn(|| {
        // SAFETY: the label is a NUL-terminated text.
        assert_eq!(unsafe { sslsweep_enter(c"ends with its thread".as_ptr()) }, 0);
        assert!(library.raise(128, 7, c"worker.c", 7));
    })
    .join()
    .unwrap();
    let ledger = ledger();
    let figures = ledger.labels.iter().find(|figures| figures.label == "ends with its thread");
    assert_eq!(
        figures.map(|figures| (figures.tasks, figures.leftovers)),
        Some((1, 1)),
        "{ledger:?}"
    );
}

#[test]
fn the_header_and_the_list_of_exports_name_the_same_functions() {
    let header = fs::read_to_string(root().join("include/sslsweep.h")).unwrap();
    let mut declared: Vec<_> = header
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with([' ', '*', '/']))
        .map(|line| {
            let name = line.split('(').next().unwrap();
            name.rsplit([' ', '*']).next().unwrap()
        })
        .collect();
    declared.sort_unstable();
    let exports = fs::read_to_string(root().join("exports/libsslsweep.txt")).unwrap();
    let ours = exports.lines().filter(|name| name.starts_with("sslsweep_"));
    assert_eq!(declared, ours.collect::<Vec<_>>());
}
