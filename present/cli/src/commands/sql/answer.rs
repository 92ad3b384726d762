//! Results of queries. Rows are written as they arrive, except in text tables, whose widths depend
//! on all rows.

use tracebraid_sql::{Sink, SqlError, ValueRef};

use crate::csv;
use crate::failure::Failure;
use crate::options::ReportFormat;
use crate::output::{Output, PIECE, Written};
use crate::table::{self, Column};
use crate::terminal_text;
use crate::units::grouped;

/// Writes the results of queries.
pub(super) struct Answer {
    format: ReportFormat,
    /// Maximum number of rows of a table; 0 for all.
    limit: usize,
    output: Output,
    /// Output that has not been written yet.
    text: String,
    columns: Vec<String>,
    /// Number of results begun, and number of rows of the current result.
    answers: usize,
    rows: usize,
    /// Cells of the current table.
    cells: Vec<Vec<String>>,
    /// For each column of a table, whether all values so far are numbers.
    are_numbers: Vec<bool>,
    /// Whether there are more rows than are shown.
    is_cut: bool,
    refusal: Option<Failure>,
}

impl Answer {
    pub(super) fn new(format: ReportFormat, limit: usize, output: Output) -> Answer {
        Answer {
            format,
            limit,
            output,
            text: String::new(),
            columns: Vec::new(),
            answers: 0,
            rows: 0,
            cells: Vec::new(),
            are_numbers: Vec::new(),
            is_cut: false,
            refusal: None,
        }
    }

    /// The reason why rows were refused; `None` if the reader has closed the pipe.
    pub(super) fn refusal(self) -> Option<Failure> {
        self.refusal
    }

    /// Writes the remaining output after an error.
    pub(super) fn give_up(&mut self) {
        // The error of the query is reported in any case.
        let _ = self.write();
    }

    /// Writes a text unchanged.
    pub(super) fn put(&mut self, text: &str) -> Result<(), SqlError> {
        self.text.push_str(text);
        self.write()
    }

    fn write(&mut self) -> Result<(), SqlError> {
        let text = std::mem::take(&mut self.text);
        match self.output.write(text.as_bytes()) {
            Ok(Written::Yes) => Ok(()),
            Ok(Written::Closed) => Err(SqlError::Refused),
            Err(failure) => {
                self.refusal = Some(failure);
                Err(SqlError::Refused)
            }
        }
    }

    fn put_table(&mut self) {
        let columns = self.columns.iter().zip(&self.are_numbers);
        let columns: Vec<Column<'_>> = columns
            .map(|(name, is_number)| match is_number {
                true => Column::number(name),
                false => Column::text(name),
            })
            .collect();
        let cells = std::mem::take(&mut self.cells);
        let table = table::render(&columns, cells);
        self.text.push_str(&table);
        match (self.rows, self.is_cut) {
            (0, _) => self.text.push_str(" (no rows)\n"),
            (rows, true) => self.text.push_str(&terminal_text::paragraph(&format!(
                "(the first {} rows; --limit 0 shows all, --format csv writes them as they come)",
                grouped(rows as u64)
            ))),
            _ => {}
        }
    }
}

