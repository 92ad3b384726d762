//! `tracebraid executions list`: executions as a table.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use tracebraid_executions::database::{Column as Stored, Database, Source, Table, Thread};
use tracebraid_executions::{Named, Values, named};

use super::{open, rows, table};
use crate::csv;
use crate::failure::Failure;
use crate::options::{ReportFormat, ZoneArgs};
use crate::output::{Output, say};
use crate::table::{self as tables, Cell, Column};
use crate::time;
use crate::units::{self, duration, grouped, number_of};

/// List executions, the longest first
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions list requests.db
  tracebraid executions list requests.db \\
      --where 'duration > 50ms && cause == \"disk\"'
  tracebraid executions list requests.db --where 'ctx.block-device > 1ms' \\
      --sort begin --top 0
  tracebraid executions list requests.db --columns timer,switches --format csv
  tracebraid executions list requests.db --columns thread,cause --sort cause")]
pub(super) struct ListArgs {
    /// The database
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// Kind of executions, where there are several
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Select executions by metrics, captured values, label, host, thread, and ctx.FRAME, the time
    /// in frames of a name
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Sort by a metric, descending, or by a text (captured text, thread, label, host), ascending;
    /// `begin` sorts by time
    #[arg(long, value_name = "NAME", default_value = "duration")]
    sort: String,
    /// Limit the table to N rows; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Columns, in order: metrics, texts (captured texts, thread, tid, label, host, trace) and
    /// ctx.FRAME; default in JSON and CSV: all metrics and captured values
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    zone: ZoneArgs,
}

pub(super) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let database = open(&args.file)?;
    let (_, table) = table(&database, args.kind.as_deref())?;
    let mut chosen = rows("--where", args.condition.as_deref(), &database, &table)?;
    if let (true, Some(condition)) = (chosen.is_empty(), &args.condition) {
        say!(
            "warning: none of {} matches --where '{condition}'",
            number_of(table.len() as u64, "execution", "executions")
        );
    }
    sort(&args.sort, &database, &table, &mut chosen)?;
    let more = chosen.len().saturating_sub(args.top);
    if args.top > 0 {
        chosen.truncate(args.top);
    }
    let shown = Shown {
        database: &database,
        table: &table,
        columns: columns(args, &database, &table, &chosen)?,
        is_asked: !args.columns.is_empty(),
        zone: args.zone.zone(),
    };
    let mut output = Output::open(None)?;
    match args.format {
        ReportFormat::Table => {
            let mut text = shown.text(&chosen);
            if args.top > 0 && more > 0 {
                text.push_str(&format!(
                    "{} more; --top 0 shows all\n",
                    grouped(more as u64)
                ));
            }
            output.write(text.as_bytes())?
        }
        ReportFormat::Json => output.write_json(&shown.json(&chosen))?,
        ReportFormat::Csv => output.write(shown.csv(&chosen).as_bytes())?,
    };
    Ok(ExitCode::SUCCESS)
}

fn column<'t>(
    option: &str,
    name: &str,
    database: &'t Database,
    table: &'t Table,
) -> Result<Named<'t>, Failure> {
    named(name.trim(), database, table)
        .map_err(|error| Failure::usage(format!("{option}: {error}")))
}

fn sort(by: &str, database: &Database, table: &Table, chosen: &mut [usize]) -> Result<(), Failure> {
    if matches!(by, "begin" | "begin_ns") {
        chosen.sort_by_key(|&row| table.begins.get(row).copied());
        return Ok(());
    }
    let values = column("--sort", by, database, table)?.values;
    chosen.sort_by(|&one, &other| values.order(one, other));
    Ok(())
}

/// Columns in addition to those that identify an execution.
fn columns<'t>(
    args: &ListArgs,
    database: &'t Database,
    table: &'t Table,
    chosen: &[usize],
) -> Result<Vec<Named<'t>>, Failure> {
    if !args.columns.is_empty() {
        let asked = args.columns.iter();
        let mut asked = asked
            .map(|name| column("--columns", name, database, table))
            .collect::<Result<Vec<_>, _>>()?;
        // These are always shown.
        asked.retain(|of| !matches!(of.name.as_str(), "id" | "begin_ns"));
        return Ok(asked);
    }
    let waits = longest_waits(table, chosen);
    let is_shown = |of: &Stored| match args.format {
        ReportFormat::Table => {
            let is_usual = matches!(of.name.as_str(), "duration_ns" | "running_ns");
            of.is_value || is_usual || waits.contains(&of.name.as_str())
        }
        ReportFormat::Json | ReportFormat::Csv => true,
    };
    let texts = || table.texts.iter().map(|of| &of.column);
    let figures = table.figures.iter().map(|of| &of.column);
    let figures = figures.filter(|of| is_shown(of));
    // A value that is a text in some executions is shown as a text.
    let figures = figures.filter(|of| !texts().any(|text| text.name == of.name));
    let all = figures.chain(texts());
    let all = all.filter_map(|of| {
        Some(Named {
            name: of.name.clone(),
            values: Values::of_column(table, &of.name)?,
        })
    });
    Ok(all.collect())
}

