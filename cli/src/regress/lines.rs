//! The libraries to run on: lines that `make setup` has put ready, and paths given by hand.

use std::path::PathBuf;

use sslsweep::probe;
use sslsweep_libssl::LineFiles;

use super::server::Server;
use super::{RegressArguments, RegressError};
use crate::report::model::Cure;

/// The lines that are run when none is named.
const DEFAULT: [&str; 3] = ["1.0.2", "1.1.1", "3.0"];

/// Where a library is.
#[derive(Debug, Clone)]
pub struct Files {
    /// Name of the line in the manifest; none for a path given by hand.
    pub line: Option<String>,
    /// libssl.
    pub libssl: PathBuf,
    /// libcrypto, if it is known.
    pub libcrypto: Option<PathBuf>,
    /// The program that serves with it, where it is not this one.
    pub program: Option<PathBuf>,
}

impl Files {
    /// What messages call it.
    pub fn name(&self) -> String {
        let file = || self.libssl.file_name().map(|name| name.to_string_lossy().into_owned());
        self.line.clone().or_else(file).unwrap_or_else(|| "libssl".into())
    }
}

/// A library to run on. It was loaded once, so that it is known what it is.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the report.
    pub name: String,
    /// Where it is.
    pub files: Files,
    /// Whether its thread states live in the table of 1.0.x, and outlive their threads.
    pub old: bool,
}

/// The lines named, or the default ones, and the libraries given by path.
///
/// # Errors
/// When one of them is not there, or no server can run on it.
pub fn choose(arguments: &RegressArguments) -> Result<Vec<Line>, RegressError> {
    let RegressArguments { lines: names, paths, libcryptos, server: program, .. } = arguments;
    let default = DEFAULT.map(String::from);
    let names = if names.is_empty() && paths.is_empty() { &default[..] } else { names };
    let mut chosen = Vec::new();
    for name in names {
        let LineFiles { name, libcrypto, libssl, .. } = LineFiles::named(name)?;
        let (line, libcrypto) = (Some(name), Some(libcrypto));
        chosen.push(Files { line, libssl, libcrypto, program: program.clone() });
    }
    if libcryptos.len() > paths.len() {
        return Err(RegressError::Unpaired);
    }
    let whole = |path: &PathBuf| {
        path.canonicalize().map_err(|error| RegressError::NoLibrary(path.clone(), error))
    };
    for (number, path) in paths.iter().enumerate() {
        let (libssl, libcrypto) = (whole(path)?, libcryptos.get(number).map(whole).transpose()?);
        chosen.push(Files { line: None, libssl, libcrypto, program: program.clone() });
    }
    let mut lines: Vec<Line> = Vec::new();
    for files in chosen {
        let line = identify(files, &lines)?;
        lines.push(line);
    }
    Ok(lines)
}

/// Asks a server on the library what it is: a manifest or a file name may say anything.
fn identify(files: Files, others: &[Line]) -> Result<Line, RegressError> {
    let server = Server::start(&files, Cure::None, "pool:1", 0)?;
    let table = server.states()?.thread_states.longest_chain.is_some();
    let old = table || probe::Line::from_version_text(&server.version) == probe::Line::V1_0;
    let name = files.line.clone().unwrap_or_else(|| name_of(&server.version));
    server.quit()?;
    let name = distinct(name, |name| others.iter().any(|other| other.name == name));
    Ok(Line { name, files, old })
}

/// `3.0.19` of `OpenSSL 3.0.19 27 Jan 2026`; others keep their own name: `AWS-LC 5.12.0`.
fn name_of(version: &str) -> String {
    let words: Vec<&str> = version.split_whitespace().collect();
    match words[..] {
        ["OpenSSL", number, ..] => number.into(),
        [name, number, ..] => format!("{name} {number}"),
        _ => version.into(),
    }
}

/// The name, with a number if it is taken.
fn distinct(name: String, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name));
    free.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_named_by_what_they_say_they_are() {
        assert_eq!(name_of("OpenSSL 1.0.2o  27 Mar 2018"), "1.0.2o");
        assert_eq!(name_of("AWS-LC 5.12.0"), "AWS-LC 5.12.0");
        assert_eq!(name_of("BoringSSL"), "BoringSSL");
    }

    #[test]
    fn no_two_libraries_have_one_name() {
        let taken = ["3.0.19", "3.0.19 (2)"];
        assert_eq!(distinct("3.0.19".into(), |name| taken.contains(&name)), "3.0.19 (3)");
        assert_eq!(distinct("4.0.3".into(), |name| taken.contains(&name)), "4.0.3");
    }
}
