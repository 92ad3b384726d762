//! `tracebraid executions list`: executions one by one.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use tracebraid_executions::database::{Database, Figures, Source, Table, Texts, Thread};

use super::{Format, open, rows, table};
use crate::csv;
use crate::failure::Failure;
use crate::options;
use crate::output::Output;
use crate::table::{self as tables, Column, duration, grouped};
use crate::time;

/// Lists executions, the longest first.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions list requests.db
  tracebraid executions list requests.db --where 'duration > 50ms && cause == \"disk\"'
  tracebraid executions list requests.db --where 'ctx.block-device > 1ms' --sort begin --top 0
  tracebraid executions list requests.db --columns running,timer,switches --format csv")]
pub(super) struct ListArgs {
    /// The database
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// Of this kind, where there are several
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only those of which this holds: figures, values, label, host, thread, and ctx.FRAME, the time in frames of that name
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// By this figure, the greatest first; `begin` for the order of time
    #[arg(long, value_name = "FIGURE", default_value = "duration")]
    sort: String,
    /// Rows at most; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// These figures (in JSON and CSV all, if not given)
    #[arg(long, value_name = "FIGURE", value_delimiter = ',')]
    columns: Vec<String>,
    /// How to show them
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Times are shown in UTC, not in local time
    #[arg(long, alias = "clock-gmt")]
    gmt: bool,
}

/// Runs it.
pub(super) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let database = open(&args.file)?;
    let (_, table) = table(&database, args.kind.as_deref())?;
    let mut chosen = rows("--where", args.condition.as_deref(), &database, &table)?;
    sort(&args.sort, &table, &mut chosen)?;
    let more = chosen.len().saturating_sub(args.top);
    if args.top > 0 {
        chosen.truncate(args.top);
    }
    let shown = Shown {
        database: &database,
        table: &table,
        figures: figures(args, &table)?,
        zone: options::zone(args.gmt),
    };
    let mut output = Output::open(None)?;
    match args.format {
        Format::Table => {
            let mut text = shown.text(&chosen);
            if args.top > 0 && more > 0 {
                text.push_str(&format!("{} more; --top 0 shows all\n", grouped(more as u64)));
            }
            output.write(text.as_bytes())?
        }
        Format::Json => output.write_json(&shown.json(&chosen))?,
        Format::Csv => output.write(shown.csv(&chosen).as_bytes())?,
    };
    Ok(ExitCode::SUCCESS)
}

fn figure<'t>(table: &'t Table, name: &str) -> Result<&'t Figures, Failure> {
    let known = || {
        let names: Vec<&str> = table.figures.iter().map(|of| of.column.name.as_str()).collect();
        names.join(", ")
    };
    let found = table.figure(name);
    found.ok_or_else(|| Failure::usage(format!("executions have no figure {name}, but {}", known())))
}

fn sort(by: &str, table: &Table, chosen: &mut [usize]) -> Result<(), Failure> {
    if by == "begin" {
        chosen.sort_by_key(|&row| table.begins.get(row).copied());
        return Ok(());
    }
    let values = &figure(table, by)?.values;
    // What is not known comes last.
    let value = |row: usize| {
        values
            .get(row)
            .copied()
            .filter(|value| !value.is_nan())
            .unwrap_or(f64::NEG_INFINITY)
    };
    chosen.sort_by(|&one, &other| value(other).total_cmp(&value(one)));
    Ok(())
}

/// What is shown besides what an execution is.
fn figures<'t>(args: &ListArgs, table: &'t Table) -> Result<Vec<&'t Figures>, Failure> {
    if !args.columns.is_empty() {
        return args.columns.iter().map(|name| figure(table, name)).collect();
    }
    let is_shown = |of: &&Figures| match args.format {
        Format::Table => {
            of.column.is_value || matches!(of.column.name.as_str(), "duration_ns" | "running_ns")
        }
        Format::Json | Format::Csv => true,
    };
    // What is a text of some executions is shown among the texts.
    let is_alone = |of: &&Figures| {
        !table
            .texts
            .iter()
            .any(|texts| texts.column.name == of.column.name)
    };
    Ok(table.figures.iter().filter(is_shown).filter(is_alone).collect())
}

struct Shown<'d> {
    database: &'d Database,
    table: &'d Table,
    figures: Vec<&'d Figures>,
    zone: TimeZone,
}

