//! `sched` compared with `schedstats`, `schedtop` and `schedfreq` of lttng-analyses, number by
//! number.
//!
//! The peer's numbers are first reproduced with its own rules (`tests/models/src/lttng_sched.rs`),
//! so that differences can be explained latency by latency.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views};
use tracebraid_models::lttng_sched::{Latency, latencies};
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_tables::{Report, View};

const WITHOUT_LOSSES: [&str; 5] = [
    "kernel-mix-small",
    "kernel-ust-requests",
    "many-threads",
    "twohost-client",
    "twohost-server",
];
const LOSSES: &str = "kernel-discarded";

fn folded(set: &TraceSet, views: Views) -> Report {
    let analysis = SchedAnalysis::with(set, Selection::default(), views.into());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    outcome.expect("not cancelled").report
}

/// The reports of both passes with all views, as JSON.
fn reports(set: &TraceSet) -> (Value, Value) {
    let views = Views {
        views: View::ALL.to_vec(),
        rows: 100,
        ..Views::default()
    };
    let first = folded(set, views.clone());
    let ranges = Some(first.ranges.clone());
    let second = folded(set, Views { ranges, ..views });
    let json = |report| serde_json::to_value(report).expect("a report can be serialized");
    (json(first), json(second))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key]
        .as_array()
        .unwrap_or_else(|| panic!("a list of {key}"))
}

fn int(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

/// Count, minimum, average, maximum, deviation.
type Numbers = (i64, i64, f64, i64, Option<f64>);

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= a.abs().max(b.abs()) * 1e-12
}

fn equal(a: &Numbers, b: &Numbers) -> bool {
    let deviations = match (a.4, b.4) {
        (Some(a), Some(b)) => near(a, b),
        (a, b) => a == b,
    };
    (a.0, a.1, a.3) == (b.0, b.1, b.3) && near(a.2, b.2) && deviations
}

/// By thread: the numbers of `schedstats`.
fn their_stats(name: &str) -> Option<BTreeMap<i32, Numbers>> {
    let results = oracle(name, "lttng-schedstats.mi.json")?;
    let row = |row: &Value| {
        let value = |at: usize| &row[at]["value"];
        let numbers = (
            int(value(1)),
            int(value(2)),
            value(3).as_f64().expect("an average"),
            int(value(4)),
            value(5).as_f64(),
        );
        (int(&row[0]["tid"]) as i32, numbers)
    };
    Some(
        list(&results["results"][0], "data")
            .iter()
            .map(row)
            .collect(),
    )
}

fn our_stats(report: &Value) -> BTreeMap<i32, Numbers> {
    let row = |row: &Value| {
        let numbers = (
            int(&row["count"]),
            int(&row["min_ns"]),
            row["average_ns"].as_f64().expect("an average"),
            int(&row["max_ns"]),
            row["deviation_ns"].as_f64(),
        );
        (int(&row["tid"]) as i32, numbers)
    };
    list(report, "threads").iter().map(row).collect()
}

fn stats_of(found: &[Latency]) -> BTreeMap<i32, Numbers> {
    let mut lengths: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for latency in found {
        lengths
            .entry(latency.tid)
            .or_default()
            .push(latency.length());
    }
    let numbers = |lengths: &[i64]| {
        let count = lengths.len();
        let mean = lengths.iter().sum::<i64>() as f64 / count as f64;
        let spread: f64 = lengths
            .iter()
            .map(|&length| (length as f64 - mean).powi(2))
            .sum();
        let deviation = (count > 1).then(|| (spread / (count - 1) as f64).sqrt());
        let (min, max) = (lengths.iter().min(), lengths.iter().max());
        (count as i64, *min.unwrap(), mean, *max.unwrap(), deviation)
    };
    lengths
        .iter()
        .map(|(tid, lengths)| (*tid, numbers(lengths)))
        .collect()
}

fn differing(a: &BTreeMap<i32, Numbers>, b: &BTreeMap<i32, Numbers>) -> BTreeSet<i32> {
    let tids = a.keys().chain(b.keys()).copied();
    let differ = |tid: &i32| match (a.get(tid), b.get(tid)) {
        (Some(a), Some(b)) => !equal(a, b),
        _ => true,
    };
    tids.filter(differ).collect()
}

