//! Results of queries as tables, JSON, CSV and Arrow.

use clap::ValueEnum;
use jiff::tz::TimeZone;
use serde_json::json;
use tracebraid_history::{Attribute, AttributeKind, History, Since, Subject, Value};

use super::select::path;
use crate::csv;
use crate::failure::Failure;
use crate::table::{self, Column};
use crate::time::clock;

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Tables
    Table,
    /// JSON; times in nanoseconds since the origin
    Json,
    /// Comma-separated values
    Csv,
    /// Apache Arrow file, for pandas, Polars or DuckDB: time, attribute, number, text
    #[cfg(feature = "arrow")]
    Arrow,
}

/// The result of a query.
pub(super) enum Answer {
    /// Values of attributes, with times unless all are of one time.
    Rows(Vec<Row>),
    /// For each attribute, its values at equally spaced times.
    Samples {
        from: i64,
        to: i64,
        attributes: Vec<Attribute>,
        rows: Vec<Vec<Value>>,
    },
}

/// A value of an attribute.
pub(super) struct Row {
    pub(super) attribute: Attribute,
    /// Time from which the attribute has the value.
    pub(super) time: Option<i64>,
    /// Time of the query, if all rows have the same.
    pub(super) moment: Option<i64>,
    pub(super) value: Value,
}

impl Row {
    pub(super) fn new(attribute: Attribute, since: Since) -> Row {
        Row {
            attribute,
            time: Some(since.time),
            moment: None,
            value: since.value,
        }
    }
}

/// Formats the result of a query; `nothing` is the text of an empty table.
pub(super) fn show(
    history: &History,
    format: Format,
    (zone, nothing): (&TimeZone, &str),
    answer: Answer,
) -> Result<Vec<u8>, Failure> {
    let shown = Shown {
        history,
        zone,
        nothing,
    };
    Ok(match (answer, format) {
        #[cfg(feature = "arrow")]
        (Answer::Rows(rows), Format::Arrow) => shown.arrow(&rows)?,
        (Answer::Rows(rows), Format::Table) => shown.table(&rows)?.into_bytes(),
        (Answer::Rows(rows), Format::Json) => json_bytes(&shown.json(&rows)),
        (Answer::Rows(rows), Format::Csv) => shown.csv(&rows).into_bytes(),
        (
            Answer::Samples {
                from,
                to,
                attributes,
                rows,
            },
            Format::Json,
        ) => {
            let rows = attributes.iter().zip(rows);
            let rows = rows
                .map(|(&attribute, values)| json!({"attribute": shown.path(attribute), "values": values}));
            let rows: Vec<_> = rows.collect();
            json_bytes(&json!({"from_ns": from, "to_ns": to, "attributes": rows}))
        }
        (
            Answer::Samples {
                from,
                to,
                attributes,
                rows,
            },
            format,
        ) => {
            let rows = shown.samples((from, to), &attributes, rows);
            match format {
                Format::Csv => shown.csv(&rows).into_bytes(),
                #[cfg(feature = "arrow")]
                Format::Arrow => shown.arrow(&rows)?,
                _ => shown.table(&rows)?.into_bytes(),
            }
        }
    })
}

fn json_bytes(value: &serde_json::Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

struct Shown<'h> {
    history: &'h History,
    zone: &'h TimeZone,
    /// The text of an empty table.
    nothing: &'h str,
}

