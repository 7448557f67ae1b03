//! The libraries to run on: the manifest of lines that `make setup` writes, and paths given by hand.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::RegressError;

/// Where `make setup` puts the manifest.
const MANIFEST: &str = ".cache/lines/lines.json";
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

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    version: Option<String>,
    libssl: Option<PathBuf>,
    libcrypto: Option<PathBuf>,
}

/// The lines named, or the default ones, and the libraries given by path.
pub fn choose(names: &[String], paths: &[PathBuf]) -> Result<Vec<Line>, RegressError> {
    let mut chosen = Vec::new();
    if !names.is_empty() || paths.is_empty() {
        let manifest =
            std::env::var_os("SSLSWEEP_LINES").map_or_else(|| MANIFEST.into(), PathBuf::from);
        let known = read(&manifest)?;
        let default = DEFAULT.map(String::from);
        for name in if names.is_empty() { &default } else { names } {
            chosen.push(find(&known, name, &manifest)?);
        }
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

fn read(manifest: &Path) -> Result<Vec<Entry>, RegressError> {
    let text = std::fs::read(manifest)
        .map_err(|error| RegressError::NoManifest(manifest.into(), error.to_string()))?;
    serde_json::from_slice(&text)
        .map_err(|error| RegressError::NoManifest(manifest.into(), error.to_string()))
}

fn find(known: &[Entry], name: &str, manifest: &Path) -> Result<Line, RegressError> {
    let found = known
        .iter()
        .find_map(|entry| entry.libssl.clone().filter(|_| entry.name == name).zip(Some(entry)));
    let Some((libssl, entry)) = found else {
        let names: Vec<&str> =
            known.iter().filter(|entry| entry.libssl.is_some()).map(|entry| &*entry.name).collect();
        return Err(RegressError::NoLine {
            name: name.into(),
            manifest: manifest.into(),
            known: names.join(", "),
        });
    };
    Ok(Line {
        name: entry.name.clone(),
        version: entry.version.clone(),
        libssl,
        libcrypto: entry.libcrypto.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_a_libssl_cannot_be_run() -> Result<(), serde_json::Error> {
        let known: Vec<Entry> = serde_json::from_str(
            r#"[{"name":"3.0","version":"3.0.19","libcrypto":"/c","libssl":"/s"}, {"name":"hidden","object":"/o"}]"#,
        )?;
        assert!(
            find(&known, "3.0", Path::new("m")).is_ok_and(|line| line.libssl == Path::new("/s"))
        );
        let missing = find(&known, "hidden", Path::new("m")).map_err(|error| error.to_string());
        assert!(missing.as_ref().is_err_and(|text| text.contains("it has 3.0")), "{missing:?}");
        Ok(())
    }
}
