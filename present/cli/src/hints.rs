//! Explains empty results: compares the selection with the content of the traces.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{Extent, ranges, seen_cpus};
use tracebraid_language::head_cpu;
use tracebraid_language::near::did_you_mean;

use crate::options::{self, SelectArgs, TimeRange};
use crate::threads::Known;
use crate::warnings::Warnings;

/// Notes how many streams a time range leaves out because they have no clock, and thus their event
/// records no time.
pub(crate) fn left_out_of(range: TimeRange, set: &TraceSet, warnings: &mut Warnings) {
    let without = set
        .streams()
        .filter(|(trace, stream)| trace.clock(stream).is_none())
        .count();
    if without > 0 && range != TimeRange::ALL {
        let (streams_have, their) = match without {
            1 => ("stream has", "its"),
            _ => ("streams have", "their"),
        };
        warnings.note(&format!(
            "{without} {streams_have} no clock: {their} event records are left out of the time range"
        ));
    }
}

/// Explains an empty result if the options are its cause; otherwise returns false. `offset` is
/// added to the times of the traces.
pub(crate) fn nothing_selected(
    set: &TraceSet,
    select: &SelectArgs,
    range: TimeRange,
    offset: i64,
    zone: &TimeZone,
    warnings: &mut Warnings,
) -> bool {
    let mut reasons: Vec<String> = outside(set, range, offset, zone).into_iter().collect();
    if reasons.is_empty() {
        reasons.extend(other_cpus(set, select).map(|(_, there)| described(there)));
    }
    if reasons.is_empty() {
        reasons = threads(set, select);
    }
    if !reasons.is_empty() {
        warnings.note(&format!(
            "no event record is selected: {}",
            reasons.join("; ")
        ));
    }
    !reasons.is_empty()
}

/// Notes that no event record lies in the range, although the range is within the trace.
pub(crate) fn none_in_range(
    set: &TraceSet,
    range: TimeRange,
    offset: i64,
    zone: &TimeZone,
    warnings: &mut Warnings,
) {
    if let Some(extent) = extent(set, offset, zone).filter(|_| range != TimeRange::ALL) {
        warnings.note(&format!("no event record lies in the time range; {extent}"));
    }
}

/// Notes options that match nothing where the report is not empty: it may have tables of all CPUs.
pub(crate) fn some_not_selected(
    set: &TraceSet,
    select: &SelectArgs,
    lacks_threads: bool,
    warnings: &mut Warnings,
) {
    // Reports number the streams as CPUs if the trace has no CPU numbers.
    if let Some((cpus, there)) = other_cpus(set, select).filter(|(_, there)| !there.is_empty()) {
        warnings.note(&format!(
            "--cpu {cpus} matches nothing: {}",
            described(there)
        ));
    }
    if lacks_threads {
        let reasons = threads(set, select);
        if !reasons.is_empty() {
            warnings.note(&format!("no thread is selected: {}", reasons.join("; ")));
        }
    }
}

/// Warns about selected CPUs that the traces do not contain.
pub(crate) fn unknown_cpus(set: &TraceSet, select: &SelectArgs, warnings: &mut Warnings) {
    if let Some((cpus, there)) = other_cpus(set, select) {
        warnings.note(&format!(
            "--cpu {cpus} matches nothing: {}",
            described(there)
        ));
    }
}

/// Notes that the range lies outside all event records, and returns whether it does.
pub(crate) fn told_outside(
    set: &TraceSet,
    (range, zone): (TimeRange, &TimeZone),
    warnings: &mut Warnings,
) -> bool {
    let reason = outside(set, range, 0, zone);
    if let Some(reason) = &reason {
        warnings.note(&format!("no event record is selected: {reason}"));
    }
    reason.is_some()
}

/// The reason, if the range lies before or after all event records. The bounds of packets are
/// unsuitable: a packet may begin long before its first event record.
fn outside(set: &TraceSet, range: TimeRange, offset: i64, zone: &TimeZone) -> Option<String> {
    if range == TimeRange::ALL {
        return None;
    }
    let Extent { first, last } = Extent::of(set, |_| true)?;
    let [first, last] = [first, last].map(|time| time.0.saturating_add(offset));
    let is_outside = range.to < first || range.from > last;
    is_outside.then(|| {
        let span = options::lasts(first, last, zone);
        format!("the range is outside the trace, which {span}")
    })
}

/// Time span of all event records, as a clause of a message.
fn extent(set: &TraceSet, offset: i64, zone: &TimeZone) -> Option<String> {
    let Extent { first, last } = Extent::of(set, |_| true)?;
    let [first, last] = [first, last].map(|time| time.0.saturating_add(offset));
    Some(format!("the trace {}", options::lasts(first, last, zone)))
}

/// The CPUs of a trace, or advice if it has no CPU numbers.
fn described(cpus: BTreeSet<u64>) -> String {
    match cpus.is_empty() {
        true => {
            "neither packets nor event records contain a CPU number; leave out --cpu".to_owned()
        }
        false => format!("the trace has CPUs {}", ranges(cpus)),
    }
}

/// Selected CPUs that the traces do not contain, and the CPUs in packets and event records; `None`
/// if no CPU is missing.
fn other_cpus(set: &TraceSet, select: &SelectArgs) -> Option<(String, BTreeSet<u64>)> {
    // The CPUs of shared streams are known only after these streams have been read.
    if select.cpu.is_empty() {
        return None;
    }
    let shared = (0..set.traces.len()).flat_map(|trace| seen_cpus(set, trace));
    let shared = shared.map(|&cpu| u64::from(cpu));
    let cpus: BTreeSet<u64> = set
        .streams()
        .filter_map(|(trace, stream)| {
            head_cpu(trace.layout.streams.get(stream.class)?, &stream.head)
        })
        .chain(shared)
        .collect();
    let missing = select.cpu.iter().filter(|asked| !asked.meets(&cpus));
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    (!missing.is_empty()).then(|| (missing.join(","), cpus))
}

/// Messages on selected threads that the traces do not contain; or, if all exist, that they have no
/// event record in the selection.
fn threads(set: &TraceSet, select: &SelectArgs) -> Vec<String> {
    let given: Vec<_> = [
        ("--tid", !select.tid.is_empty()),
        ("--pid", !select.pid.is_empty()),
        ("--procname", !select.procname.is_empty()),
        ("--no-recorder", select.no_recorder),
    ]
    .into_iter()
    .filter_map(|(option, is_given)| is_given.then_some(option))
    .collect();
    if given.is_empty() {
        return Vec::new();
    }
    let known = Known::of(set);
    let mut reasons = Vec::new();
    for glob in options::globs(&select.procname) {
        if !known.names.iter().any(|name| glob.matches(name.as_bytes())) {
            let instead = did_you_mean(&glob, known.names.iter().map(String::as_str));
            reasons.push(format!(
                "no thread matches --procname '{}'{instead}",
                glob.text()
            ));
        }
    }
    let tids = select.tid.iter().filter(|tid| !known.tids.contains(tid));
    reasons.extend(tids.map(|tid| format!("no thread with the id {tid} ran")));
    let pids = select.pid.iter().filter(|pid| !known.pids.contains(pid));
    reasons.extend(pids.map(|pid| format!("no process with the id {pid} ran")));
    if reasons.is_empty() {
        reasons.push(format!(
            "no event record in the range belongs to the selected threads ({})",
            given.join(", ")
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_are_short() {
        assert_eq!(
            super::ranges([0, 1, 2, 3, 7, 9, 10, u64::MAX]),
            "0-3, 7, 9-10, 18446744073709551615"
        );
    }
}
