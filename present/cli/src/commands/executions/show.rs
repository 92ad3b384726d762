//! `tracebraid executions show`: one execution with its critical path.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tracebraid_executions::database::{Database, PathStep, Recorded};

use super::{open, unreadable};
use crate::csv;
use crate::failure::Failure;
use crate::options::{ReportFormat, ZoneArgs};
use crate::output::Output;
use crate::table::{self, Column};
use crate::terminal_text;
use crate::time;
use crate::units::{duration, grouped};

/// Show one execution: its position in the trace and its critical path
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions show requests.db 17
  tracebraid executions show requests.db 17 --top 0 --format csv")]
pub(super) struct ShowArgs {
    /// The database
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// Id of the execution, as `executions list` prints it
    #[arg(value_name = "ID")]
    id: u32,
    /// Show only the N longest segments, in the order of time; 0 for all
    #[arg(long, value_name = "N", default_value_t = 30)]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    zone: ZoneArgs,
}

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let database = open(&args.file)?;
    let found = database
        .execution(args.id)
        .map_err(|error| unreadable(&error))?;
    let Some(found) = found else {
        return Err(Failure::usage(format!(
            "{}: there is no execution {}",
            args.file.display(),
            args.id
        )));
    };
    let mut output = Output::open(None)?;
    match args.format {
        ReportFormat::Table => output.write(text(args, &database, &found).as_bytes())?,
        ReportFormat::Json => output.write_json(&as_json(&database, &found))?,
        ReportFormat::Csv => output.write(as_csv(&database, &found).as_bytes())?,
    };
    Ok(ExitCode::SUCCESS)
}

/// Steps with their offsets from the beginning of the execution, in nanoseconds.
fn placed(found: &Recorded) -> Vec<(u64, PathStep)> {
    let mut at = 0u64;
    let place = |step: &PathStep| {
        let begin = at;
        at = at.saturating_add(step.duration);
        (begin, *step)
    };
    found.steps.iter().map(place).collect()
}

fn thread(database: &Database, step: &PathStep) -> String {
    let thread = step
        .thread
        .and_then(|thread| database.threads.get(thread as usize));
    thread.map_or_else(
        || "?".to_owned(),
        |of| format!("{} ({})", of.name.as_deref().unwrap_or("?"), of.tid),
    )
}

fn text(args: &ShowArgs, database: &Database, found: &Recorded) -> String {
    let zone = args.zone.zone();
    let mut text = terminal_text::paragraph(&format!(
        "execution {}: {} long, from {} to {}",
        args.id,
        duration(found.duration),
        time::date(found.begin, &zone),
        time::date(found.end(), &zone),
    ));
    // The command must stay on one line, so that it can be copied.
    match found.command(database) {
        Some(command) => text.push_str(&format!("show it in the trace: {}\n\n", terminal_text::safe(&command))),
        None => text.push_str(&terminal_text::paragraph(
            "its thread is unknown, and so is its critical path: no scheduling event (sched_switch) shows which thread was \
             running when it ended",
        )),
    }
    if found.steps.is_empty() {
        text.push_str(&terminal_text::paragraph(
            "where its time went is unknown: this requires scheduling events (sched_switch) during the execution",
        ));
        return text;
    }
    let mut steps = placed(found);
    if args.top > 0 && steps.len() > args.top {
        steps.sort_by_key(|(_, step)| std::cmp::Reverse(step.duration));
        let left = steps.split_off(args.top);
        steps.sort_by_key(|(begin, _)| *begin);
        let time: u64 = left.iter().map(|(_, step)| step.duration).sum();
        let count = grouped(left.len() as u64);
        text.push_str(&terminal_text::paragraph(&format!(
            "the longest segments; {count} more take {} in all, --top 0 shows them",
            duration(time)
        )));
        text.push('\n');
    }
    let is_narrow = terminal_text::terminal_width().is_some_and(|width| width < NARROW);
    text.push_str(&if is_narrow {
        below(database, &steps)
    } else {
        beside(database, &steps)
    });
    text
}

/// In terminals with fewer columns, contexts are printed below the numbers: beside them is no room
/// for frames.
const NARROW: usize = 80;

/// A step's context, the outermost frame first.
fn frames(database: &Database, step: &PathStep) -> Vec<String> {
    let frames = database.union.words(step.context);
    if frames.is_empty() {
        vec!["runs".to_owned()]
    } else {
        frames
    }
}

/// Steps, one per line.
fn beside(database: &Database, steps: &[(u64, PathStep)]) -> String {
    let columns = [
        Column::number("from"),
        Column::number("duration"),
        Column::text("thread"),
        Column::text("context"),
    ];
    let row = |(begin, step): &(u64, PathStep)| {
        vec![
            format!("+{}", duration(*begin)),
            duration(step.duration),
            thread(database, step),
            frames(database, step).join(" > "),
        ]
    };
    table::render(&columns, steps.iter().map(row))
}

/// Steps, each with its context below it.
fn below(database: &Database, steps: &[(u64, PathStep)]) -> String {
    let columns = [
        Column::number("from"),
        Column::number("duration"),
        Column::text("thread"),
    ];
    let row = |(begin, step): &(u64, PathStep)| {
        vec![
            format!("+{}", duration(*begin)),
            duration(step.duration),
            thread(database, step),
        ]
    };
    let numbers = table::render(&columns, steps.iter().map(row));
    let width = terminal_text::terminal_width();
    let mut text = String::new();
    let mut steps = steps.iter();
    for (place, line) in numbers.lines().enumerate() {
        text.push_str(line);
        text.push('\n');
        // After the headings and the line below them.
        if let Some((_, step)) = (place > 1).then(|| steps.next()).flatten() {
            text.push_str(&terminal_text::way(&frames(database, step), width));
        }
    }
    text
}

fn as_json(database: &Database, found: &Recorded) -> serde_json::Value {
    let step = |(begin, step): (u64, PathStep)| {
        json!({
            "begin_ns": begin, "duration_ns": step.duration, "thread": thread(database, &step),
            "context": database.union.words(step.context),
        })
    };
    json!({
        "begin_ns": found.begin, "end_ns": found.end(), "command": found.command(database),
        "steps": placed(found).into_iter().map(step).collect::<Vec<_>>(),
    })
}

fn as_csv(database: &Database, found: &Recorded) -> String {
    let mut rows = csv::Rows::new(&["begin_ns", "duration_ns", "thread", "context"]);
    for (begin, step) in placed(found) {
        let context = database.union.words(step.context).join(";");
        rows.add([
            begin.to_string(),
            step.duration.to_string(),
            thread(database, &step),
            context,
        ]);
    }
    rows.finish()
}
