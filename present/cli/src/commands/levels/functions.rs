//! The table `functions`: names of functions that were recorded by address, and `--function`.

use std::path::PathBuf;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_language::glob::Glob;
use tracebraid_profile::Addresses;
use tracebraid_tables::{Report, Section, Value};

use crate::debug_info;
use crate::failure::Failure;

/// Names the functions of a report, and removes those that match none of the patterns, if there are
/// any. Returns a note if no function is left.
///
/// # Errors
/// When the loaded modules cannot be read, or the user interrupts it.
pub(super) fn name(
    report: &mut Report,
    set: &TraceSet,
    debug_directories: &[PathBuf],
    patterns: &[Glob],
) -> Result<Option<&'static str>, Failure> {
    let mut sections = report.sections.iter_mut();
    let Some(section) = sections.find(|section| section.key == "functions") else {
        return Ok(None);
    };
    let mut columns = section.columns.iter();
    let Some(column) = columns.position(|column| column.key == "function") else {
        return Ok(None);
    };
    if section
        .rows
        .iter()
        .any(|row| address(row, column).is_some())
    {
        name_addresses(section, column, set, debug_directories)?;
    }
    let had_rows = !section.rows.is_empty();
    if !patterns.is_empty() {
        section.rows.retain(|row| match row.get(column) {
            Some(Value::Text(name)) => patterns.iter().any(|glob| glob.matches(name.as_bytes())),
            _ => false,
        });
    }
    let is_unmatched = had_rows && section.rows.is_empty();
    Ok(is_unmatched.then_some(
        "--function matches no function: `tracebraid levels --table functions` lists them",
    ))
}

/// The address that stands for the name of a function.
fn address(row: &[Value], column: usize) -> Option<u64> {
    match row.get(column) {
        Some(Value::Text(name)) => u64::from_str_radix(name.strip_prefix("0x")?, 16).ok(),
        _ => None,
    }
}

fn name_addresses(
    section: &mut Section,
    column: usize,
    set: &TraceSet,
    debug_directories: &[PathBuf],
) -> Result<(), Failure> {
    let mut symbols = debug_info::open(debug_directories);
    let how = (Options::default(), &Control::default());
    let mut addresses = Addresses::new(set, &mut symbols, &[], how).map_err(Failure::from)?;
    for row in &mut section.rows {
        let Some(address) = address(row, column) else {
            continue;
        };
        let Some((trace, pid)) = row.iter().find_map(|value| match value {
            Value::Thread(thread) => Some((thread.trace, thread.pid)),
            _ => None,
        }) else {
            continue;
        };
        let Some(trace) = set.traces.get(trace as usize) else {
            continue;
        };
        // Only buffers that LTTng shares between the processes of a user contain process ids.
        let pid = pid.and_then(|pid| u64::try_from(pid).ok());
        for program in [pid, None] {
            let found = addresses.function(trace, Timestamp(i64::MAX), program, address);
            if let (Some(found), Some(cell)) = (found, row.get_mut(column)) {
                *cell = Value::text(found);
                break;
            }
        }
    }
    Ok(())
}
