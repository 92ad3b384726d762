//! `tracebraid executions info`: the contents of a database.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tracebraid_executions::database::{Database, ExecutionKind, Source, Table};
use tracebraid_follow::{Head, paths_apart};

use super::{info_data, open, unreadable};
use crate::commands::data_tables::TablesArgs;
use crate::failure::Failure;
use crate::options::ReportFormat;
use crate::output::Output;
use crate::table::{self, Column};
use crate::terminal_text;
use crate::units::{bytes, duration, grouped};

/// Show the contents of a database of executions
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions info requests.db
  tracebraid executions info requests.db --format json")]
pub(super) struct InfoArgs {
    /// The database
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    tables: TablesArgs,
}

/// A kind with its durations at 0, 50, 90, 99 and 100 %.
pub(super) struct Durations<'d> {
    pub(super) kind: &'d ExecutionKind,
    pub(super) quantiles: Vec<u64>,
}

const SHARES: [f64; 5] = [0.0, 0.5, 0.9, 0.99, 1.0];

pub(super) fn run(args: &InfoArgs) -> Result<ExitCode, Failure> {
    let database = open(&args.file)?;
    let mut kinds = Vec::new();
    for kind in &database.kinds {
        let table = database
            .table_without_times(kind)
            .map_err(|error| unreadable(&error))?;
        kinds.push(Durations {
            kind,
            quantiles: quantiles(&table),
        });
    }
    match args.format {
        format if args.tables.are_wanted(format) => {
            let tables = info_data::tables(&database, &kinds);
            args.tables.print(format, &Head::default(), tables)?;
        }
        ReportFormat::Json => {
            Output::open(None)?.write_json(&as_json(&database, &kinds))?;
        }
        _ => {
            Output::open(None)?.write(text(&database, &kinds).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn quantiles(table: &Table) -> Vec<u64> {
    let mut durations: Vec<f64> = table
        .figure("duration_ns")
        .map(|of| of.values.clone())
        .unwrap_or_default();
    durations.retain(|duration| !duration.is_nan());
    durations.sort_by(f64::total_cmp);
    let most = durations.len().saturating_sub(1) as f64;
    let at = |share: f64| {
        durations
            .get((most * share).round() as usize)
            .map(|&duration| duration as u64)
    };
    SHARES.into_iter().filter_map(at).collect()
}

fn text(database: &Database, kinds: &[Durations<'_>]) -> String {
    let columns = [
        Column::text("kind"),
        Column::number("executions"),
        Column::number("shortest").left_out(1),
        Column::number("median"),
        Column::number("90 %").left_out(2),
        Column::number("99 %").left_out(3),
        Column::number("longest"),
    ];
    let row = |of: &Durations<'_>| {
        let quantiles = (0..SHARES.len()).map(|at| {
            of.quantiles
                .get(at)
                .map_or_else(String::new, |&ns| duration(ns))
        });
        [of.kind.name.clone(), grouped(of.kind.executions)]
            .into_iter()
            .chain(quantiles)
            .collect()
    };
    let mut text = table::render(&columns, kinds.iter().map(row));
    let columns = [
        Column::whole("label"),
        Column::text("host"),
        Column::path("trace"),
    ];
    let sources = database.sources.iter();
    let sources = sources.map(|of| vec![of.label.clone(), host(database, of), of.path.clone()]);
    text.push('\n');
    text.push_str(&table::render(&columns, sources));
    let values: Vec<&str> = database
        .columns
        .iter()
        .filter(|of| of.is_value)
        .map(|of| of.name.as_str())
        .collect();
    let size = std::fs::metadata(database.path()).map_or(0, |about| about.len());
    text.push_str(&format!(
        "\n{} calling contexts, {} metrics{}; {}\n",
        grouped(database.union.contexts.count() as u64 - 1),
        database.columns.iter().filter(|of| !of.is_value).count(),
        match values.as_slice() {
            [] => String::new(),
            values => format!(", values: {}", values.join(", ")),
        },
        bytes(size),
    ));
    for (old, new) in &database.renames {
        let line = format!("{old} is treated as {new}");
        text.push_str(&format!("{}\n", terminal_text::safe(&line)));
    }
    text.push_str(&definitions(&database.kinds));
    text
}

/// The host of a trace. Traces of the same host also show the parts in which their paths differ: a
/// narrow table has no column for paths.
fn host(database: &Database, source: &Source) -> String {
    let Some(name) = source.host.clone() else {
        return String::new();
    };
    let of_host = database
        .sources
        .iter()
        .filter(|other| other.host == source.host);
    let same: Vec<&Path> = of_host.map(|other| Path::new(&other.path)).collect();
    let place = same
        .iter()
        .position(|path| *path == Path::new(&source.path));
    let apart = paths_apart(&same);
    let apart = place
        .and_then(|place| apart.get(place))
        .filter(|apart| !apart.is_empty());
    match apart {
        Some(apart) => format!("{name}/{apart}"),
        None => name,
    }
}

/// The definitions of kinds as they were given, so that they can be used again. Several kinds may
/// share one text.
fn definitions(kinds: &[ExecutionKind]) -> String {
    let mut text = String::new();
    let mut told: Vec<&str> = Vec::new();
    let defined = |text: &mut String, whose: &str, definition: &str| {
        text.push_str(&format!("\n{}:\n", terminal_text::safe(whose)));
        for line in definition.lines().filter(|line| !line.trim().is_empty()) {
            text.push_str(&format!("  {}\n", terminal_text::safe(line)));
        }
    };
    for kind in kinds {
        if told.contains(&kind.definition.as_str()) {
            continue;
        }
        told.push(&kind.definition);
        let same = kinds
            .iter()
            .filter(|other| other.definition == kind.definition);
        let names: Vec<&str> = same.map(|other| other.name.as_str()).collect();
        let whose = format!("{}, as defined", names.join(", "));
        defined(&mut text, &whose, &kind.definition);
    }
    for kind in kinds {
        for (label, definition) in &kind.otherwise {
            let whose = format!("{} of {label}, defined differently", kind.name);
            defined(&mut text, &whose, definition);
        }
    }
    text
}

fn as_json(database: &Database, kinds: &[Durations<'_>]) -> serde_json::Value {
    let kind = |of: &Durations<'_>| {
        let otherwise = of.kind.otherwise.iter();
        let otherwise =
            otherwise.map(|(label, definition)| json!({"label": label, "definition": definition}));
        json!({
            "name": of.kind.name, "definition": of.kind.definition, "executions": of.kind.executions,
            "defined_otherwise": otherwise.collect::<Vec<_>>(),
            "duration_ns": SHARES.iter().zip(&of.quantiles)
                .map(|(share, ns)| (format!("{}%", share * 100.0), json!(ns))).collect::<serde_json::Map<_, _>>(),
        })
    };
    let sources = database.sources.iter();
    let sources = sources.map(|of| json!({"label": of.label, "path": of.path, "host": of.host}));
    let columns = database.columns.iter();
    let columns = columns.map(|of| {
        json!({"name": of.name, "unit": of.unit, "description": of.description, "is_value": of.is_value})
    });
    json!({
        "kinds": kinds.iter().map(kind).collect::<Vec<_>>(),
        "sources": sources.collect::<Vec<_>>(),
        "columns": columns.collect::<Vec<_>>(),
        "contexts": database.union.contexts.count() - 1,
        "renames": database.renames.iter().map(|(old, new)| json!({"old": old, "new": new})).collect::<Vec<_>>(),
    })
}