/// The rows of `schedtop`.
fn their_top(name: &str) -> Option<Vec<Latency>> {
    let results = oracle(name, "lttng-schedtop.mi.json")?;
    let row = |row: &Value| Latency {
        tid: int(&row[5]["tid"]) as i32,
        wakeup: int(&row[0]["value"]),
        switch: int(&row[1]["value"]),
        cpu: int(&row[4]["id"]) as u32,
        priority: int(&row[3]["value"]),
        waker: row[6]["tid"].as_i64().map(|tid| tid as i32),
    };
    Some(
        list(&results["results"][0], "data")
            .iter()
            .map(row)
            .collect(),
    )
}

/// Our latencies, with the context of the waker.
fn our_list(report: &Value, key: &str) -> Vec<(Latency, String)> {
    let row = |row: &Value| {
        let waker = row["waker"]["tid"].as_i64().map(|tid| tid as i32);
        let latency = Latency {
            tid: int(&row["tid"]) as i32,
            wakeup: int(&row["wakeup_ns"]),
            switch: int(&row["switch_ns"]),
            cpu: int(&row["cpu"]) as u32,
            priority: int(&row["priority"]) - 100,
            waker: waker.filter(|&waker| waker != 0),
        };
        (
            latency,
            row["waker_context"].as_str().expect("a text").to_owned(),
        )
    };
    list(report, key).iter().map(row).collect()
}

/// Our model of its rules reproduces its numbers on all traces.
#[test]
fn its_rules_give_its_numbers() {
    for name in WITHOUT_LOSSES.into_iter().chain([LOSSES]) {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let (Some(stats), Some(top)) = (their_stats(name), their_top(name)) else {
            continue;
        };
        let mut found = latencies(&set);
        assert_eq!(
            differing(&stats, &stats_of(&found)),
            BTreeSet::new(),
            "{name}"
        );
        // Equal latencies stay in the order of switches.
        found.sort_by_key(|latency| std::cmp::Reverse(latency.length()));
        found.truncate(100);
        assert_eq!(top, found, "{name}");
    }
}

/// By trace: number of threads; among the 100 longest latencies, number of those with an interrupt,
/// softirq or timer function as waker.
const SAME: [(&str, usize, usize); 5] = [
    ("kernel-mix-small", 245, 24),
    ("kernel-ust-requests", 79, 62),
    ("many-threads", 418, 9),
    ("twohost-client", 47, 72),
    ("twohost-server", 55, 57),
];

/// Every latency has the same times, CPU, thread and priority. Only the waker differs if an
/// interrupt, a softirq or a timer function was active: lttng-analyses has the interrupted thread.
#[test]
fn all_is_the_same_without_losses() {
    for (name, threads, interrupts) in SAME {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let (report, _) = reports(&set);
        let log = our_list(&report, "log");
        let theirs = latencies(&set);
        let same = |ours: &Latency, context: &str, theirs: &Latency| match context {
            "irq" | "softirq" | "timer" => {
                (ours.tid, ours.wakeup, ours.switch, ours.cpu, ours.priority)
                    == (
                        theirs.tid,
                        theirs.wakeup,
                        theirs.switch,
                        theirs.cpu,
                        theirs.priority,
                    )
            }
            _ => ours == theirs,
        };
        assert_eq!(log.len(), theirs.len(), "{name}");
        for ((ours, context), theirs) in log.iter().zip(&theirs) {
            assert!(
                same(ours, context, theirs),
                "{name}: {ours:?} {context} {theirs:?}"
            );
        }
        let (Some(stats), Some(top)) = (their_stats(name), their_top(name)) else {
            continue;
        };
        assert_eq!(
            differing(&stats, &our_stats(&report)),
            BTreeSet::new(),
            "{name}"
        );
        let longest = our_list(&report, "longest");
        let lengths = |list: &[Latency]| list.iter().map(Latency::length).collect::<Vec<_>>();
        let ours: Vec<Latency> = longest.iter().map(|(latency, _)| *latency).collect();
        assert_eq!(lengths(&ours), lengths(&top), "{name}");
        let interrupts_threads = |context: &str| matches!(context, "irq" | "softirq" | "timer");
        let from_interrupts = longest
            .iter()
            .filter(|(_, context)| interrupts_threads(context));
        assert_eq!(
            (stats.len(), from_interrupts.count()),
            (threads, interrupts),
            "{name}"
        );
    }
}

