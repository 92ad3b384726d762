//! perf.data: the output of `perf record`.
//!
//! Implemented here instead of with a library: the available libraries (linux-perf-data 0.13,
//! linux-perf-event-reader 0.10) allocate as much as a section claims to contain, index with a size
//! from the file, buffer rounds and decompressed data without a bound, and confuse the values of
//! single counters with those of groups.

mod attr;
mod classes;
mod features;
mod header;
mod order;
mod reader;
mod sample;
mod side;
mod threads;
mod writer;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use tracebraid_ctf::write::trace::Session;

use crate::error::ImportError;
use crate::input::Input;
use crate::summary::Summary;
use header::Header;
use reader::Reader;

/// True if a file with these first bytes is perf.data.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    header::MAGIC.iter().any(|magic| head.starts_with(*magic))
}

/// Imports the file into the session.
pub(crate) fn import(
    input: Input,
    session: &Session,
    stop: &AtomicBool,
) -> Result<Summary, ImportError> {
    let mut summary = Summary {
        format: "perf.data".to_owned(),
        ..Summary::default()
    };
    let (header, records) = Header::read(&input, &mut summary)?;
    if header.is_directory {
        let what = "this is one file of several that perf record --threads wrote; such recordings are not supported";
        return Err(ImportError::Unsupported(what.to_owned()));
    }
    let mut reader = Reader::new(input, header, session, summary);
    reader.read(records, stop)?;
    let (header, mut summary) = reader.finish()?;
    say_lacks(&header, &mut summary);
    Ok(summary)
}

fn say_lacks(header: &Header, summary: &mut Summary) {
    summary.find_lacks();
    let tracepoints = header.attrs.iter().any(|attr| attr.is_tracepoint());
    if tracepoints && header.tables.is_none() {
        summary
            .lacks
            .push("no formats of tracepoints, so their fields are raw bytes".to_owned());
    }
    let behind: BTreeSet<_> = header.attrs.iter().flat_map(|attr| attr.lacks()).collect();
    for what in behind {
        summary.lacks.push(format!("{what} are not imported"));
    }
    if header
        .attrs
        .iter()
        .any(|attr| !attr.has(attr::sample_type::TIME))
    {
        summary.lacks.push("some events have no time".to_owned());
    }
    let is_known = header.attrs.iter().any(|attr| attr.clock == Some(0)) || header.clock.is_some();
    if !is_known {
        summary
            .lacks
            .push("the time of day is unknown (use perf record -k CLOCK_MONOTONIC)".to_owned());
    }
}
