//! The manifest of the libraries that `make setup` provides.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A libcrypto of the manifest.
pub struct Line {
    pub version: String,
    pub libcrypto: PathBuf,
}

/// The object of the manifest that hides its OpenSSL.
pub struct Hidden {
    pub version: String,
    pub object: PathBuf,
}

pub fn line(name: &str) -> Line {
    let entry = entry(name);
    Line { version: text(&entry, "version"), libcrypto: text(&entry, "libcrypto").into() }
}

pub fn hidden() -> Hidden {
    let entry = entry("hidden");
    Hidden { version: text(&entry, "version"), object: text(&entry, "object").into() }
}

fn entry(name: &str) -> Value {
    let manifest = std::env::var_os("SSLSWEEP_LINES").map_or_else(
        || {
            let from = Path::new(env!("CARGO_MANIFEST_DIR"));
            let mut all = from.ancestors().map(|folder| folder.join(".cache/lines/lines.json"));
            all.find(|path| path.exists()).expect("run `make setup`, which provides the libraries")
        },
        PathBuf::from,
    );
    let text =
        std::fs::read(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    let entries: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let entry = entries.into_iter().find(|entry| entry["name"] == name);
    entry.unwrap_or_else(|| panic!("{} lacks {name}: run `make setup`", manifest.display()))
}

fn text(entry: &Value, key: &str) -> String {
    entry[key].as_str().unwrap_or_else(|| panic!("no {key} in {entry}")).to_owned()
}