/// By trace: tables of `schedfreq`, and cells that differ because it computes bounds in floating
/// point.
const FREQ: [(&str, usize, usize); 5] = [
    ("kernel-mix-small", 127, 0),
    ("kernel-ust-requests", 68, 0),
    ("many-threads", 74, 2),
    ("twohost-client", 38, 0),
    ("twohost-server", 46, 0),
];

/// The peer's title of a table, from our name of the group.
fn title(of: &str) -> String {
    match (of.strip_prefix("priority "), of.rfind(" (")) {
        (Some(priority), _) => format!(
            "Priority: {}",
            priority.parse::<i64>().expect("a number") - 100
        ),
        (None, Some(at)) => format!("TID: {}", &of[at + 2..of.len() - 1]),
        _ => of.to_owned(),
    }
}

#[test]
fn distributions_are_the_same() {
    for (name, tables, cells) in FREQ {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let Some(results) = oracle(name, "lttng-schedfreq.mi.json") else {
            continue;
        };
        let mut ours: BTreeMap<String, Vec<(f64, i64)>> = BTreeMap::new();
        for row in list(&reports(&set).1, "distribution") {
            let from = row["from_ns"].as_f64().expect("a bound");
            let of = title(row["of"].as_str().expect("a name"));
            ours.entry(of).or_default().push((from, int(&row["count"])));
        }
        let theirs = results["results"].as_array().expect("tables");
        let mut differ = 0;
        for table in theirs {
            let of = table["class"]["title"].as_str().map_or("all", |title| {
                let inner = title.split_once('[').expect("a subtitle").1;
                inner.trim_end_matches(']')
            });
            let ours = ours.get(of).unwrap_or_else(|| panic!("{name}: {of}"));
            let rows = list(table, "data");
            assert_eq!(rows.len(), ours.len(), "{name}: {of}");
            for (row, (from, count)) in rows.iter().zip(ours) {
                let lower = row[0]["value"].as_f64().expect("a bound");
                assert!((lower - from).abs() < 1e-3, "{name}: {of}: {lower} {from}");
                differ += usize::from(int(&row[2]["value"]) != *count);
            }
            let sum: i64 = rows.iter().map(|row| int(&row[2]["value"])).sum();
            assert_eq!(
                sum,
                ours.iter().map(|row| row.1).sum::<i64>(),
                "{name}: {of}"
            );
        }
        assert_eq!((theirs.len(), differ), (tables, cells), "{name}");
    }
}

/// With losses: number of latencies in both reports, only in theirs, only in ours, and of those
/// that end with the same switch but begin with another wake-up. `docs/explain/differences.md`
/// explains them.
#[test]
fn what_differs_where_events_were_lost() {
    let Some(set) = kernel_trace(LOSSES) else {
        return;
    };
    let (report, _) = reports(&set);
    let place = |latency: &Latency| (latency.switch, latency.tid);
    let log = our_list(&report, "log");
    let ours: BTreeMap<_, _> = log
        .iter()
        .map(|(own, _)| (place(own), own.wakeup))
        .collect();
    let theirs: BTreeMap<_, _> = latencies(&set)
        .iter()
        .map(|own| (place(own), own.wakeup))
        .collect();
    let (mut same, mut later, mut only_theirs) = (0, 0, 0);
    for (place, wakeup) in &theirs {
        match ours.get(place) {
            Some(own) if own == wakeup => same += 1,
            Some(own) => {
                assert!(
                    own > wakeup,
                    "wake-ups before the loss are dropped: {place:?}"
                );
                later += 1;
            }
            None => only_theirs += 1,
        }
    }
    let only_ours = ours
        .keys()
        .filter(|place| !theirs.contains_key(place))
        .count();
    assert_eq!((same, later, only_theirs, only_ours), (640, 16, 7, 8));
    if let Some(stats) = their_stats(LOSSES) {
        let differ = differing(&stats, &our_stats(&report));
        assert_eq!((stats.len(), differ.len()), (33, 11), "{differ:?}");
    }
}
