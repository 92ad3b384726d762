//! Why nothing was selected: what the traces have instead of what was asked for.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_filter::head_cpu;
use tracebraid_reports::kernel::{Extent, seen_cpus};

use crate::info::tables::View;
use crate::numbers;
use crate::options::{SelectArgs, TimeRange};
use crate::warnings::Warnings;

/// Says that streams without a clock are left out of a time range, if there are any: their event
/// records have no time.
pub(crate) fn left_out_of(range: TimeRange, set: &TraceSet, warnings: &mut Warnings) {
    let streams = set.traces.iter();
    let streams = streams.flat_map(|trace| trace.streams.iter().map(move |stream| (trace, stream)));
    let without = streams
        .filter(|(trace, stream)| trace.clock(stream).is_none())
        .count();
    if without > 0 && range != TimeRange::ALL {
        let streams = if without == 1 { "stream" } else { "streams" };
        warnings.note(&format!(
            "{without} {streams} without a clock: their event records have no time, and are left out of the time range"
        ));
    }
}

/// Says why there is nothing, as far as the options are the reason; times are `offset` later than
/// the clocks say.
pub(crate) fn nothing_selected(
    set: &TraceSet,
    select: &SelectArgs,
    range: TimeRange,
    offset: i64,
    zone: &TimeZone,
    warnings: &mut Warnings,
) {
    let reason = outside(set, range, offset, zone)
        .or_else(|| other_cpus(set, select))
        .or_else(|| options(select));
    if let Some(reason) = reason {
        warnings.note(&format!("no event record is selected: {reason}"));
    }
}

/// Says which options chose nothing, where there is something to show for all of them: the tables of
/// all CPUs, say.
pub(crate) fn some_not_selected(
    set: &TraceSet,
    select: &SelectArgs,
    (range, zone): (TimeRange, &TimeZone),
    lacks_threads: bool,
    warnings: &mut Warnings,
) {
    if told_outside(set, (range, zone), warnings) {
        return;
    }
    if let Some(reason) = other_cpus(set, select) {
        warnings.note(&format!("--cpu chooses nothing: {reason}"));
    }
    if let Some(reason) = options(select).filter(|_| lacks_threads) {
        warnings.note(&format!("no thread is selected: {reason}"));
    }
}

/// Says that the range is before or behind all event records, if it is.
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

/// The range is before or behind all event records. (Packets may begin long before their first one.)
fn outside(set: &TraceSet, range: TimeRange, offset: i64, zone: &TimeZone) -> Option<String> {
    if range == TimeRange::ALL {
        return None;
    }
    let extent = Extent::of(set, |_| true)?;
    let [first, last] = [extent.first, extent.last].map(|time| time.0.saturating_add(offset));
    if range.to >= first && range.from <= last {
        return None;
    }
    let view = View {
        zone: zone.clone(),
        colours: false,
    };
    Some(format!(
        "the first one is of {}, the last one of {}",
        view.time(Some(first)),
        view.time(Some(last))
    ))
}

/// The traces have CPUs, but not these.
fn other_cpus(set: &TraceSet, select: &SelectArgs) -> Option<String> {
    let shared = (0..set.traces.len()).flat_map(|trace| seen_cpus(set, trace));
    let shared = shared.map(|&cpu| u64::from(cpu));
    let cpus: BTreeSet<u64> = set
        .traces
        .iter()
        .flat_map(|trace| trace.streams.iter().map(move |stream| (trace, stream)))
        .filter_map(|(trace, stream)| head_cpu(trace.layout.streams.get(stream.class)?, &stream.head))
        .chain(shared)
        .collect();
    if select.cpu.is_empty() || cpus.is_empty() || !cpus.is_disjoint(&numbers::all(&select.cpu)) {
        return None;
    }
    Some(format!("the trace has CPUs {}", ranges(&cpus)))
}

/// Numbers, with those that follow each other as ranges.
fn ranges(numbers: &BTreeSet<u64>) -> String {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match found.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => found.push((number, number)),
        }
    }
    let texts = found.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Threads of which it is known that they ran are none of these.
fn options(select: &SelectArgs) -> Option<String> {
    let given: Vec<_> = [
        ("--tid", !select.tid.is_empty()),
        ("--pid", !select.pid.is_empty()),
        ("--procname", !select.procname.is_empty()),
        ("--no-recorder", select.no_recorder),
    ]
    .into_iter()
    .filter_map(|(option, is_given)| is_given.then_some(option))
    .collect();
    (!given.is_empty()).then(|| format!("none is known to belong to what {} asks for", given.join(" and ")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_are_short() {
        assert_eq!(
            super::ranges(&[0, 1, 2, 3, 7, 9, 10, u64::MAX].into()),
            "0-3, 7, 9-10, 18446744073709551615"
        );
    }
}
