//! `tracebraid executions export`: executions as files for other tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use tracebraid_executions::database::{Database, Table};
use tracebraid_executions::{ContextId, FrameKind};

use super::list::number;
use super::{open, rows, table};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::spare;
use crate::terminal_text::safe;

/// Write executions as folded stacks for flame graphs, or as JSON
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions export requests.db --where 'duration > 50ms' \\
      | flamegraph.pl --countname ns > slow.svg
  tracebraid executions export requests.db --running -o cpu.folded
  tracebraid executions export requests.db --format json -o requests.json
  tracebraid view requests.db --export requests.html")]
pub(super) struct ExportArgs {
    /// The database
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// Kind of executions, where there are several
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Select executions by a condition, as in `executions list`
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write only the CPU time of the executions' threads, without waits (folded stacks only)
    #[arg(long)]
    running: bool,
    /// Write to FILE instead of standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Folded stacks: nanoseconds of an average execution in each calling context
    #[default]
    Folded,
    /// JSON: calling contexts, and the times of each execution in them
    Json,
}

pub(super) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    if args.running && args.format == Format::Json {
        return Err(Failure::usage("--running applies to --format folded only"));
    }
    let database = open(&args.file)?;
    if let Some(file) = &args.output {
        spare::check_read(file, std::slice::from_ref(&args.file))?;
    }
    let (_, table) = table(&database, args.kind.as_deref())?;
    let chosen = rows("--where", args.condition.as_deref(), &database, &table)?;
    let text = match args.format {
        Format::Folded => folded(&database, &table, &chosen, args.running),
        Format::Json => format!("{:#}\n", as_json(&database, &table, &chosen)),
    };
    match &args.output {
        Some(file) => output::replace(file, text.as_bytes())?,
        None => {
            Output::print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn folded(database: &Database, table: &Table, chosen: &[usize], only_running: bool) -> String {
    let is_of_wait = |context: ContextId| {
        let frames = database.union.contexts.frames(context);
        let is_own = |kind| matches!(kind, FrameKind::Function | FrameKind::Call);
        frames.iter().any(|frame| !is_own(frame.kind))
    };
    let mut sums: BTreeMap<ContextId, u128> = BTreeMap::new();
    for &row in chosen {
        for &(context, time) in table.rows.of(row) {
            *sums.entry(context).or_default() += u128::from(time);
        }
    }
    let count = chosen.len().max(1) as u128;
    let line = |(context, sum): (ContextId, u128)| {
        let frames = database.union.words(context).into_iter();
        // Names of frames must not contain the characters that separate frames and lines.
        let mut stack: Vec<String> = frames
            .map(|frame| safe(&frame.replace(';', ":").replace(['\n', '\r'], " ")).into_owned())
            .collect();
        if stack.is_empty() {
            stack.push("[running]".to_owned());
        }
        format!("{} {}\n", stack.join(";"), sum / count)
    };
    let sums = sums.into_iter();
    let sums = sums.filter(|(context, _)| !(only_running && is_of_wait(*context)));
    sums.map(line).collect()
}

fn as_json(database: &Database, table: &Table, chosen: &[usize]) -> serde_json::Value {
    let union = &database.union;
    let context = |id: u32| {
        let parts = union.contexts.parts(ContextId(id));
        parts.map(|(around, frame)| {
            json!({"id": id, "around": around.0, "kind": frame.kind.word(), "name": union.names.text(frame.name)})
        })
    };
    let execution = |&row: &usize| {
        let times = table
            .rows
            .of(row)
            .iter()
            .map(|(context, time)| json!([context.0, time]));
        let figures = table.figures.iter().filter_map(|of| {
            let value = of.values.get(row).filter(|value| !value.is_nan())?;
            Some((of.column.name.clone(), number(*value)))
        });
        let texts = table.texts.iter().filter_map(|of| {
            let text = of.at(row)?;
            Some((of.column.name.clone(), json!(text)))
        });
        let source = database.source_of(table, row);
        let thread = database.thread_of(table, row);
        json!({
            "id": table.ids.get(row), "begin_ns": table.begins.get(row),
            "label": source.map(|of| &of.label), "host": source.and_then(|of| of.host.as_ref()),
            "trace": source.map(|of| &of.path),
            "thread": thread.and_then(|of| of.name.as_ref()), "tid": thread.map(|of| of.tid),
            "metrics": figures.collect::<serde_json::Map<_, _>>(),
            "texts": texts.collect::<serde_json::Map<_, _>>(),
            "times": times.collect::<Vec<_>>(),
        })
    };
    json!({
        "contexts": (1..union.contexts.count() as u32).filter_map(context).collect::<Vec<_>>(),
        "executions": chosen.iter().map(execution).collect::<Vec<_>>(),
    })
}
