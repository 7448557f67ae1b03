//! Running `sslsweep regress` in tests.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

pub type Fallible<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A folder that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("sslsweep-regress-{}-{name}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs it to its end.
pub fn regress(folder: &Folder, options: &str) -> Fallible<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sslsweep"));
    command.arg("regress").arg("--out").arg(&folder.0).args(options.split_whitespace());
    Ok(command.output()?)
}

/// The first verdict whose name has `part` in it.
pub fn named<'a>(verdicts: &'a Value, part: &str) -> Fallible<&'a Value> {
    let mut all = verdicts.as_array().into_iter().flatten();
    let found =
        all.find(|verdict| verdict["name"].as_str().is_some_and(|name| name.contains(part)));
    found.ok_or_else(|| format!("no verdict about {part} in {verdicts}").into())
}

/// What the committed schema finds wrong with a report.
pub fn faults(report: &Value) -> Fallible<Vec<String>> {
    let schema = serde_json::from_str(include_str!("../../schemas/regress.schema.json"))?;
    let validator = jsonschema::validator_for(&schema)?;
    let errors = validator.iter_errors(report);
    Ok(errors.map(|error| format!("{}: {error}", error.instance_path)).collect())
}
