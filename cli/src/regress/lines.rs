//! What to run on: lines that `make setup` has put ready, libraries given by path, and Tomcats.

use std::path::PathBuf;

use sslsweep::probe;
use sslsweep_libssl::LineFiles;

use super::server::{Announced, Server};
use super::tomcat::{CONTROL, CURES, Installed, JVM_OPTIONS, Tomcat, TomcatError};
use super::warm;
use super::{RegressArguments, RegressError};
use crate::report::model::{Cure, Host, WarmUp};

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

/// What serves.
#[derive(Debug, Clone)]
pub enum Program {
    /// `sslsweep serve`, or a program that takes the same options.
    Serve(Files),
    /// A Tomcat, which brings its own OpenSSL.
    Tomcat(Installed),
}

impl Program {
    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Serve(files) => files.name(),
            Self::Tomcat(installed) => installed.tomcat.name.into(),
        }
    }

    /// The library that the report names.
    pub fn library(&self) -> String {
        match self {
            Self::Serve(files) => files.libssl.display().to_string(),
            Self::Tomcat(installed) => installed.tcnative.display().to_string(),
        }
    }
}

/// A library or a Tomcat to run on. It was started once, so that it is known what it is.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the report.
    pub name: String,
    /// What serves on it.
    pub program: Program,
    /// Whether its thread states live in the table of 1.0.x, and outlive their threads.
    pub old: bool,
    /// What the server says it is; none for `sslsweep serve`.
    pub host: Option<Host>,
    /// Whether it has an address for each cure.
    pub addressed: bool,
    /// Whether it has a second address without a cure.
    pub control: bool,
}

impl Line {
    /// Which of the cures it can have.
    pub fn cures(&self, wanted: &[Cure]) -> Vec<Cure> {
        let can = |cure: &Cure| !self.addressed || CURES.contains(cure);
        wanted.iter().copied().filter(can).collect()
    }
}

/// The Tomcats named by `--server`; or else the lines named, or the default ones, and the libraries given by path.
///
/// # Errors
/// When one of them is not there, or no server can run on it.
pub fn choose(arguments: &RegressArguments) -> Result<Vec<Line>, RegressError> {
    let (programs, tomcats): (Vec<_>, Vec<_>) =
        arguments.servers.iter().partition(|server| server.contains('/'));
    let lines = match (&programs[..], &tomcats[..]) {
        ([], []) => libraries(arguments, None)?,
        ([program], []) => libraries(arguments, Some(PathBuf::from(program)))?,
        ([], _) => self::tomcats(arguments, &tomcats)?,
        _ => return Err(RegressError::Servers),
    };
    // Which cures a line has is known only now.
    let cure = arguments.cures.iter().find(|cure| !CURES.contains(cure));
    if let Some(cure) = cure.filter(|_| lines.iter().any(|line| line.addressed)) {
        return Err(TomcatError::Cure(*cure).into());
    }
    Ok(lines)
}

fn tomcats(arguments: &RegressArguments, names: &[&String]) -> Result<Vec<Line>, RegressError> {
    let mut chosen: Vec<Tomcat> = Vec::new();
    for name in names {
        let tomcat = Tomcat::named(name)?;
        if !chosen.contains(&tomcat) {
            chosen.push(tomcat);
        }
    }
    arguments.suit_a_tomcat()?;
    let mut lines = Vec::new();
    for tomcat in chosen {
        let installed = tomcat.find(arguments.tcnative.as_deref())?;
        lines.push(identify(Program::Tomcat(installed), &lines, warm::size(arguments.warm_up))?);
    }
    Ok(lines)
}

fn libraries(
    arguments: &RegressArguments,
    program: Option<PathBuf>,
) -> Result<Vec<Line>, RegressError> {
    let RegressArguments { lines: names, paths, libcryptos, .. } = arguments;
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
        let line = identify(Program::Serve(files), &lines, warm::size(arguments.warm_up))?;
        lines.push(line);
    }
    Ok(lines)
}

/// Asks a server on the library what it is: a manifest or a file name may say anything.
fn identify(program: Program, others: &[Line], warm_up: WarmUp) -> Result<Line, RegressError> {
    let server = Server::start(&program, &[Cure::None.name()], "pool:1", 0)?;
    let table = server.states()?.thread_states.longest_chain.is_some();
    let old = table || probe::Line::from_version_text(&server.version) == probe::Line::V1_0;
    let name = match &program {
        Program::Serve(files) => files.line.clone().unwrap_or_else(|| name_of(&server.version)),
        Program::Tomcat(installed) => installed.tomcat.name.into(),
    };
    let addressed = server.is_addressed();
    let control = matches!(program, Program::Tomcat(_)) || server.door(CONTROL).is_some();
    let name = distinct(name, |name| others.iter().any(|other| other.name == name));
    let java_options = match &program {
        Program::Serve(_) => Vec::new(),
        Program::Tomcat(_) => JVM_OPTIONS.map(String::from).into(),
    };
    let host = server.announced.clone().map(|Announced { tomcat, connector, tcnative, java }| {
        Host { line: name.clone(), tomcat, connector, tcnative, java, java_options, warm_up }
    });
    server.quit()?;
    Ok(Line { name, program, old, host, addressed, control: addressed && control })
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
