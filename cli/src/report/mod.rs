//! The report of a regression run: tables for a terminal, JSON for programs, one page of HTML for people.

#[cfg(test)]
pub mod example;
mod html;
pub mod model;
mod plots;
pub mod table;

use std::path::{Path, PathBuf};

use model::Report;

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A figure has no JSON form.
    #[error("cannot write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A plot cannot be drawn.
    #[error("cannot draw {0}: {1}")]
    Plot(&'static str, String),
    /// A file cannot be written.
    #[error("cannot write {0}: {1}; choose another folder with --out")]
    Write(PathBuf, std::io::Error),
}

/// The report as JSON.
///
/// # Errors
/// Never with the figures of a run.
pub fn json(report: &Report) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(report)?)
}

/// Writes `report.json` and `report.html` into `folder`, which is made if need be.
///
/// # Errors
/// When a file cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<[PathBuf; 2], ReportError> {
    std::fs::create_dir_all(folder)
        .map_err(|error| ReportError::Write(folder.to_path_buf(), error))?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| ReportError::Write(path.clone(), error))?;
        Ok::<_, ReportError>(path)
    };
    Ok([write("report.json", json(report)? + "\n")?, write("report.html", html::page(report)?)?])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SCHEMA: &str = include_str!("../../schemas/regress.schema.json");

    fn example() -> Result<Value, ReportError> {
        Ok(serde_json::from_str(&json(&example::report())?)?)
    }

    #[test]
    fn the_report_is_what_the_schema_says() -> Result<(), Box<dyn std::error::Error>> {
        let validator = jsonschema::validator_for(&serde_json::from_str(SCHEMA)?)?;
        let errors: Vec<String> = validator
            .iter_errors(&example()?)
            .map(|error| format!("{}: {error}", error.instance_path))
            .collect();
        assert_eq!(errors, [""; 0]);
        Ok(())
    }

    /// The control: a schema that accepts anything would pass the test above.
    #[test]
    fn the_schema_is_strict() -> Result<(), Box<dyn std::error::Error>> {
        let validator = jsonschema::validator_for(&serde_json::from_str(SCHEMA)?)?;
        let wrong: [(&str, &str, Value); 7] = [
            ("", "surprise", json!(1)),
            ("/runs/0", "surprise", json!(1)),
            ("/runs/0/large", "after_mb_s", Value::Null),
            ("/runs/0", "cure", json!("hope")),
            ("/runs/0", "false_closes", json!(-1)),
            ("/paired/0", "metric", json!("luck")),
            ("/verdicts/0", "holds", json!("yes")),
        ];
        for (place, member, value) in wrong {
            let mut report = example()?;
            let object = report.pointer_mut(place).and_then(Value::as_object_mut).ok_or(place)?;
            object.insert(member.into(), value);
            assert!(!validator.is_valid(&report), "{place}/{member}");
            let object = report.pointer_mut(place).and_then(Value::as_object_mut).ok_or(place)?;
            object.remove(member);
            assert_eq!(
                validator.is_valid(&report),
                member == "surprise",
                "{place} without {member}"
            );
        }
        Ok(())
    }

    #[test]
    fn figures_survive_the_way_to_json_and_back() -> Result<(), ReportError> {
        let back: Report = serde_json::from_value(example()?)?;
        assert_eq!(serde_json::to_value(&back)?, example()?);
        Ok(())
    }
}
