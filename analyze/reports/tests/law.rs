//! The law: reports do not depend on the size of chunks, the number of threads or the way in which
//! partial states are merged, and equal those of a plain pass over all events.
#![allow(missing_docs)]

mod support;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Analysis, Control, Options, fold};
use tracebraid_reports::cpu::{CpuAnalysis, CpuOptions};
use tracebraid_reports::io::{IoAnalysis, IoOptions};
use tracebraid_reports::kernel::Window;

const ALL: (i64, i64) = (i64::MIN, i64::MAX);

fn window((from, to): (i64, i64)) -> Window {
    let time = |time: i64, none: i64| (time != none).then_some(Timestamp(time));
    Window { from: time(from, i64::MIN), to: time(to, i64::MAX) }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect("a report can be serialized")
}

fn folded<A: Analysis<Report: Serialize>>(set: &TraceSet, analysis: &A, threads: usize, chunk_bytes: u64) -> String {
    let options = Options { threads, chunk_bytes, until: None };
    json(&fold(set, analysis, options, &Control::default()).expect("nobody cancels").report)
}

/// Says where two texts differ.
fn same(what: &str, expected: &str, found: &str) {
    if expected == found {
        return;
    }
    for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
        assert_eq!(expected, found, "{what}: line {number}");
    }
    panic!("{what}: {} lines instead of {}", found.lines().count(), expected.lines().count());
}

fn every_way<A: Analysis<Report: Serialize>>(what: &str, set: &TraceSet, analysis: &A, expected: &str) {
    for (threads, chunk_bytes) in [(1, u64::MAX), (1, 1), (2, 200_000), (3, 1), (8, 500_000)] {
        let found = folded(set, analysis, threads, chunk_bytes);
        same(&format!("{what}, {threads} threads, chunks of {chunk_bytes} bytes"), expected, &found);
    }
}

fn holds_for(name: &str) {
    let Some(set) = support::traces::kernel_trace(name) else { return };
    let (begin, end) = support::events::extent(&set);
    let third = (end - begin) / 3;
    for range in [ALL, (begin + third, end - third)] {
        let expected = json(&support::model_cpu::cpu(&set, range));
        let options = CpuOptions { window: window(range), ..CpuOptions::default() };
        every_way(&format!("cpu of {name}"), &set, &CpuAnalysis::new(&set, options), &expected);
        let expected = json(&support::model_io::io(&set, range, None));
        let options = IoOptions { window: window(range), ..IoOptions::default() };
        every_way(&format!("io of {name}"), &set, &IoAnalysis::new(&set, options), &expected);
    }
}

#[test]
fn kernel_mix_small() {
    holds_for("kernel-mix-small");
}

#[test]
fn kernel_ust_requests() {
    holds_for("kernel-ust-requests");
}

#[test]
fn kernel_discarded() {
    holds_for("kernel-discarded");
}

#[test]
fn twohost_server() {
    holds_for("twohost-server");
}

#[test]
fn many_threads() {
    holds_for("many-threads");
}

#[test]
fn lttng_2_1_names() {
    holds_for("synctraces/scp_src");
    holds_for("synctraces/scp_dest");
}
