//! The libraries to run on: lines that `make setup` has put ready, and paths given by hand.

use std::path::PathBuf;

use sslsweep_libssl::LineFiles;

use super::RegressError;

/// The lines that are run when none is named.
const DEFAULT: [&str; 3] = ["1.0.2", "1.1.1", "3.0"];

/// A library to run on.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the report.
    pub name: String,
    /// Version, if the manifest has it.
    pub version: Option<String>,
    /// libssl.
    pub libssl: PathBuf,
    /// libcrypto, if it is known.
    pub libcrypto: Option<PathBuf>,
}

/// The lines named, or the default ones, and the libraries given by path.
///
/// # Errors
/// When one of them is not there.
pub fn choose(names: &[String], paths: &[PathBuf]) -> Result<Vec<Line>, RegressError> {
    let default = DEFAULT.map(String::from);
    let names = if names.is_empty() && paths.is_empty() { &default } else { names };
    let mut chosen = Vec::new();
    for name in names {
        let LineFiles { name, version, libcrypto, libssl } = LineFiles::named(name)?;
        chosen.push(Line { name, version: Some(version), libssl, libcrypto: Some(libcrypto) });
    }
    for path in paths {
        let libssl =
            path.canonicalize().map_err(|error| RegressError::NoLibrary(path.clone(), error))?;
        let name = libssl
            .file_name()
            .map_or_else(|| "libssl".into(), |name| name.to_string_lossy().into_owned());
        chosen.push(Line { name, version: None, libssl, libcrypto: None });
    }
    Ok(chosen)
}
