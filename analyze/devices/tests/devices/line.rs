//! A plain model of the line of a device: every nanosecond between two edges by itself.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::Command;

/// An idle time, and the time of each cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    length: u64,
    begin: u64,
    next: (u64, u64),
    causes: [u64; 4],
}

/// Complete commands with the process that enqueued them.
pub(crate) type Complete<'a> = [(usize, &'a Command)];

fn is_at(command: &Command, time: u64) -> bool {
    command.times[2] <= time && time < command.times[3]
}

fn causes(begin: u64, command: &Command) -> [u64; 4] {
    let [queued, submit, start, _] = command.times;
    let ready = command
        .signal
        .map_or(0, |(_, at)| (queued + at - command.entry).min(start));
    let cause = |time: u64| match time {
        time if time < queued => 0,
        time if time < ready => 1,
        time if time < submit => 2,
        _ => 3,
    };
    let mut causes = [0; 4];
    (begin..start).for_each(|time| causes[cause(time)] += 1);
    causes
}

fn gaps(commands: &Complete<'_>) -> Vec<Gap> {
    let mut sorted: Vec<&Command> = commands.iter().map(|(_, of)| *of).collect();
    sorted.sort_by_key(|of| (of.times[2], of.times[0], of.times[1]));
    let mut gaps = Vec::new();
    let mut busy_until = sorted[0].times[3];
    for command in sorted {
        let [queued, _, start, end] = command.times;
        if start > busy_until {
            gaps.push(Gap {
                length: start - busy_until,
                begin: busy_until,
                next: (start, queued),
                causes: causes(busy_until, command),
            });
        }
        busy_until = busy_until.max(end);
    }
    gaps
}

/// The line in the report is that of the model.
pub(crate) fn is_as_modelled(what: &str, commands: &Complete<'_>, report: &Value) {
    let mut edges: Vec<u64> = commands.iter().flat_map(|(_, of)| of.times).collect();
    edges.sort_unstable();
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    let mut shared: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for pair in edges.windows(2) {
        let (time, length) = (pair[0], pair[1] - pair[0]);
        let executing: Vec<_> = commands.iter().filter(|(_, of)| is_at(of, time)).collect();
        let kernels = executing
            .iter()
            .filter(|(_, of)| of.kernel.is_some())
            .count();
        let transfers = executing.len() - kernels;
        for (key, is_so) in [
            ("busy_ns", !executing.is_empty()),
            ("kernels_ns", kernels > 0),
            ("several_kernels_ns", kernels > 1),
            ("transfers_ns", transfers > 0),
            ("overlap_ns", kernels > 0 && transfers > 0),
        ] {
            *sums.entry(key).or_default() += if is_so { length } else { 0 };
        }
        let runs = |process| executing.iter().any(|(of, _)| *of == process);
        let waits = |process| {
            let own = commands.iter().filter(|(of, _)| *of == process);
            let waits = |of: &Command| of.times[0] <= time && time < of.times[2];
            own.into_iter().any(|(_, of)| waits(of)) && !runs(process)
        };
        for (one, other) in [(0, 1), (1, 0)] {
            if waits(one) && runs(other) {
                *shared.entry((one as u64, other as u64)).or_default() += length;
            }
        }
    }
    let device = &report["devices"][0];
    for (key, sum) in sums {
        assert_eq!(device[key], sum, "{what}: {key}");
    }
    let starts = commands.iter().map(|(_, of)| of.times[2]).min();
    let ends = commands.iter().map(|(_, of)| of.times[3]).max();
    assert_eq!(
        device["span_ns"].as_u64(),
        ends.zip(starts).map(|(end, start)| end - start)
    );
    let rows = report["shared"].as_array().expect("rows").iter();
    // Those of one trace are 1000, 1001, …; else each trace is a process.
    let trace = |of: &Value| match of["pid"].as_u64() {
        Some(pid) if pid >= 1000 => pid - 1000,
        _ => of["trace"].as_u64().expect("a trace"),
    };
    let found = rows.map(|row| {
        let pair = (trace(row), trace(&row["other"]));
        (pair, row["time_ns"].as_u64().expect("a time"))
    });
    shared.retain(|_, time| *time > 0);
    assert_eq!(found.collect::<BTreeMap<_, _>>(), shared, "{what}: shared");
    gaps_are_as_modelled(what, &gaps(commands), report);
}

fn gaps_are_as_modelled(what: &str, gaps: &[Gap], report: &Value) {
    let names = ["host late", "dependency", "host queue", "device queue"];
    for (place, name) in names.into_iter().enumerate() {
        let rows = report["idle"].as_array().expect("rows").iter();
        let of_cause = rows.filter(|row| row["cause"] == name);
        let found: u64 = of_cause
            .map(|row| row["idle_ns"].as_u64().expect("a time"))
            .sum();
        let expected: u64 = gaps.iter().map(|gap| gap.causes[place]).sum();
        assert_eq!(found, expected, "{what}: {name}");
    }
    let keys = [
        "idle_ns",
        "host_late_ns",
        "dependency_ns",
        "host_queue_ns",
        "device_queue_ns",
    ];
    let rows = report["gaps"].as_array().expect("rows").iter();
    let number = |row: &Value, key| row[key].as_u64().expect("a number");
    let found: Vec<[u64; 5]> = rows.map(|row| keys.map(|key| number(row, key))).collect();
    let mut longest: Vec<&Gap> = gaps.iter().collect();
    longest.sort_by(|a, b| b.cmp(a));
    let expected = longest.iter().map(|gap| {
        let [a, b, c, d] = gap.causes;
        [gap.length, a, b, c, d]
    });
    assert_eq!(found, expected.collect::<Vec<_>>(), "{what}: gaps");
}
