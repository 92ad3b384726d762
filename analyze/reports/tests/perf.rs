//! A trace of perf compared with the values that follow from the text of `perf script` for the same
//! recording.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_follow::KernelAnalysis;
use tracebraid_models::plain::{CpuReport, IoReport, IoStats, plain};
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::io::IoAnalysis;

fn expected() -> Json {
    oracle("perf-mix", "from-perf-script.json").expect("it is committed")
}

fn set() -> TraceSet {
    kernel_trace("perf-mix").expect("it is committed")
}

fn report<A: Analysis>(set: &TraceSet, analysis: &A) -> A::Report {
    let options = Options {
        threads: 2,
        chunk_bytes: 30_000,
        ..Options::default()
    };
    fold(set, analysis, options, &Control::default())
        .expect("not cancelled")
        .report
}

fn number(json: &Json, field: &str) -> u64 {
    json[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field} in {json}"))
}

fn rows<'a>(json: &'a Json, field: &str) -> &'a [Json] {
    json[field].as_array().expect("a list")
}

#[test]
fn cpu() {
    let (set, expected) = (set(), expected());
    let found: CpuReport = plain(&report(&set, &CpuAnalysis::new(&set, Default::default())));
    let range = (found.head.begin_ns, found.head.end_ns);
    let expected_range = (expected["begin_ns"].as_i64(), expected["end_ns"].as_i64());
    assert_eq!(range, expected_range);
    let hosts: Vec<_> = found
        .head
        .hosts
        .iter()
        .map(|host| host.name.as_deref())
        .collect();
    assert_eq!(hosts, [Some("vm")]);
    assert_eq!(found.cpus.len(), 2);
    for row in &found.cpus {
        let cpu = &expected["cpus"][row.cpu.to_string()];
        let numbers = ["active", "idle", "switches"].map(|field| number(cpu, field));
        assert_eq!(
            [row.active_ns, row.idle_ns, row.switches],
            numbers,
            "CPU {}",
            row.cpu
        );
        assert_eq!((row.inconsistent_switches, row.losses), (0, 0));
    }
    let threads: BTreeMap<_, _> = found
        .threads
        .iter()
        .map(|row| (row.thread.tid, (row.thread.pid, row.usage.active_ns)))
        .collect();
    let id = |row: &Json, field: &str| row[field].as_i64().map(|id| id as i32);
    let expected: BTreeMap<_, _> = rows(&expected, "threads")
        .iter()
        .map(|row| (id(row, "tid"), (id(row, "pid"), number(row, "active_ns"))))
        .collect();
    assert_eq!(threads, expected);
    assert!(threads.len() > 10, "too few threads");
}

const NUMBERS: [&str; 6] = [
    "calls",
    "errors",
    "read_bytes",
    "written_bytes",
    "latency_ns",
    "longest_latency_ns",
];

fn numbers(stats: &IoStats) -> [u64; 6] {
    [
        stats.calls,
        stats.errors,
        stats.read_bytes,
        stats.written_bytes,
        stats.latency_ns,
        stats.longest_latency_ns,
    ]
}

/// Sums of the expected rows with the same key.
fn sums(expected: &Json, key: impl Fn(&Json) -> String) -> BTreeMap<String, [u64; 6]> {
    let mut sums: BTreeMap<String, [u64; 6]> = BTreeMap::new();
    for row in rows(expected, "io") {
        let [sum @ .., longest] = sums.entry(key(row)).or_default();
        let [row @ .., row_longest] = NUMBERS.map(|field| number(row, field));
        sum.iter_mut().zip(row).for_each(|(sum, part)| *sum += part);
        *longest = (*longest).max(row_longest);
    }
    sums
}

#[test]
fn io() {
    let (set, expected) = (set(), expected());
    let found: IoReport = plain(&report(&set, &IoAnalysis::new(&set, Default::default())));
    let by_call: BTreeMap<_, _> = found
        .syscalls
        .iter()
        .map(|row| (row.name.to_owned(), numbers(&row.stats)))
        .collect();
    let text = |row: &Json, field: &str| row[field].as_str().expect("a text").to_owned();
    assert_eq!(by_call, sums(&expected, |row| text(row, "call")));
    let mut by_type = BTreeMap::new();
    for row in &found.threads {
        let tid = row.thread.tid.expect("perf records all threads");
        for of_type in &row.types {
            let key = format!("{tid} {}", of_type.kind.name());
            by_type.insert(key, numbers(&of_type.stats));
        }
    }
    let key = |row: &Json| format!("{} {}", number(row, "tid"), text(row, "type"));
    assert_eq!(by_type, sums(&expected, key));
    assert_eq!(found.total.unstarted, number(&expected, "unstarted"));
    assert_eq!(found.total.unfinished, 0);
}

/// Reads of the recorded program through a descriptor that was opened by another process with which
/// it shares its table.
#[test]
fn a_shared_descriptor_is_known() {
    let set = set();
    let found: IoReport = plain(&report(&set, &IoAnalysis::new(&set, Default::default())));
    let main = found
        .processes
        .iter()
        .find(|row| row.process.name.as_deref() == Some("mix") && row.process.threads == 4)
        .expect("the program is there");
    let files = main
        .types
        .iter()
        .find(|row| row.kind.name() == "file")
        .expect("files");
    let (loader, own, threads, shared) = (832 + 2 * 784, 40 * 4096, 3 * 30 * 1000, 7 * 512);
    assert_eq!(files.stats.read_bytes, loader + own + threads + shared);
}
