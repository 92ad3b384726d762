//! `tracebraid executions show`: one execution with its critical path.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tracebraid_executions::database::{Database, PathStep, Recorded, Thread};

use super::{open, unreadable};
use crate::commands::contexts;
use crate::csv;
use crate::failure::Failure;
use crate::options::{ReportFormat, ZoneArgs};
use crate::output::Output;
use crate::table::{self, Cell, Column};
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

fn thread_of<'d>(database: &'d Database, step: &PathStep) -> Option<&'d Thread> {
    step.thread
        .and_then(|thread| database.threads.get(thread as usize))
}

fn thread(database: &Database, step: &PathStep) -> String {
    // A command of a device has no thread while it waits for the device or executes.
    thread_of(database, step).map_or_else(String::new, |of| {
        format!("{} ({})", of.name.as_deref().unwrap_or("?"), of.tid)
    })
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
        None if !found.steps.is_empty() => text.push_str(&terminal_text::paragraph(
            "its critical path in threads is unknown: no scheduling event (sched_switch) shows when they ran",
        )),
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
    text.push_str(&steps_text(database, &steps));
    text
}

/// A step's context, the outermost frame first.
fn frames(database: &Database, step: &PathStep) -> Vec<String> {
    let frames = database.union.words(step.context);
    if frames.is_empty() {
        vec!["runs".to_owned()]
    } else {
        frames
    }
}

/// Steps, with the contexts below them if not all contexts fit beside them.
fn steps_text(database: &Database, steps: &[(u64, PathStep)]) -> String {
    let numbers = [
        Column::number("from"),
        Column::number("duration"),
        Column::text("thread"),
    ];
    let longest = steps.iter().map(|(_, step)| step.duration).max();
    let row = |(begin, step): &(u64, PathStep)| {
        let texts = vec![
            format!("+{}", duration(*begin)),
            duration(step.duration),
            thread(database, step),
        ];
        Cell::row(texts, 1, Some(step.duration) == longest)
    };
    let contexts: Vec<Vec<String>> = steps
        .iter()
        .map(|(_, step)| frames(database, step))
        .collect();
    let beside = || {
        let columns = [&numbers[..], &[Column::whole("context")]].concat();
        let rows = steps.iter().zip(&contexts).map(|(step, frames)| {
            let context = Cell::from(frames.join(" > "));
            row(step).into_iter().chain([context]).collect()
        });
        table::render(&columns, rows)
    };
    let widest = contexts
        .iter()
        .map(|frames| frames.join(" > ").chars().count());
    let needed = NUMBERS + widest.max().unwrap_or(0);
    match terminal_text::terminal_width() {
        Some(width) if needed > width => {
            contexts::below(&table::render(&numbers, steps.iter().map(row)), &contexts)
        }
        _ => beside(),
    }
}

/// Usual width of the columns of a step that precede its context.
const NUMBERS: usize = 48;

fn as_json(database: &Database, found: &Recorded) -> serde_json::Value {
    let step = |(begin, step): (u64, PathStep)| {
        json!({
            "begin_ns": begin, "duration_ns": step.duration,
            "thread": thread_of(database, &step).and_then(|of| of.name.as_ref()),
            "tid": thread_of(database, &step).map(|of| of.tid),
            "context": database.union.words(step.context),
        })
    };
    json!({
        "begin_ns": found.begin, "end_ns": found.end(), "command": found.command(database),
        "steps": placed(found).into_iter().map(step).collect::<Vec<_>>(),
    })
}

fn as_csv(database: &Database, found: &Recorded) -> String {
    let mut rows = csv::Rows::new(&["begin_ns", "duration_ns", "thread", "tid", "context"]);
    for (begin, step) in placed(found) {
        let context = database.union.words(step.context).join(";");
        let thread = thread_of(database, &step);
        rows.add([
            begin.to_string(),
            step.duration.to_string(),
            thread.and_then(|of| of.name.clone()).unwrap_or_default(),
            thread.map_or_else(String::new, |of| of.tid.to_string()),
            context,
        ]);
    }
    rows.finish()
}
