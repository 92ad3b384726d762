//! `tracebraid probes`: event classes of programs that are being recorded.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tracebraid_session::classes::{ClassState, Control, switch_session, traces};
use tracebraid_session::control::{self, Request};

use crate::failure::Failure;
use crate::output::Output;
use crate::table::{self, Column};
use crate::terminal_text;

/// List the probes of recorded programs; switch them on and off
///
/// A change also holds for programs that start later in the same recording.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid probes my-session
  tracebraid probes my-session --disable 'shop:*' --enable shop:order")]
pub(crate) struct ProbesArgs {
    /// Name of a background session, or directory of a recording
    session: PathBuf,
    /// Start recording event classes that match (patterns with * and ?)
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    enable: Vec<String>,
    /// Stop recording event classes that match; --enable takes precedence
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    disable: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Output formats.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Table
    Table,
    /// JSON
    Json,
}

/// An event class of a process.
#[derive(Debug, Serialize)]
struct Row {
    pid: u32,
    /// Directory of the process's trace.
    trace: String,
    class: String,
    is_on: bool,
}

pub(super) fn run(args: &ProbesArgs) -> Result<ExitCode, Failure> {
    let directory = directory(&args.session)?;
    let failed =
        |error: std::io::Error| Failure::output(format!("{}: {error}", directory.display()));
    let wanted = args.disable.iter().map(|pattern| (pattern, false));
    for (pattern, on) in wanted.chain(args.enable.iter().map(|pattern| (pattern, true))) {
        switch_session(&directory, pattern, on).map_err(failed)?;
    }
    let mut rows = Vec::new();
    for trace in traces(&directory).map_err(failed)? {
        // A process that has ended in the meantime has no event classes.
        if let Ok(control) = Control::open(&trace)
            && control.is_running()
        {
            rows.extend(classes(&control).map_err(failed)?);
        }
    }
    let mut output = Output::open(None)?;
    match args.format {
        Format::Table => output.write(text(&rows).as_bytes())?,
        Format::Json => output.write_json(&rows)?,
    };
    Ok(ExitCode::SUCCESS)
}

/// Directory of a recording: the path itself, or the directory of the session with this name.
fn directory(session: &Path) -> Result<PathBuf, Failure> {
    if session.join("probe.conf").is_file() {
        return Ok(session.to_owned());
    }
    let name = session.to_string_lossy();
    match control::ask(&name, &Request::Status) {
        Ok(status) => Ok(status.directory),
        Err(error) => Err(Failure::nothing_readable(format!(
            "{name} is neither a recording of programs with probes nor a session: {error}"
        ))),
    }
}

fn classes(control: &Control) -> std::io::Result<Vec<Row>> {
    let trace = control.directory().file_name().unwrap_or_default();
    let trace = trace.to_string_lossy().into_owned();
    let row = |class: ClassState| Row {
        pid: control.pid(),
        trace: trace.clone(),
        class: class.name,
        is_on: class.enabled,
    };
    Ok(control.classes()?.into_iter().map(row).collect())
}

fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return terminal_text::paragraph("no program with probes is running in this recording");
    }
    let columns = [
        Column::number("PID"),
        Column::text("Trace"),
        Column::text("Event class"),
        Column::text("Recorded"),
    ];
    let row = |row: &Row| {
        let is_on = if row.is_on { "yes" } else { "no" };
        vec![
            row.pid.to_string(),
            row.trace.clone(),
            row.class.clone(),
            is_on.to_owned(),
        ]
    };
    table::render(&columns, rows.iter().map(row))
}