impl Sink for Answer {
    fn begin(&mut self, columns: &[String]) -> bool {
        self.answers += 1;
        self.rows = 0;
        self.is_cut = false;
        self.are_numbers = vec![true; columns.len()];
        self.columns = match self.format {
            ReportFormat::Json => unique(columns),
            ReportFormat::Csv => columns.to_vec(),
            ReportFormat::Table => columns.iter().map(|name| printable(name)).collect(),
        };
        if self.answers > 1 && self.format != ReportFormat::Json {
            self.text.push('\n');
        }
        match self.format {
            ReportFormat::Table => {}
            ReportFormat::Json => self.text.push('['),
            ReportFormat::Csv => csv::put(&mut self.text, &self.columns),
        }
        true
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<bool, SqlError> {
        match self.format {
            ReportFormat::Table if self.limit > 0 && self.rows >= self.limit => {
                self.is_cut = true;
                return Ok(false);
            }
            ReportFormat::Table => {
                for (are_numbers, value) in self.are_numbers.iter_mut().zip(row) {
                    *are_numbers &= !matches!(value, ValueRef::Text(_) | ValueRef::Blob(_));
                }
                self.cells.push(row.iter().map(cell).collect());
            }
            ReportFormat::Json => {
                let separator = if self.rows > 0 { ",\n " } else { "\n " };
                self.text.push_str(separator);
                let members = self.columns.iter().zip(row);
                let members =
                    members.map(|(name, value)| format!("{}: {}", quoted(name), json(value)));
                let members: Vec<String> = members.collect();
                self.text.push_str(&format!("{{{}}}", members.join(", ")));
            }
            ReportFormat::Csv => csv::put(&mut self.text, row.iter().map(plain)),
        }
        self.rows += 1;
        if self.text.len() >= PIECE {
            self.write()?;
        }
        Ok(true)
    }

    fn end(&mut self) -> Result<(), SqlError> {
        match self.format {
            ReportFormat::Table => self.put_table(),
            ReportFormat::Json => self
                .text
                .push_str(if self.rows > 0 { "\n]\n" } else { "]\n" }),
            ReportFormat::Csv => {}
        }
        self.write()
    }
}

/// Makes the names unique by numbering repeated ones.
fn unique(columns: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::with_capacity(columns.len());
    for column in columns {
        let numbered = (1..).map(|number| format!("{column}:{number}"));
        let mut names = std::iter::once(column.clone()).chain(numbered);
        found.extend(names.find(|name| !found.contains(name)));
    }
    found
}

/// A value with all of its digits.
fn plain(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => format!("{number:?}"),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// A value in a table.
fn cell(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Real(number) if number.fract() != 0.0 && (1e-4..1e15).contains(&number.abs()) => {
            format!("{number:.6}").trim_end_matches('0').to_owned()
        }
        ValueRef::Text(_) => printable(&plain(value)),
        other => plain(other),
    }
}

/// A text with control characters escaped, because a terminal would execute them.
fn printable(text: &str) -> String {
    let shown = |one: char| match one.is_control() {
        true => one.escape_default().to_string(),
        false => one.to_string(),
    };
    text.chars().map(shown).collect()
}

fn json(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        // JSON has no infinities.
        ValueRef::Real(number) if !number.is_finite() => quoted(&number.to_string()),
        ValueRef::Integer(_) | ValueRef::Real(_) => plain(value),
        ValueRef::Text(_) | ValueRef::Blob(_) => quoted(&plain(value)),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_unique() {
        let names = ["id", "id", "id:1", "x", "id"].map(str::to_owned);
        assert_eq!(unique(&names), ["id", "id:1", "id:1:1", "x", "id:2"]);
    }

    #[test]
    fn values_keep_their_digits() {
        assert_eq!(json(&ValueRef::Integer(i64::MIN)), "-9223372036854775808");
        assert_eq!(json(&ValueRef::Real(f64::INFINITY)), "\"inf\"");
        assert_eq!(
            json(&ValueRef::Text(b"a\"\x1b\xff")),
            "\"a\\\"\\u001b\u{fffd}\""
        );
        assert_eq!(plain(&ValueRef::Blob(&[0, 255])), "00ff");
        assert_eq!(plain(&ValueRef::Real(0.1 + 0.2)), "0.30000000000000004");
        assert_eq!(cell(&ValueRef::Real(1.0 / 3.0)), "0.333333");
        assert_eq!(cell(&ValueRef::Real(1e300)), "1e300");
        assert_eq!(cell(&ValueRef::Text(b"a\x1b[2J\n")), "a\\u{1b}[2J\\n");
    }
}
