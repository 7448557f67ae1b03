//! The manifest of the libraries that `make setup` has put ready.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::load::{LoadError, Tls};

/// One entry of the manifest as it is written.
#[derive(Deserialize)]
struct Written {
    name: String,
    version: String,
    libcrypto: Option<PathBuf>,
    libssl: Option<PathBuf>,
    object: Option<PathBuf>,
}

/// One library of the manifest.
#[derive(Debug, Clone)]
pub struct LineFiles {
    /// The line's name: `1.0.2`, `3.0`.
    pub name: String,
    /// Its release: `1.0.2o`.
    pub version: String,
    /// The file of libcrypto.
    pub libcrypto: PathBuf,
    /// The file of libssl.
    pub libssl: PathBuf,
}

/// The object of the manifest that has an OpenSSL inside and keeps its symbols to itself.
#[derive(Debug, Clone)]
pub struct HiddenFile {
    /// What it is and what it has: `librdkafka of confluent-kafka 2.6.1, OpenSSL 3.0.15`.
    pub version: String,
    /// The file.
    pub object: PathBuf,
}

/// Why the libraries are not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinesError {
    /// No manifest from the current directory upward.
    #[error("there is no .cache/lines/lines.json in {} or above; run make setup, or set SSLSWEEP_LINES to a manifest", from.display())]
    NotFound {
        /// Where the search began.
        from: PathBuf,
    },
    /// The manifest cannot be read.
    #[error("cannot read {}: {source}; run make setup, or set SSLSWEEP_LINES to a manifest", path.display())]
    Unreadable {
        /// The manifest.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The manifest is not what `make setup` writes.
    #[error("{} is not a manifest of libraries ({source}); run make setup again", path.display())]
    Malformed {
        /// The manifest.
        path: PathBuf,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// A library of the manifest is gone.
    #[error("{} of line {name} is gone; run make setup", path.display())]
    LibraryMissing {
        /// The line.
        name: String,
        /// The file that is not there.
        path: PathBuf,
    },
    /// A line that was asked for is not in the manifest.
    #[error("line {name} is not among the libraries put ready ({known}); run make setup")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

/// The libraries of the manifest: of the file that SSLSWEEP_LINES names, or else of
/// `.cache/lines/lines.json` in the current directory or above.
///
/// # Errors
/// One of [`LinesError`], also when a library that the manifest lists is gone.
pub fn lines() -> Result<Vec<LineFiles>, LinesError> {
    let (written, folder) = entries()?;
    let mut lines = Vec::new();
    for Written { name, version, libcrypto, libssl, .. } in written {
        // An entry without them is the object of `hidden`.
        let (Some(libcrypto), Some(libssl)) = (libcrypto, libssl) else { continue };
        let (libcrypto, libssl) = (folder.join(libcrypto), folder.join(libssl));
        exists(&name, &libcrypto)?;
        exists(&name, &libssl)?;
        lines.push(LineFiles { name, version, libcrypto, libssl });
    }
    Ok(lines)
}

/// The object of the manifest with an OpenSSL inside that nobody can reach.
///
/// # Errors
/// One of [`LinesError`], also when the manifest has none.
pub fn hidden() -> Result<HiddenFile, LinesError> {
    const NAME: &str = "hidden";
    let (written, folder) = entries()?;
    let known = written.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
    let entry = written.into_iter().find(|entry| entry.name == NAME);
    match entry {
        Some(Written { version, object: Some(object), .. }) => {
            let object = folder.join(object);
            exists(NAME, &object)?;
            Ok(HiddenFile { version, object })
        }
        _ => Err(LinesError::Unknown { name: NAME.to_owned(), known }),
    }
}

impl LineFiles {
    /// The line of that name.
    ///
    /// # Errors
    /// One of [`LinesError`].
    pub fn named(name: &str) -> Result<Self, LinesError> {
        let lines = lines()?;
        let known = lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = lines.into_iter().find(|line| line.name == name);
        found.ok_or_else(|| LinesError::Unknown { name: name.to_owned(), known })
    }

    /// Loads the line's libssl with its libcrypto.
    ///
    /// # Errors
    /// One of [`LoadError`].
    pub fn load(&self) -> Result<&'static Tls, LoadError> {
        Tls::load(&self.libssl, Some(&self.libcrypto))
    }

    /// As [`load`](Self::load), counting the libcrypto's memory from its first allocation on.
    ///
    /// # Errors
    /// One of [`LoadError`].
    pub fn load_accounted(&self) -> Result<&'static Tls, LoadError> {
        Tls::load_accounted(&self.libssl, Some(&self.libcrypto))
    }
}

fn manifest() -> Result<PathBuf, LinesError> {
    if let Some(named) = std::env::var_os("SSLSWEEP_LINES") {
        return Ok(named.into());
    }
    let from = std::env::current_dir().unwrap_or_default();
    let found = from.ancestors().map(|folder| folder.join(".cache/lines/lines.json"));
    let found = found.into_iter().find(|path| path.is_file());
    found.ok_or(LinesError::NotFound { from })
}

/// The entries of the manifest, and the folder that their paths start from.
fn entries() -> Result<(Vec<Written>, PathBuf), LinesError> {
    let path = manifest()?;
    let text = std::fs::read(&path)
        .map_err(|source| LinesError::Unreadable { path: path.clone(), source })?;
    let written = serde_json::from_slice(&text)
        .map_err(|source| LinesError::Malformed { path: path.clone(), source })?;
    Ok((written, path.parent().unwrap_or(Path::new("")).to_path_buf()))
}

fn exists(name: &str, path: &Path) -> Result<(), LinesError> {
    if path.is_file() {
        return Ok(());
    }
    Err(LinesError::LibraryMissing { name: name.to_owned(), path: path.to_path_buf() })
}
