//! CSV and JSON tables of commands whose text is not rendered from a [`Report`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use tracebraid_follow::Head;
use tracebraid_tables::{Column, Report, Section, Unit, Value};

use super::report::Format;
use super::{sections, tables};
use crate::failure::Failure;
use crate::options::ReportFormat;
use crate::output::{Output, say};

/// Options that select tables.
#[derive(Args, Debug)]
pub(crate) struct TablesArgs {
    /// Print only these tables, in CSV or JSON; `list` prints the names. By default, CSV contains
    /// only the first table
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    table: Vec<String>,
    /// Write each table to a file of its own, DIR/NAME.csv or DIR/NAME.json
    #[arg(long, short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
}

impl TablesArgs {
    /// True if the output is tables, not the command's own text or JSON: CSV always is.
    pub(super) fn are_wanted(&self, format: impl Into<Format>) -> bool {
        format.into() == Format::Csv || !self.table.is_empty() || self.output.is_some()
    }

    /// Prints or writes the selected tables; without a selection, prints the first one.
    ///
    /// # Errors
    /// When a table does not exist, the format is for terminals, or the output cannot be written.
    pub(super) fn print(
        &self,
        format: impl Into<Format>,
        head: &Head,
        sections: Vec<Section>,
    ) -> Result<(), Failure> {
        let mut report = Report {
            head: head.clone(),
            sections,
            ..Report::default()
        };
        if self.table == ["list"] {
            Output::print(&tables::names(&report))?;
            return Ok(());
        }
        tables::select(&mut report, &self.table)?;
        let format = format.into();
        if let Some(directory) = &self.output {
            return tables::write(directory, format, &mut report);
        }
        if self.table.is_empty() {
            note_others(&report.sections);
            report.sections.truncate(1);
        }
        let mut output = Output::open(None)?;
        match (format, report.sections.as_slice()) {
            (Format::Csv, sections) => {
                tables::note_several(&report);
                let tables = sections.iter();
                let tables = tables.map(|table| sections::plain(head, table, usize::MAX));
                output.write(tables.collect::<Vec<_>>().join("\n").as_bytes())?;
            }
            (Format::Json, [table]) => {
                output.write_json(table)?;
            }
            (Format::Json, sections) => {
                let all: BTreeMap<_, _> = sections.iter().map(|table| (table.key, table)).collect();
                output.write_json(&all)?;
            }
            (Format::Table | Format::Lami, _) => {
                return Err(Failure::usage(
                    "--table selects tables for programs: choose --format csv or --format json",
                ));
            }
        }
        Ok(())
    }
}

/// Lists the tables that CSV does not contain.
fn note_others(sections: &[Section]) {
    if let Some((first, others @ [_, ..])) = sections.split_first() {
        let others: Vec<&str> = others.iter().map(|table| table.key).collect();
        say!(
            "note: CSV contains only the table {}; --table NAME selects others ({}); -o DIR writes \
             each table to a file",
            first.key,
            others.join(", ")
        );
    }
}

impl From<ReportFormat> for Format {
    fn from(format: ReportFormat) -> Format {
        match format {
            ReportFormat::Table => Format::Table,
            ReportFormat::Json => Format::Json,
            ReportFormat::Csv => Format::Csv,
        }
    }
}

/// A table whose columns have keys but no headings.
pub(super) fn table(
    key: &'static str,
    columns: &[(&'static str, Unit)],
    rows: Vec<Vec<Value>>,
) -> Section {
    let columns = columns
        .iter()
        .map(|&(key, unit)| Column::new(key, "", unit).optional());
    Section::new(key, "", columns.collect(), rows)
}
