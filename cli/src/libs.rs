//! `sslsweep libs`: every libcrypto of a process, its line, what its threads need, and blind spots.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;
use sslsweep::probe::survey::{BlindSpot, Line, Process, ProcessError, Survey, survey};

/// Width of the table where the output is no terminal.
const WIDTH: u16 = 140;

#[derive(Args)]
#[command(after_help = "\
Give the PID of the process that you care about, such as `sslsweep libs $(pgrep -o nginx)`. It must be \
yours, or run this as root. Without a PID the command looks at itself, which shows the form of the \
answer and little else.

A blind spot is an OpenSSL that is linked into another library and exports nothing: neither sslsweep \
nor anybody else can reach its error queues. The JSON form is described by cli/schemas/libs.schema.json.")]
pub struct LibsArguments {
    /// The process to look at; without it, the command itself
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

/// Why `sslsweep libs` has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LibsError {
    /// The process cannot be looked at.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The answer cannot be written.
    #[error("the answer cannot be written: {0}")]
    Output(#[from] io::Error),
}

/// The JSON form of the answer.
#[derive(Serialize)]
struct Report<'a> {
    pid: u32,
    program: Cow<'a, str>,
    libraries: Vec<LibraryReport<'a>>,
    blind_spots: Vec<BlindSpotReport<'a>>,
}

#[derive(Serialize)]
struct LibraryReport<'a> {
    path: Cow<'a, str>,
    deleted: bool,
    is_program: bool,
    line: Line,
    version: Option<&'a str>,
    needs: &'static str,
    used_by: Vec<Cow<'a, str>>,
}

#[derive(Serialize)]
struct BlindSpotReport<'a> {
    #[serde(flatten)]
    spot: &'a BlindSpot,
    sentence: String,
}

impl<'a> From<&'a Survey> for Report<'a> {
    fn from(survey: &'a Survey) -> Self {
        let libraries = survey.libraries.iter().map(|found| LibraryReport {
            path: found.path.to_string_lossy(),
            deleted: found.deleted,
            is_program: found.is_program,
            line: found.line,
            version: found.version.as_deref(),
            needs: found.line.needs(),
            used_by: found.used_by.iter().map(|user| user.to_string_lossy()).collect(),
        });
        let spots = survey.blind_spots.iter();
        Self {
            pid: survey.pid,
            program: survey.program.to_string_lossy(),
            libraries: libraries.collect(),
            blind_spots: spots
                .map(|spot| BlindSpotReport { spot, sentence: spot.to_string() })
                .collect(),
        }
    }
}

/// Looks at the process and prints what it has.
///
/// # Errors
/// The process is gone, not ours or has no memory; the output is closed.
pub fn run(arguments: LibsArguments) -> Result<ExitCode, LibsError> {
    let process = arguments.pid.map_or_else(Process::this, Process::other);
    let survey = survey(&process)?;
    let text = if arguments.json {
        let mut json =
            serde_json::to_string_pretty(&Report::from(&survey)).map_err(io::Error::from)?;
        json.push('\n');
        json
    } else {
        text(&survey)
    };
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // The reader has seen enough (`sslsweep libs | head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A text of another process, such as a path, that must not steer the terminal.
fn harmless(text: impl ToString) -> String {
    let text = text.to_string();
    if !text.contains(char::is_control) {
        return text;
    }
    let escaped = text.chars().map(|char| {
        if char.is_control() { char.escape_default().to_string() } else { char.to_string() }
    });
    escaped.collect()
}

/// The answer for people.
fn text(survey: &Survey) -> String {
    let mut text = format!("process {}: {}\n", survey.pid, harmless(survey.program.display()));
    let (certain, uncertain): (Vec<_>, Vec<_>) =
        survey.blind_spots.iter().partition(|spot| spot.is_certain());
    if survey.libraries.is_empty() {
        text.push_str(
            "No libcrypto that can be swept is loaded. A process may load one later: look again once it \
             has used TLS.\n",
        );
    } else {
        let _ = writeln!(text, "\n{}\n", table(survey));
        users(&mut text, survey);
        if survey.libraries.len() > 1 {
            let _ = writeln!(
                text,
                "{} libcryptos in one process: each has its own error queues, and each is swept apart.",
                survey.libraries.len()
            );
        }
    }
    for (title, spots) in [("Blind spots", certain), ("Not looked at", uncertain)] {
        if !spots.is_empty() {
            let _ = writeln!(text, "\n{title}:");
            for spot in spots {
                let _ = writeln!(text, "  {}", harmless(spot));
            }
        }
    }
    text
}

fn table(survey: &Survey) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["library", "line", "version", "what its threads need"]);
    if !table.is_tty() {
        table.set_width(WIDTH);
    }
    for found in &survey.libraries {
        let mut library = harmless(found.path.display());
        if found.is_program {
            library.push_str(" (the program itself)");
        }
        if found.deleted {
            library.push_str(" (deleted or replaced on disk)");
        }
        let version = found.version.as_deref().unwrap_or("not found");
        table.add_row([library.as_str(), &found.line.to_string(), version, found.line.needs()]);
    }
    // A path or a version that is broken over two lines can be neither searched for nor copied.
    for column in table.column_iter_mut().take(3) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

/// Who uses which library, by file names.
fn users(text: &mut String, survey: &Survey) {
    for found in survey.libraries.iter().filter(|found| !found.used_by.is_empty()) {
        let name = |path: &Path| harmless(path.file_name().unwrap_or(path.as_os_str()).display());
        let users: Vec<_> = found.used_by.iter().map(|path| name(path)).collect();
        let _ = writeln!(text, "{} is used by {}", name(&found.path), users.join(", "));
    }
}
