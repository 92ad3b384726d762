//! The reports beside those of lttng-analyses, number by number.
//!
//! Its numbers are reproduced by its own rules first (`support/lttng.rs`), so that what differs
//! from ours can be told call by call and switch by switch.
#![allow(missing_docs)]

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::lttng::{Counted, Kind, cputop, iousagetop};
use support::model_io::{Call, Found, find};
use support::traces::{kernel_trace, oracle};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Control, Options, fold};
use tracebraid_reports::cpu::{CpuAnalysis, CpuReport};

fn cpu_report(set: &TraceSet) -> CpuReport {
    let analysis = CpuAnalysis::new(set, Default::default());
    fold(set, &analysis, Options::default(), &Control::default()).expect("nobody cancels").report
}

fn rows(results: &Value, table: usize) -> &Vec<Value> {
    results["results"][table]["data"].as_array().expect("a table")
}

fn int(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

/// Nanoseconds of a ratio that it computed in double precision.
fn time_of(ratio: &Value, duration: u64) -> u64 {
    (ratio.as_f64().expect("a ratio") * duration as f64).round() as u64
}

/// Our report with its one rule that differs where nothing was lost: the time before a CPU's first
/// switch is in use. Returns how many numbers were compared.
fn compare_cpu(name: &str) -> Option<usize> {
    let set = kernel_trace(name)?;
    let results = oracle(name, "lttng-cputop.mi.json")?;
    let report = cpu_report(&set);
    let range = &results["results"][0]["time-range"];
    assert_eq!(report.begin.map(|time| time.0), Some(int(&range["begin"]["value"])), "{name}: begin");
    assert_eq!(report.end.map(|time| time.0), Some(int(&range["end"]["value"])), "{name}: end");
    let begin = report.begin.expect("a range").0;
    let mut heads: BTreeMap<i32, (i64, u64)> = BTreeMap::new();
    for cpu in &report.cpus {
        let first = cpu.first_switch.as_ref().expect("a switch on each CPU");
        let time = first.time.expect("a time").0;
        let head = heads.entry(first.prev_tid).or_insert((time, 0));
        // Only the first CPU whose first switch is from that thread: afterwards it is known.
        *head = (*head).min((time, 0));
    }
    let ours = |cpu: u32| report.cpus.iter().find(|row| row.cpu == cpu).expect("the same CPUs");
    for row in rows(&results, 1) {
        let cpu = ours(int(&row[0]["id"]) as u32);
        let expected = time_of(&row[1]["value"], report.duration_ns);
        assert_eq!(cpu.active_ns + cpu.unknown_ns, expected, "{name}: CPU {}", cpu.cpu);
        let head = cpu.first_switch.as_ref().and_then(|first| first.time).expect("a time").0;
        assert_eq!(cpu.unknown_ns, head.abs_diff(begin), "{name}: unknown is what is before the first switch");
    }
    assert_eq!(rows(&results, 1).len(), report.cpus.len(), "{name}: number of CPUs");
    let mut met = 0;
    for row in rows(&results, 0) {
        let tid = int(&row[0]["tid"]) as i32;
        let expected = time_of(&row[3]["value"], report.duration_ns);
        let thread = report.threads.iter().find(|thread| thread.thread.tid == Some(tid));
        let active = thread.map_or(0, |thread| thread.active_ns);
        let head = heads.get(&tid).map_or(0, |(time, _)| time.abs_diff(begin));
        assert_eq!(active + head, expected, "{name}: thread {tid}");
        met += usize::from(thread.is_some());
    }
    assert_eq!(met, report.threads.len(), "{name}: all threads are in its table");
    Some(rows(&results, 0).len() + rows(&results, 1).len())
}

#[test]
fn cpu_without_losses() {
    for (name, numbers) in [
        ("kernel-mix-small", 250),
        ("kernel-ust-requests", 84),
        ("many-threads", 8067),
        ("twohost-client", 50),
        ("twohost-server", 58),
    ] {
        if let Some(compared) = compare_cpu(name) {
            assert_eq!(compared, numbers, "{name}: numbers compared");
        }
    }
}

/// Its rules as we have written them down give its numbers, on all traces.
#[test]
fn its_rules_give_its_numbers() {
    for name in
        ["kernel-mix-small", "kernel-ust-requests", "kernel-discarded", "many-threads", "twohost-client", "twohost-server"]
    {
        let Some(set) = kernel_trace(name) else { continue };
        if let Some(results) = oracle(name, "lttng-cputop.mi.json") {
            let top = cputop(&set, true);
            let duration = top.end.abs_diff(top.begin);
            for row in rows(&results, 1) {
                let cpu = int(&row[0]["id"]) as u32;
                assert_eq!(top.cpus[&cpu], time_of(&row[1]["value"], duration), "{name}: CPU {cpu}");
            }
            for row in rows(&results, 0) {
                let tid = int(&row[0]["tid"]) as i32;
                assert_eq!(top.threads[&tid], time_of(&row[3]["value"], duration), "{name}: thread {tid}");
            }
        }
        if let Some(results) = oracle(name, "lttng-iousagetop.mi.json") {
            // It cannot read the dump's descriptors of new tracers; there they were left out.
            let calls = iousagetop(&set, name == "many-threads");
            for (table, write) in [(0, false), (1, true)] {
                for row in rows(&results, table) {
                    let tid = int(&row[0]["tid"]) as i32;
                    let sum = |kind: Option<Kind>| {
                        let mine = calls.values().filter(|call| call.tid == tid && call.write == write);
                        mine.filter(|call| kind.is_none_or(|kind| kind == call.kind)).map(|call| call.bytes).sum::<u64>()
                    };
                    let expected = [1, 2, 3, 4].map(|column| int(&row[column]["value"]) as u64);
                    let found = [sum(None), sum(Some(Kind::Disk)), sum(Some(Kind::Net)), sum(Some(Kind::Unknown))];
                    assert_eq!(found, expected, "{name}: thread {tid}, {}", if write { "written" } else { "read" });
                }
            }
        }
    }
}

/// Calls and bytes.
type Sums = BTreeMap<String, (u64, u64)>;

fn bytes_of(call: &Call) -> u64 {
    call.exit.int("ret").expect("a result").max(0) as u64
}

fn is_copy(call: &Call) -> bool {
    ["splice", "sendfile64"].contains(&call.name.as_str())
}

/// Every call that one of the two counts, by what the other makes of it.
fn differences(set: &TraceSet, state_dump: bool) -> Sums {
    let theirs = iousagetop(set, state_dump);
    let found = find(set, (i64::MIN, i64::MAX), None);
    let mut sums = Sums::new();
    let mut add = |what: String, bytes: u64| {
        let sum = sums.entry(what).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes);
    };
    let mut met = std::collections::BTreeSet::new();
    for call in found.calls.iter().filter(|call| call.exit.int("ret").is_some_and(|ret| ret >= 0)) {
        let place = (call.cpu, call.exit_time);
        add(compare(&found, call, theirs.get(&place)), bytes_of(call));
        met.insert(place);
    }
    for (_, call) in theirs.iter().filter(|(place, _)| !met.contains(place)) {
        add("only theirs".to_owned(), call.bytes);
    }
    sums
}

fn compare(found: &Found, call: &Call, theirs: Option<&Counted>) -> String {
    match theirs {
        None if is_copy(call) => "moved between two descriptors".to_owned(),
        None => "only ours".to_owned(),
        Some(theirs) if theirs.tid != call.tid => "another thread's".to_owned(),
        Some(theirs) if theirs.entry_time != call.entry_time => "of another entry".to_owned(),
        Some(theirs) => {
            assert_eq!(theirs.bytes, bytes_of(call));
            format!("{} is {:?}", found.kind(call, "fd").name(), theirs.kind)
        }
    }
}

#[test]
fn what_differs_in_io() {
    for name in
        ["kernel-mix-small", "kernel-ust-requests", "kernel-discarded", "many-threads", "twohost-client", "twohost-server"]
    {
        let Some(set) = kernel_trace(name) else { continue };
        println!("{name} {:#?}", differences(&set, name == "many-threads"));
    }
}
