//! What `sslsweep libs` says of real processes.

// A helper that unwraps fails the test at the place, as the tests themselves do.
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use sslsweep::sys::elf::Elf;
use sslsweep_libssl::{LineFiles, hidden};

/// Loads the libraries given, says so, and waits for the test to end.
const LOADER: &str = "
import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path)
print('ready', flush=True)
sys.stdin.read()
";

/// A process to look at; it ends when its standard input does, at the latest with the test.
struct Target(Child);

impl Target {
    fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{command:?} did not get ready");
        Self(child)
    }

    fn python(script: &str, arguments: &[PathBuf]) -> Self {
        Self::start(Command::new(python()).arg("-c").arg(script).args(arguments))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder that goes with the test, and that everybody may read.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("sslsweep-libs-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn copy(&self, file: &Path) -> PathBuf {
        let copy = self.0.join(file.file_name().unwrap());
        fs::copy(file, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        copy
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The system's Python, which uses the system's OpenSSL; others bring one of their own.
fn python() -> &'static Path {
    let system = Path::new("/usr/bin/python3");
    assert!(system.exists(), "needs {} (apt-get install python3)", system.display());
    system
}

fn line(name: &str) -> LineFiles {
    LineFiles::named(name).unwrap_or_else(|error| panic!("{error}"))
}

fn sslsweep() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sslsweep"))
}

fn libs(arguments: &[&str]) -> Output {
    Command::new(sslsweep()).arg("libs").args(arguments).output().unwrap()
}

/// What the command prints for people.
fn said(target: &Target) -> String {
    let output = libs(&[&target.pid()]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the command prints for programs, held to the schema.
fn json(target: &Target) -> Value {
    let output = libs(&[&target.pid(), "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = serde_json::from_str(include_str!("../schemas/libs.schema.json")).unwrap();
    jsonschema::validate(&schema, &report).unwrap_or_else(|error| panic!("{error}: {report:#}"));
    assert_eq!(report["pid"].to_string(), target.pid());
    report
}

/// The message of a run that must fail.
fn refused(arguments: &[&str]) -> String {
    let output = libs(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A library and, before it, what it needs from its own folder: wheels carry their dependencies.
fn with_siblings(library: &Path) -> Vec<PathBuf> {
    let mut order = Vec::new();
    for needed in Elf::open(library).unwrap().needed() {
        let sibling = library.with_file_name(needed);
        if sibling.exists() && !order.contains(&sibling) {
            order.extend(with_siblings(&sibling));
        }
    }
    order.push(library.to_owned());
    order
}

fn file_name(value: &Value) -> String {
    Path::new(value.as_str().unwrap()).file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn python_uses_the_systems_library() {
    let system = line("3.0");
    let target =
        Target::python("import ssl, sys; print('ready', flush=True); sys.stdin.read()", &[]);
    let report = json(&target);
    assert!(file_name(&report["program"]).starts_with("python3"));
    assert_eq!(report["blind_spots"], Value::Array(Vec::new()));
    let libraries = report["libraries"].as_array().unwrap();
    assert_eq!(libraries.len(), 1, "{report:#}");
    let found = &libraries[0];
    assert_eq!(
        fs::canonicalize(found["path"].as_str().unwrap()).unwrap(),
        fs::canonicalize(&system.libcrypto).unwrap()
    );
    assert_eq!(found["line"], "3.x");
    assert!(
        found["version"].as_str().unwrap().starts_with(&format!("OpenSSL {} ", system.version))
    );
    assert_eq!(found["is_program"], false);
    let users: Vec<_> = found["used_by"].as_array().unwrap().iter().map(file_name).collect();
    assert!(users.iter().any(|user| user.starts_with("_ssl.")), "{users:?}");
    assert!(users.iter().any(|user| user.starts_with("libssl.so")), "{users:?}");

    let said = said(&target);
    assert!(said.contains("libcrypto.so.3"), "{said}");
    assert!(said.contains("never release per task"), "{said}");
    assert!(said.contains("libcrypto.so.3 is used by"), "{said}");
}

#[test]
fn three_libraries_in_one_process_are_listed_and_swept_apart() {
    let lines = [line("1.0.2"), line("1.1.1"), line("3.0")];
    let files: Vec<_> = lines.iter().flat_map(|line| with_siblings(&line.libcrypto)).collect();
    let target = Target::python(LOADER, &files);
    let report = json(&target);
    let mut found: Vec<_> = report["libraries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| (found["line"].as_str().unwrap(), found["version"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(found.len(), 3, "{report:#}");
    for ((found_line, version), (wanted, written)) in
        found.iter().zip([("1.0.x", &lines[0]), ("1.1.x", &lines[1]), ("3.x", &lines[2])])
    {
        assert_eq!(*found_line, wanted);
        assert!(version.starts_with(&format!("OpenSSL {} ", written.version)), "{version}");
    }
    // The table breaks its cells as the paths leave it room: what a line needs is asked of the JSON.
    let needs = |line: &str| {
        let libraries = report["libraries"].as_array().unwrap();
        let found = libraries.iter().find(|found| found["line"] == line).unwrap();
        found["needs"].as_str().unwrap().to_owned()
    };
    assert!(needs("1.0.x").contains("and release the thread state"), "{report:#}");
    assert!(needs("3.x").contains("never release per task"), "{report:#}");
    let said = said(&target);
    assert!(said.contains("3 libcryptos in one process"), "{said}");
    for line in &lines {
        assert!(said.contains(&line.version), "{said}");
    }
}

#[test]
fn an_openssl_that_hides_its_symbols_is_a_blind_spot() {
    let hidden = hidden().unwrap_or_else(|error| panic!("{error}"));
    let target = Target::python(LOADER, &with_siblings(&hidden.object));
    let report = json(&target);
    assert_eq!(report["libraries"], Value::Array(Vec::new()), "{report:#}");
    let spots = report["blind_spots"].as_array().unwrap();
    assert_eq!(spots.len(), 1, "{report:#}");
    assert_eq!(spots[0]["path"].as_str().unwrap(), hidden.object.to_str().unwrap());
    assert_eq!(spots[0]["reason"], "hidden");
    assert_eq!(spots[0]["tls"], true);
    assert_eq!(spots[0]["line"], "3.x");
    // The manifest says `librdkafka of confluent-kafka 2.6.1, OpenSSL 3.0.15`.
    let version = spots[0]["version"].as_str().unwrap();
    let (_, release) = hidden.version.rsplit_once(", ").unwrap();
    assert!(version.starts_with(&format!("{release} ")), "{version} is not {release}");

    let said = said(&target);
    assert!(said.contains("No libcrypto that can be swept is loaded"), "{said}");
    assert!(said.contains("Blind spots:"), "{said}");
    assert!(
        said.contains(&format!("{version} is linked in and keeps its symbols to itself")),
        "{said}"
    );
}

/// A program that has a libcrypto inside and exports it, as node does: what `libs` looks at, without the
/// libcrypto.
const PROGRAM: &str = r#"
#include <stdio.h>
const char version[] = "OpenSSL 3.0.15 3 Sep 2024";
void ERR_clear_error(void) {}
int main(void) { puts("ready"); fflush(stdout); return getchar() == EOF ? 0 : (int)version[0]; }
"#;

/// A program that has one inside and uses it.
const WHOLE: &str = r#"
#include <stdio.h>
#include <openssl/err.h>
int main(void) { ERR_clear_error(); puts("ready"); fflush(stdout); return getchar() == EOF ? 0 : 1; }
"#;

#[test]
fn a_program_that_exports_its_own_openssl_is_listed_itself() {
    let folder = Folder::new("program");
    let (source, program) = (folder.0.join("program.c"), folder.0.join("program"));
    fs::write(&source, PROGRAM).unwrap();
    let mut gcc = Command::new("gcc");
    let compiled = gcc.arg("-rdynamic").arg("-o").args([&program, &source]).status().unwrap();
    assert!(compiled.success());
    let target = Target::start(&mut Command::new(&program));
    let report = json(&target);
    let found = &report["libraries"][0];
    assert_eq!(found["path"].as_str().unwrap(), program.to_str().unwrap());
    assert_eq!(found["is_program"], true);
    assert_eq!(found["version"], "OpenSSL 3.0.15 3 Sep 2024");
    assert_eq!(found["line"], "3.x");
    assert!(said(&target).contains("(the program itself)"));
}

/// The same with a real libcrypto, whole, linked into the program as node has it.
#[test]
fn a_program_with_a_whole_libcrypto_inside_is_listed_itself() {
    let folder = Folder::new("whole");
    let (source, program) = (folder.0.join("whole.c"), folder.0.join("whole"));
    fs::write(&source, WHOLE).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.arg("-rdynamic").arg("-o").args([&program, &source]);
    gcc.args([
        "-Wl,--whole-archive",
        "-l:libcrypto.a",
        "-Wl,--no-whole-archive",
        "-ldl",
        "-lpthread",
    ]);
    let linked = gcc.output().unwrap();
    assert!(linked.status.success(), "needs libcrypto.a (apt-get install libssl-dev): {linked:?}");
    let target = Target::start(&mut Command::new(&program));
    let report = json(&target);
    let libraries = report["libraries"].as_array().unwrap();
    assert_eq!(libraries.len(), 1, "{report:#}");
    assert_eq!(libraries[0]["is_program"], true, "{report:#}");
    assert_eq!(libraries[0]["path"], report["program"]);
    assert_eq!(libraries[0]["line"], "3.x");
    assert!(libraries[0]["version"].as_str().unwrap().starts_with("OpenSSL 3."), "{report:#}");
    assert_eq!(report["blind_spots"], Value::Array(Vec::new()), "{report:#}");
}

#[test]
fn a_process_without_openssl_is_no_error() {
    let target = Target::start(Command::new("sh").args(["-c", "echo ready; read line"]));
    let report = json(&target);
    assert_eq!(report["libraries"], Value::Array(Vec::new()));
    assert_eq!(report["blind_spots"], Value::Array(Vec::new()), "{report:#}");
    assert!(said(&target).contains("No libcrypto that can be swept is loaded."));
}

#[test]
fn without_a_number_the_command_looks_at_itself() {
    let output = libs(&[]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(sslsweep().to_str().unwrap()), "{said}");
    let help = String::from_utf8(libs(&["--help"]).stdout).unwrap();
    assert!(help.contains("Give the PID of the process that you care about"), "{help}");
}

#[test]
fn a_process_that_has_ended_is_said_to_be_gone() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().to_string();
    child.wait().unwrap();
    let message = refused(&[&pid]);
    assert!(message.contains(&format!("process {pid}: there is none of that number")), "{message}");
}

#[test]
fn a_zombie_is_said_to_be_one() {
    let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    // Its end of the pipe closes when it ends; it stays a zombie until it is waited for.
    let mut rest = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut rest).unwrap();
    let pid = child.id().to_string();
    let status = format!("/proc/{pid}/stat");
    while !fs::read_to_string(&status).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let message = refused(&[&pid]);
    child.wait().unwrap();
    assert!(message.contains("a zombie"), "{message}");
}

#[test]
fn what_is_no_number_is_refused() {
    for wrong in ["nginx", "0", "-1", "99999999999"] {
        let output = libs(&["--", wrong]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("PID"), "{output:?}");
    }
}

/// Runs a program as `nobody`, or as the user that runs the tests if that is not root.
fn as_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// A process that `as_nobody` may not look at, and its owner: one of ours if we are root, and otherwise
/// one that another user runs.
fn foreign() -> (Option<Target>, String, u32) {
    if is_root() {
        let target = Target::start(Command::new("sh").args(["-c", "echo ready; read line"]));
        let pid = target.pid();
        return (Some(target), pid, 0);
    }
    let me = fs::metadata("/proc/self").unwrap().uid();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().into_string().ok()?;
        Some((pid.parse::<u32>().ok()?, entry.metadata().ok()?.uid()))
    });
    // Most likely the oldest, which will not end meanwhile.
    let other = processes.filter(|(_, owner)| *owner != me).min();
    let (pid, owner) = other.expect(
        "needs a process of another user, and /proc shows none: run this as root, or without hidepid",
    );
    (None, pid.to_string(), owner)
}

#[test]
fn a_process_of_another_user_is_refused_with_its_owner() {
    let folder = Folder::new("nobody");
    // The test's own folder may be closed to others.
    let command = folder.copy(sslsweep());
    let (_target, pid, owner) = foreign();
    let output = as_nobody(&command).args(["libs", &pid]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    let expected =
        format!("process {pid}: no permission to look at it, it belongs to user {owner}");
    assert!(message.contains(&expected), "{message}");
    assert!(message.contains("as root"), "{message}");
}

#[test]
fn a_library_that_was_replaced_on_disk_is_still_told() {
    let folder = Folder::new("replaced");
    let system = line("3.0");
    let library = folder.copy(&system.libcrypto);
    let target = Target::python(LOADER, std::slice::from_ref(&library));
    fs::remove_file(&library).unwrap();
    // What has its place now is something else.
    fs::write(&library, "not the file that was loaded").unwrap();
    let report = json(&target);
    let libraries = report["libraries"].as_array().unwrap();
    let found = libraries.iter().find(|found| found["path"].as_str() == library.to_str());
    let found = found.unwrap_or_else(|| panic!("{} is missing in {report:#}", library.display()));
    assert_eq!(found["deleted"], true);
    assert!(found["version"].as_str().unwrap().contains(&system.version), "{report:#}");
    assert!(said(&target).contains("(deleted or replaced on disk)"));
}

#[test]
fn a_path_that_is_no_text_is_printed_without_harm() {
    let folder = Folder::new("odd");
    let odd = folder.0.join(OsStr::from_bytes(b"lib \x1b[31m\n\xff.so"));
    fs::copy(line("3.0").libcrypto, &odd).unwrap();
    let loader = "import ctypes, os, sys; ctypes.CDLL(os.fsencode(sys.argv[1])); \
                  print('ready', flush=True); sys.stdin.read()";
    let target = Target::python(loader, std::slice::from_ref(&odd));
    let report = json(&target);
    let path = report["libraries"][0]["path"].as_str().unwrap();
    assert!(path.ends_with("/lib \u{1b}[31m\n\u{fffd}.so"), "{path:?}");
    let said = said(&target);
    assert!(
        said.contains(r"/lib \u{1b}[31m\n\u{fffd}.so".replace(r"\u{fffd}", "\u{fffd}").as_str()),
        "{said}"
    );
}

#[test]
fn a_user_sees_the_replaced_library_of_an_own_process_or_learns_who_can() {
    let folder = Folder::new("own");
    let system = line("3.0");
    let library = folder.copy(&system.libcrypto);
    let command = folder.copy(sslsweep());
    let target =
        Target::start(as_nobody(python()).arg("-c").arg(LOADER).arg(&library).current_dir("/"));
    fs::remove_file(&library).unwrap();
    let output = as_nobody(&command).args(["libs", &target.pid()]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(library.to_str().unwrap()), "{said}");
    // Through the process's memory, where the kernel lets its user read that.
    let is_told = said.contains(&format!("OpenSSL {} ", system.version));
    assert!(is_told || said.contains("root can still read it"), "{said}");
}