/// Wait reasons that the text table shows.
const MOST_WAITS: usize = 2;

/// Metrics of the wait reasons in which these executions spent most time together.
fn longest_waits<'t>(table: &'t Table, chosen: &[usize]) -> Vec<&'t str> {
    let is_wait = |of: &Stored| {
        of.unit == "ns" && !of.is_value && !matches!(of.name.as_str(), "duration_ns" | "running_ns")
    };
    let figures = table.figures.iter().filter(|of| is_wait(&of.column));
    let mut sums: Vec<(f64, &str)> = figures
        .map(|of| {
            let values = chosen.iter().filter_map(|&row| of.values.get(row));
            let sum = values.filter(|value| value.is_finite()).sum();
            (sum, of.column.name.as_str())
        })
        .filter(|(sum, _)| *sum > 0.0)
        .collect();
    sums.sort_by(|a, b| b.0.total_cmp(&a.0));
    let longest = sums.into_iter().take(MOST_WAITS);
    longest.map(|(_, name)| name).collect()
}

/// Fields of all executions in JSON and CSV.
const FIXED: [&str; 6] = ["id", "begin_ns", "label", "host", "thread", "tid"];

struct Shown<'d> {
    database: &'d Database,
    table: &'d Table,
    columns: Vec<Named<'d>>,
    /// Whether the user chose the columns.
    is_asked: bool,
    zone: TimeZone,
}

impl Shown<'_> {
    /// Whether the user chose this column.
    fn asks(&self, name: &str) -> bool {
        self.is_asked && self.columns.iter().any(|of| of.name == name)
    }

    /// The columns that are not in [`FIXED`].
    fn others(&self) -> impl Iterator<Item = &Named<'_>> {
        self.columns
            .iter()
            .filter(|of| !FIXED.contains(&of.name.as_str()))
    }

    fn thread(&self, row: usize) -> Option<&Thread> {
        self.database.thread_of(self.table, row)
    }

    fn source(&self, row: usize) -> Option<&Source> {
        self.database.source_of(self.table, row)
    }

    fn text(&self, chosen: &[usize]) -> String {
        let has_thread = !self.asks("thread");
        let labels: BTreeSet<&str> = self.database.sources.iter().map(|of| &*of.label).collect();
        let has_label = labels.len() > 1 && !self.asks("label");
        let titles: Vec<String> = self.columns.iter().map(|of| title(&of.name)).collect();
        let mut columns = vec![Column::number("id"), Column::whole("begin")];
        let titled = self.columns.iter().zip(&titles);
        columns.extend(titled.map(|(of, title)| match of.values.has_texts() {
            true => Column::text(&of.name),
            false => Column::number(title).left_out(rank(of)),
        }));
        if has_thread {
            columns.push(Column::text("thread").left_out(3));
        }
        if has_label {
            columns.push(Column::text("label"));
        }
        let durations = self.table.figure("duration_ns").map(|of| &of.values);
        let duration = |row: usize| durations?.get(row).copied();
        let longest = chosen.iter().filter_map(|&row| duration(row));
        let longest = longest.fold(0.0, f64::max);
        let place = self.columns.iter().position(|of| of.name == "duration_ns");
        let place = place.map_or(usize::MAX, |place| place + 2);
        let row = |&row: &usize| {
            let table = self.table;
            let begin = table.begins.get(row).copied().unwrap_or(0);
            let mut cells = vec![
                table.ids.get(row).map_or_else(String::new, u32::to_string),
                time::clock(begin, &self.zone),
            ];
            cells.extend(self.columns.iter().map(|of| cell(of, row)));
            if has_thread {
                let thread = self.thread(row);
                cells.push(thread.map_or_else(String::new, |of| {
                    format!("{} ({})", of.name.as_deref().unwrap_or("?"), of.tid)
                }));
            }
            if has_label {
                cells.push(
                    self.source(row)
                        .map_or_else(String::new, |of| of.label.clone()),
                );
            }
            Cell::row(cells, place, duration(row) == Some(longest))
        };
        tables::render(&columns, chosen.iter().map(row))
    }

    fn json(&self, chosen: &[usize]) -> Vec<Value> {
        let execution = |&row: &usize| {
            let mut object = Map::new();
            object.insert("id".to_owned(), json!(self.table.ids.get(row)));
            object.insert("begin_ns".to_owned(), json!(self.table.begins.get(row)));
            object.insert(
                "label".to_owned(),
                json!(self.source(row).map(|of| &of.label)),
            );
            object.insert(
                "host".to_owned(),
                json!(self.source(row).and_then(|of| of.host.as_ref())),
            );
            object.insert(
                "thread".to_owned(),
                json!(self.thread(row).and_then(|of| of.name.as_ref())),
            );
            object.insert("tid".to_owned(), json!(self.thread(row).map(|of| of.tid)));
            for of in self.others() {
                object.insert(of.name.clone(), value(of, row));
            }
            Value::Object(object)
        };
        chosen.iter().map(execution).collect()
    }

    fn csv(&self, chosen: &[usize]) -> String {
        let others = self.others().map(|of| of.name.as_str());
        let head: Vec<&str> = FIXED.into_iter().chain(others).collect();
        let mut rows = csv::Rows::new(&head);
        for &row in chosen {
            let source = self.source(row);
            let thread = self.thread(row);
            let first = [
                self.table
                    .ids
                    .get(row)
                    .map_or_else(String::new, u32::to_string),
                self.table
                    .begins
                    .get(row)
                    .map_or_else(String::new, i64::to_string),
                source.map_or_else(String::new, |of| of.label.clone()),
                source.and_then(|of| of.host.clone()).unwrap_or_default(),
                thread.and_then(|of| of.name.clone()).unwrap_or_default(),
                thread.map_or_else(String::new, |of| of.tid.to_string()),
            ];
            let others = self.others().map(|of| plain(of, row));
            rows.add(first.into_iter().chain(others));
        }
        rows.finish()
    }
}

