//! Single tables of a report: selected by name, or each in a file of its own.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;
use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;
use tracebraid_tables::{Forms, Report, Section, Unit};

use super::report::Format;
use super::sections;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::units::number_of;

/// Keeps only the tables with these keys; without keys, all tables.
///
/// # Errors
/// When the report has no table with a key; the message contains the keys of its tables.
pub(super) fn select(report: &mut Report, names: &[String]) -> Result<(), Failure> {
    for name in names {
        if report.section(name).is_none() {
            let keys: Vec<&str> = report.sections.iter().map(|section| section.key).collect();
            return Err(Failure::usage(format!(
                "--table {name}: no table has this name{}; known tables: {}",
                did_you_mean(&Glob::new(name), keys.iter().copied()),
                keys.join(", ")
            )));
        }
    }
    if !names.is_empty() {
        let is_chosen = |section: &Section| names.iter().any(|name| name == section.key);
        report.sections.retain(is_chosen);
        report.sections.iter_mut().for_each(show_in_all);
    }
    Ok(())
}

/// The names and titles of the tables, one per line.
pub(super) fn names(report: &Report) -> String {
    let line = |table: &Section| format!("{:24} {}", table.key, table.title);
    let lines = report.sections.iter().map(line);
    lines
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Shows a table in all formats. CSV leaves out tables that would make the tables beside them hard
/// to read; such a table gets the columns that it has in JSON.
fn show_in_all(section: &mut Section) {
    if !section.forms.contain(Forms::CSV) {
        for column in &mut section.columns {
            let is_list = !column.nested.is_empty() || column.unit == Unit::Table;
            if column.forms.contain(Forms::JSON) && !is_list {
                column.forms = column.forms.and(Forms::CSV);
            }
        }
    }
    section.forms = Forms::ALL;
}

/// Prints a note if several CSV tables follow one another, which most programs cannot read.
pub(super) fn note_several(report: &Report) {
    let sections = report.sections.iter();
    let tables = sections.filter(|section| section.forms.contain(Forms::CSV));
    let tables: Vec<&str> = tables.map(|section| section.key).collect();
    if tables.len() > 1 {
        say!(
            "note: {} tables follow one another ({}): --table NAME prints one of them, -o DIR writes \
             each to a file",
            tables.len(),
            tables.join(", ")
        );
    }
}

/// Writes each table to a file in a directory, which is created if it does not exist, and takes it
/// out of the report.
///
/// # Errors
/// When the format is for terminals, or a file cannot be written.
pub(super) fn write(directory: &Path, format: Format, report: &mut Report) -> Result<(), Failure> {
    let ending = match format {
        Format::Csv => "csv",
        Format::Json => "json",
        Format::Table | Format::Lami => {
            return Err(Failure::usage(
                "--output writes a file for each table: choose --format csv or --format json",
            ));
        }
    };
    if directory.is_file() {
        return Err(Failure::usage(format!(
            "--output {}: this is a file, but each table is written to a file in a directory",
            directory.display()
        )));
    }
    std::fs::create_dir_all(directory)
        .map_err(|error| output::cannot_be_written(directory, &error))?;
    let mut sections = std::mem::take(&mut report.sections);
    let is_data = |section: &&Section| {
        section.forms.contain(Forms::CSV) || section.forms.contain(Forms::JSON)
    };
    sections.retain(|section| is_data(&section));
    sections.iter_mut().for_each(show_in_all);
    say!(
        "writing {} to {}",
        number_of(sections.len() as u64, "table", "tables"),
        directory.display()
    );
    for section in &sections {
        let file = directory.join(format!("{}.{ending}", section.key));
        match format {
            Format::Json => write_json(&file, section)?,
            _ => {
                let text = sections::plain(&report.head, section, usize::MAX);
                output::replace(&file, text.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Writes the range and the totals of a report to `summary.json`, beside its tables in JSON.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write_summary(
    directory: &Path,
    format: Format,
    report: &Report,
) -> Result<(), Failure> {
    match format {
        Format::Json => write_json(&directory.join("summary.json"), report),
        _ => Ok(()),
    }
}

fn write_json(file: &Path, value: &impl Serialize) -> Result<(), Failure> {
    output::replace_with(file, |out| {
        serde_json::to_writer_pretty(&mut *out, value)
            .map_err(|error| output::cannot_be_written(file, &error.into()))?;
        out.write_all(b"\n")
            .map_err(|error| output::cannot_be_written(file, &error))
    })
}
