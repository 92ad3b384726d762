//! `tracebraid history report`: time that attributes had each value.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use tracebraid_history::{Attribute, History, Report};

use super::range::RangeArgs;
use super::select::{attributes, path, warn_of_unknown};
use super::unreadable;
use crate::csv;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{self, Column};
use crate::units::{duration, grouped, percent};

/// Show how long attributes had each value, and averages of numbers
///
/// Shares are of the time range, or with --together of the time of all attributes. Sums and
/// measured numbers with more than 16 values are shown by their minimum, time-weighted average and
/// maximum; identifiers, such as thread ids and interrupt numbers, always by value.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid history report TRACE.history 'cpu/*/state'
  tracebraid history report TRACE.history 'disk/*' --from +1s --to +1s
  # all threads' time, by what they did
  tracebraid history report TRACE.history 'thread/*/state' --together")]
pub(crate) struct ReportArgs {
    /// The history
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Paths of attributes, or patterns of paths
    #[arg(value_name = "ATTRIBUTE", required = true)]
    attributes: Vec<String>,
    /// Add up the times of all attributes, by value; averages stay separate
    #[arg(long)]
    together: bool,
    #[command(flatten)]
    range: RangeArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables
    Table,
    /// JSON; times in nanoseconds since the origin
    Json,
    /// Comma-separated values
    Csv,
}

/// The report on an attribute, or on several attributes together (`None`).
type Row = (Option<Attribute>, Report);

pub(super) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let history = History::open(&args.file).map_err(|error| unreadable(&error))?;
    let range = args.range.of(&history)?;
    let mut rows: Vec<Row> = Vec::new();
    for attribute in attributes(&history, &args.attributes, range)? {
        let report = history.report(attribute, range);
        rows.push((Some(attribute), report.map_err(|error| unreadable(&error))?));
    }
    let is_empty = |(_, report): &Row| report.values.is_empty() && report.numbers.is_none();
    if rows.iter().all(is_empty) {
        warn_of_unknown(&history, &args.attributes)?;
    }
    if args.together {
        rows = together(rows);
    }
    let known = |(_, report): &Row| {
        report
            .values
            .values()
            .map(|times| times.total_ns)
            .sum::<u64>()
    };
    let shown = Shown {
        history: &history,
        whole: match args.together {
            true => rows.iter().map(known).sum(),
            false => range.0.abs_diff(range.1),
        },
    };
    let mut output = Output::open(None)?;
    match args.format {
        Format::Table => output.write(shown.table(&rows).as_bytes())?,
        Format::Json => output.write_json(&shown.json(&rows, range))?,
        Format::Csv => output.write(shown.csv(&rows).as_bytes())?,
    };
    Ok(ExitCode::SUCCESS)
}

/// Joins the values of all attributes in one row; averages stay separate.
fn together(rows: Vec<Row>) -> Vec<Row> {
    let mut all = Report::default();
    let mut apart = Vec::new();
    for (attribute, report) in rows {
        match report.numbers {
            Some(_) => apart.push((attribute, report)),
            None => all.join(report),
        }
    }
    [(None, all)].into_iter().chain(apart).collect()
}

struct Shown<'h> {
    history: &'h History,
    /// Denominator of shares in nanoseconds: the range, or the time of all attributes together.
    whole: u64,
}

impl Shown<'_> {
    fn path(&self, attribute: Option<Attribute>) -> String {
        attribute.map_or_else(
            || "(together)".to_owned(),
            |attribute| path(self.history, attribute),
        )
    }

    fn table(&self, rows: &[Row]) -> String {
        let values = self.values(rows);
        let numbers = self.numbers(rows);
        let parts = [values, numbers];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => "No values in this time range.\n".to_owned(),
            false => parts.join("\n"),
        }
    }

    fn values(&self, rows: &[Row]) -> Option<String> {
        let columns = [
            Column::whole("Attribute"),
            Column::whole("Value"),
            Column::number("Time"),
            Column::number("Of range"),
            Column::number("Count").left_out(1),
            Column::number("Longest").left_out(2),
        ];
        let mut cells = Vec::new();
        for (attribute, report) in rows {
            let mut values: Vec<_> = report.values.iter().collect();
            values.sort_by_key(|(_, times)| std::cmp::Reverse(times.total_ns));
            cells.extend(values.into_iter().map(|(value, times)| {
                vec![
                    self.path(*attribute),
                    value.to_string(),
                    duration(times.total_ns),
                    percent(times.total_ns, self.whole),
                    grouped(times.times),
                    duration(times.longest_ns),
                ]
            }));
        }
        (!cells.is_empty()).then(|| table::render(&columns, cells))
    }

    fn numbers(&self, rows: &[Row]) -> Option<String> {
        let columns = [
            Column::whole("Attribute"),
            Column::number("Min"),
            Column::number("Average"),
            Column::number("Max"),
            Column::number("First").left_out(2),
            Column::number("Last").left_out(3),
            Column::number("Changes").left_out(1),
        ];
        let cells: Vec<Vec<String>> = rows
            .iter()
            .filter_map(|(attribute, report)| {
                let numbers = report.numbers?;
                Some(vec![
                    self.path(*attribute),
                    numbers.min.to_string(),
                    format!("{:.2}", numbers.average),
                    numbers.max.to_string(),
                    numbers.first.to_string(),
                    numbers.last.to_string(),
                    grouped(numbers.changes),
                ])
            })
            .collect();
        (!cells.is_empty()).then(|| table::render(&columns, cells))
    }

    fn json(&self, rows: &[Row], (from, to): (i64, i64)) -> serde_json::Value {
        let row = |(attribute, report): &Row| {
            let values = report.values.iter().map(|(value, times)| {
                json!({
                    "value": value,
                    "total_ns": times.total_ns,
                    "times": times.times,
                    "longest_ns": times.longest_ns,
                })
            });
            json!({
                "attribute": attribute.map(|attribute| path(self.history, attribute)),
                "values": values.collect::<Vec<_>>(),
                "numbers": report.numbers,
            })
        };
        let attributes: Vec<_> = rows.iter().map(row).collect();
        json!({"from_ns": from, "to_ns": to, "attributes": attributes})
    }

    fn csv(&self, rows: &[Row]) -> String {
        let columns = [
            "attribute",
            "value",
            "total_ns",
            "times",
            "longest_ns",
            "min",
            "average",
            "max",
            "first",
            "last",
        ];
        let mut csv = csv::Rows::new(&columns);
        for (attribute, report) in rows {
            let path = self.path(*attribute);
            for (value, times) in &report.values {
                let cells = [times.total_ns, times.times, times.longest_ns]
                    .map(|number| number.to_string());
                let nothing = vec![String::new(); 5];
                csv.add(
                    [
                        vec![path.clone(), value.to_string()],
                        cells.to_vec(),
                        nothing,
                    ]
                    .concat(),
                );
            }
            if let Some(numbers) = report.numbers {
                let cells = [numbers.min, numbers.max, numbers.first, numbers.last]
                    .map(|number| number.to_string());
                let [min, max, first, last] = cells;
                let times = [
                    numbers.known_ns.to_string(),
                    (numbers.changes + 1).to_string(),
                    String::new(),
                ];
                let cells = [min, numbers.average.to_string(), max, first, last];
                csv.add([vec![path, String::new()], times.to_vec(), cells.to_vec()].concat());
            }
        }
        csv.finish()
    }
}