impl Shown<'_> {
    fn path(&self, attribute: Attribute) -> String {
        path(self.history, attribute)
    }

    /// The name of the thread that a row concerns, that runs on the CPU, or that owns the
    /// descriptor; empty for other attributes.
    fn name(&self, row: &Row) -> Result<String, Failure> {
        let time = row.time.or(row.moment).unwrap_or(self.history.meta().end);
        let Some(name) = name_of(row) else {
            return Ok(String::new());
        };
        let name = self
            .history
            .value(name, time)
            .map_err(|error| super::unreadable(&error))?;
        Ok(if name == Value::Null {
            String::new()
        } else {
            name.to_string()
        })
    }

    fn table(&self, rows: &[Row]) -> Result<String, Failure> {
        if rows.is_empty() {
            return Ok(format!("{}\n", self.nothing));
        }
        let mut columns = vec![
            Column::whole("Attribute"),
            Column::whole("Value"),
            Column::text("Thread").left_out(1),
        ];
        let has_times = rows.iter().any(|row| row.time.is_some());
        if has_times {
            columns.insert(0, Column::whole("Time"));
        }
        let mut cells = Vec::new();
        for row in rows {
            let time = row
                .time
                .map(|time| clock(time, self.zone))
                .filter(|_| has_times);
            let rest = [
                self.path(row.attribute),
                row.value.to_string(),
                self.name(row)?,
            ];
            cells.push(time.into_iter().chain(rest).collect());
        }
        Ok(table::render(&columns, cells))
    }

    fn json(&self, rows: &[Row]) -> serde_json::Value {
        let row = |row: &Row| match row.time {
            Some(time) => {
                json!({"time_ns": time, "attribute": self.path(row.attribute), "value": row.value})
            }
            None => json!({"attribute": self.path(row.attribute), "value": row.value}),
        };
        json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
    }

    fn csv(&self, rows: &[Row]) -> String {
        let mut csv = csv::Rows::new(&["time_ns", "attribute", "value"]);
        for row in rows {
            let time = row.time.map(|time| time.to_string()).unwrap_or_default();
            let value = match &row.value {
                Value::Null => String::new(),
                value => value.to_string(),
            };
            csv.add([time, self.path(row.attribute), value]);
        }
        csv.finish()
    }

    #[cfg(feature = "arrow")]
    fn arrow(&self, rows: &[Row]) -> Result<Vec<u8>, Failure> {
        let mut paths: std::collections::HashMap<Attribute, std::sync::Arc<str>> =
            Default::default();
        let row = |row: &Row| tracebraid_export::arrow::Row {
            time: row.time,
            attribute: paths
                .entry(row.attribute)
                .or_insert_with(|| self.path(row.attribute).into())
                .clone(),
            value: row.value.clone(),
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        let mut bytes = Vec::new();
        let written = tracebraid_export::arrow::write(&rows, &mut bytes);
        written.map_err(|error| Failure::output(error.to_string()))?;
        Ok(bytes)
    }

    /// Samples as rows, attribute by attribute.
    fn samples(
        &self,
        (from, to): (i64, i64),
        attributes: &[Attribute],
        rows: Vec<Vec<Value>>,
    ) -> Vec<Row> {
        let of = |(&attribute, values): (&Attribute, Vec<Value>)| {
            let count = values.len().max(1) as i128;
            let span = i128::from(to) - i128::from(from);
            let time =
                move |at: usize| i64::try_from(i128::from(from) + span * at as i128 / count).ok();
            let row = move |(at, value)| Row {
                attribute,
                time: time(at),
                moment: None,
                value,
            };
            values.into_iter().enumerate().map(row).collect::<Vec<_>>()
        };
        attributes.iter().zip(rows).flat_map(of).collect()
    }
}

/// The attribute with the name of the thread that a row concerns, if any.
fn name_of(row: &Row) -> Option<Attribute> {
    let attribute = row.attribute;
    let tid = match (attribute.kind(), &row.value) {
        (AttributeKind::ThreadName, _) => return None,
        // The idle threads of all CPUs share id 0, which has no name.
        (AttributeKind::CpuThread, Value::Number(tid)) => {
            u32::try_from(*tid).ok().filter(|&tid| tid != 0)?
        }
        (kind, _) if kind.subject() == Subject::Thread => attribute.id(),
        (kind, _) if kind.subject() == Subject::File => attribute.descriptor().0,
        _ => return None,
    };
    Some(Attribute::new(
        AttributeKind::ThreadName,
        attribute.host(),
        tid,
    ))
}