impl Shown<'_> {
    fn thread(&self, row: usize) -> Option<&Thread> {
        self.database.thread_of(self.table, row)
    }

    fn source(&self, row: usize) -> Option<&Source> {
        self.database.source_of(self.table, row)
    }

    /// The texts, and numbers as `number` shows them where values are both.
    fn texts<'s>(
        &'s self,
        row: usize,
        number: fn(&Figures, usize) -> String,
    ) -> impl Iterator<Item = String> + 's {
        let text = move |of: &Texts| match (of.at(row), self.beside_texts(&of.column.name)) {
            (None, Some(figures)) => number(figures, row),
            (text, _) => text.unwrap_or_default().to_owned(),
        };
        self.table.texts.iter().map(text)
    }

    /// The numbers of those executions that have no text of that name.
    fn beside_texts(&self, name: &str) -> Option<&Figures> {
        self.table.figures.iter().find(|of| of.column.name == name)
    }

    fn text(&self, chosen: &[usize]) -> String {
        let sources = self.database.sources.len() > 1;
        let titles: Vec<String> = self.figures.iter().map(|of| title(&of.column.name)).collect();
        let mut columns = vec![Column::number("id"), Column::whole("begin")];
        columns.extend(titles.iter().map(|title| Column::number(title)));
        columns.extend(self.table.texts.iter().map(|of| Column::text(&of.column.name)));
        columns.push(Column::text("thread"));
        if sources {
            columns.push(Column::text("label"));
        }
        let row = |&row: &usize| {
            let table = self.table;
            let begin = table.begins.get(row).copied().unwrap_or(0);
            let mut cells = vec![
                table.ids.get(row).map_or_else(String::new, u32::to_string),
                time::clock(begin, &self.zone),
            ];
            cells.extend(self.figures.iter().map(|of| cell(of, row)));
            cells.extend(self.texts(row, cell));
            let thread = self.thread(row);
            cells.push(thread.map_or_else(String::new, |of| {
                format!("{} ({})", of.name.as_deref().unwrap_or("?"), of.tid)
            }));
            if sources {
                cells.push(self.source(row).map_or_else(String::new, |of| of.label.clone()));
            }
            cells
        };
        tables::render(&columns, chosen.iter().map(row))
    }

    fn json(&self, chosen: &[usize]) -> Vec<Value> {
        let execution = |&row: &usize| {
            let mut object = Map::new();
            object.insert("id".to_owned(), json!(self.table.ids.get(row)));
            object.insert("begin_ns".to_owned(), json!(self.table.begins.get(row)));
            object.insert("label".to_owned(), json!(self.source(row).map(|of| &of.label)));
            object.insert(
                "host".to_owned(),
                json!(self.source(row).and_then(|of| of.host.as_ref())),
            );
            object.insert(
                "thread".to_owned(),
                json!(self.thread(row).and_then(|of| of.name.as_ref())),
            );
            object.insert("tid".to_owned(), json!(self.thread(row).map(|of| of.tid)));
            for of in &self.figures {
                object.insert(of.column.name.clone(), number_at(of, row));
            }
            for of in &self.table.texts {
                let name = &of.column.name;
                let value = match (of.at(row), self.beside_texts(name)) {
                    (None, Some(figures)) => number_at(figures, row),
                    (text, _) => json!(text),
                };
                object.insert(name.clone(), value);
            }
            Value::Object(object)
        };
        chosen.iter().map(execution).collect()
    }

    fn csv(&self, chosen: &[usize]) -> String {
        let figures = self.figures.iter().map(|of| of.column.name.as_str());
        let texts = self.table.texts.iter().map(|of| of.column.name.as_str());
        let head: Vec<&str> = ["id", "begin_ns", "label", "host", "thread", "tid"]
            .into_iter()
            .chain(figures)
            .chain(texts)
            .collect();
        let mut rows = csv::Rows::new(&head);
        for &row in chosen {
            let source = self.source(row);
            let thread = self.thread(row);
            let first = [
                self.table.ids.get(row).map_or_else(String::new, u32::to_string),
                self.table
                    .begins
                    .get(row)
                    .map_or_else(String::new, i64::to_string),
                source.map_or_else(String::new, |of| of.label.clone()),
                source.and_then(|of| of.host.clone()).unwrap_or_default(),
                thread.and_then(|of| of.name.clone()).unwrap_or_default(),
                thread.map_or_else(String::new, |of| of.tid.to_string()),
            ];
            let figures = self.figures.iter().map(|of| plain(of, row));
            let texts = self.texts(row, plain);
            rows.add(first.into_iter().chain(figures).chain(texts));
        }
        rows.finish()
    }
}

/// The name of a figure without its unit, which its values have.
pub(in crate::commands) fn title(name: &str) -> String {
    name.strip_suffix("_ns").unwrap_or(name).replace('_', " ")
}

/// A number as it is read by programs; nothing, if it is not known.
fn plain(of: &Figures, row: usize) -> String {
    match number_at(of, row) {
        Value::Null => String::new(),
        Value::String(text) => text,
        number => number.to_string(),
    }
}

/// A number as it is read by people.
fn cell(of: &Figures, row: usize) -> String {
    match of.values.get(row) {
        Some(value) if !value.is_nan() => amount(*value, &of.column.unit),
        _ => String::new(),
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
        "bytes" => format!("{sign}{}", tables::bytes(size.round() as u64)),
        _ if size.fract() == 0.0 && size < 1e15 => format!("{sign}{}", grouped(size as u64)),
        // No table has room for all digits.
        _ if size >= 1e15 => format!("{value:.3e}"),
        _ => format!("{value:.2}"),
    }
}

fn number_at(of: &Figures, row: usize) -> Value {
    of.values.get(row).map_or(Value::Null, |value| number(*value))
}

/// A whole number as one; what is infinite has no form in JSON but a text.
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