/// The name of a metric without its unit, which is shown with its values.
pub(in crate::commands) fn title(name: &str) -> String {
    name.strip_suffix("_ns").unwrap_or(name).replace('_', " ")
}

/// Order in which columns are left out of narrow tables: times in wait reasons first; durations and
/// captured values never.
fn rank(of: &Named<'_>) -> u8 {
    match (of.name.as_str(), of.values.unit()) {
        ("duration_ns", _) => 0,
        ("running_ns", _) => 2,
        (_, "ns") => 1,
        _ => 0,
    }
}

/// A value in CSV; empty if it is unknown.
fn plain(of: &Named<'_>, row: usize) -> String {
    match value(of, row) {
        Value::Null => String::new(),
        Value::String(text) => text,
        number => number.to_string(),
    }
}

/// A value in a table.
fn cell(of: &Named<'_>, row: usize) -> String {
    match (of.values.text(row), of.values.number(row)) {
        (Some(text), _) => text.to_owned(),
        // A thread id is an identifier and gets no separators.
        (None, Some(tid)) if of.name == "tid" => tid.to_string(),
        // Amounts of 0 are empty cells; a captured number may well be 0.
        (None, Some(0.0)) if matches!(of.values.unit(), "ns" | "bytes") => String::new(),
        (None, Some(number)) => amount(number, of.values.unit()),
        (None, None) => String::new(),
    }
}

/// A value in JSON.
fn value(of: &Named<'_>, row: usize) -> Value {
    match (of.values.text(row), of.values.number(row)) {
        (Some(text), _) => json!(text),
        (None, of) => of.map_or(Value::Null, number),
    }
}

/// A number with its unit.
pub(in crate::commands) fn amount(value: f64, unit: &str) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    match unit {
        _ if value.is_nan() => "-".to_owned(),
        _ if value.is_infinite() => format!("{sign}inf"),
        "ns" => format!("{sign}{}", duration(size.round() as u64)),
        "bytes" => format!("{sign}{}", units::bytes(size.round() as u64)),
        _ if size.fract() == 0.0 && size < 1e15 => format!("{sign}{}", grouped(size as u64)),
        // No table has room for all digits.
        _ if size >= 1e15 => format!("{value:.3e}"),
        _ => format!("{value:.2}"),
    }
}

/// A number in JSON: whole numbers as integers, and infinity as a string, which JSON lacks as a
/// number.
pub(super) fn number(value: f64) -> Value {
    match value {
        value if value.is_nan() => Value::Null,
        value if value.is_infinite() => json!(value.to_string()),
        value if value.fract() == 0.0 && value.abs() < 9e15 => json!(value as i64),
        value => json!(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        let found = [0.5, -7.0, 1e300, f64::NEG_INFINITY, f64::NAN].map(|value| amount(value, ""));
        assert_eq!(found, ["0.50", "-7", "1.000e300", "-inf", "-"]);
        assert_eq!(
            [amount(-1.5e6, "ns"), amount(2048.0, "bytes")],
            ["-1.500 ms", "2.00 KiB"]
        );
    }
}
