//! Lengthens a recorded trace by repeating its packets at later times.
//!
//! Repetition *i* shifts every packet by *i* times the same number of cycles, a multiple of 2^32
//! that is at least the trace's span. The truncated timestamps of LTTng's event headers (27 and 32
//! bits) thus stay correct; only fields with more bits are changed: the packets' times and the
//! timestamps of extended event headers. Sequence numbers and counts of discarded events continue
//! from one repetition to the next. Payloads are unchanged.

mod survey;
mod write;

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use survey::TraceSurvey;

/// The shift is a multiple of this number, and so of the period of every unchanged truncated
/// timestamp.
const SHIFT_UNIT: u64 = 1 << 32;

/// Length of the new trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This many repetitions of the source, at least one.
    Times(u64),
    /// At least this many event records: the last repetition ends, in all streams at the same time,
    /// with the packet that completes them.
    Events(u64),
}

/// Counts of the new trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrowReport {
    /// Repetitions of the source, the last of which may be partial.
    pub times: u64,
    /// Event records in the source.
    pub source_events: u64,
    /// Event records in the result.
    pub events: u64,
    /// Packets in the result.
    pub packets: u64,
    /// Bytes of the result's stream files.
    pub bytes: u64,
    /// Cycles from one repetition to the next.
    pub shift: u64,
}

/// Writes a longer version of the trace, or of all traces, in `source` to `destination`.
///
/// # Errors
/// If the source cannot be read completely, has clocks of different frequencies, has timestamps
/// that cannot be shifted in place, or would exceed the clock's range; if `destination` exists and
/// is not an empty directory.
pub fn grow(source: &Path, destination: &Path, target: Target) -> Result<GrowReport> {
    let mut surveys = Vec::new();
    for directory in crate::directory::find_traces(source)? {
        let survey =
            survey::survey(&directory).with_context(|| format!("in {}", directory.display()))?;
        surveys.push((directory, survey));
    }
    let plan = plan(&surveys, target)?;
    prepare(destination)?;
    let mut report = GrowReport {
        times: plan.times,
        source_events: plan.source_events,
        shift: plan.shift,
        ..Default::default()
    };
    for (directory, survey) in &surveys {
        let to = destination.join(directory.strip_prefix(source).unwrap_or(Path::new("")));
        let written = write::write(directory, &to, survey, &plan)?;
        report.events += written.events;
        report.packets += written.packets;
        report.bytes += written.bytes;
    }
    Ok(report)
}

/// Parameters common to all traces of the source.
struct Plan {
    times: u64,
    /// In the last repetition, packets that begin later than this, in cycles after the source's
    /// first time, are left out.
    last_until: u64,
    shift: u64,
    source_events: u64,
}

/// Number of repetitions for at least `wanted` event records, and the end of the last repetition.
fn repetitions(surveys: &[(PathBuf, TraceSurvey)], source_events: u64, wanted: u64) -> (u64, u64) {
    let (whole, rest) = (wanted / source_events, wanted % source_events);
    if rest == 0 && whole > 0 {
        return (whole, u64::MAX);
    }
    let mut packets: Vec<(u64, u64)> = Vec::new();
    for (_, survey) in surveys {
        let all = survey.streams.iter().flat_map(|stream| stream.packets());
        packets.extend(all.map(|packet| (survey.begin_of(packet), packet.events)));
    }
    packets.sort_unstable();
    let mut sum = 0;
    let completes = |(_, events): &&(u64, u64)| {
        sum += events;
        sum >= rest
    };
    (
        whole + 1,
        packets
            .iter()
            .find(completes)
            .map_or(u64::MAX, |(begin, _)| *begin),
    )
}

fn plan(surveys: &[(PathBuf, TraceSurvey)], target: Target) -> Result<Plan> {
    let source_events: u64 = surveys.iter().map(|(_, survey)| survey.events).sum();
    let (times, last_until) = match target {
        Target::Times(times) => (times.max(1), u64::MAX),
        Target::Events(_) if source_events == 0 => bail!("the source has no events"),
        Target::Events(wanted) => repetitions(surveys, source_events, wanted),
    };
    let mut frequencies: Vec<u64> = surveys
        .iter()
        .flat_map(|(_, survey)| survey.frequencies.iter().copied())
        .collect();
    frequencies.sort_unstable();
    frequencies.dedup();
    if frequencies.len() > 1 {
        bail!("the clocks' frequencies differ ({frequencies:?} Hz): grow each trace alone");
    }
    // Traces of different hosts have unrelated clocks: the span is that of the longest trace.
    let span = surveys
        .iter()
        .map(|(_, survey)| survey.span())
        .max()
        .unwrap_or(0);
    let shift = (span + 1)
        .checked_next_multiple_of(SHIFT_UNIT)
        .context("the trace spans the whole clock")?;
    for (directory, survey) in surveys {
        let end = (times - 1)
            .checked_mul(shift)
            .and_then(|all| survey.last.checked_add(all));
        // Readers that convert to nanoseconds reject cycles that do not fit in an i64.
        if end.and_then(|end| survey.latest_time(end)).is_none() {
            bail!(
                "{}: {times} repetitions reach beyond the range of the clock",
                directory.display()
            );
        }
    }
    Ok(Plan {
        times,
        last_until,
        shift,
        source_events,
    })
}

/// Creates the destination, which must not exist or must be empty.
fn prepare(destination: &Path) -> Result<()> {
    fs::create_dir_all(destination)
        .with_context(|| format!("cannot make {}", destination.display()))?;
    if fs::read_dir(destination)?.next().is_some() {
        bail!("{} is not empty", destination.display());
    }
    Ok(())
}
