//! The same events with the names of several tracers give the same reports.

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_follow::KernelAnalysis;
use tracebraid_models::naming::Naming;
use tracebraid_models::synthetic::{Shape, trace};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::io::IoAnalysis;

const SHAPE: Shape = Shape {
    cpus: 2,
    threads: 8,
    steps: 8000,
    packet: 2000,
    told_memory: false,
    told_threads: true,
    ..Shape::PLAIN
};

fn report<A: Analysis>(set: &TraceSet, analysis: &A) -> A::Report {
    let options = Options {
        threads: 1,
        chunk_bytes: u64::MAX,
        ..Options::default()
    };
    fold(set, analysis, options, &Control::default())
        .expect("not cancelled")
        .report
}

/// Both reports on a random trace.
fn reports(seed: u64, shape: Shape) -> (Json, Json) {
    let shape = Shape {
        cpus: 1 + seed % 3,
        ..shape
    };
    let (directory, set) = trace(seed, shape);
    let cpu = report(&set, &CpuAnalysis::new(&set, Default::default()));
    let io = report(&set, &IoAnalysis::new(&set, Default::default()));
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    assert!(
        io.unsigned("calls") > 500 && io.rows("types").count() > 4,
        "the report is too small: {io:?}"
    );
    let json = |value| serde_json::to_value(value).expect("a report is JSON");
    (
        json(serde_json::to_value(&cpu).ok()),
        json(serde_json::to_value(&io).ok()),
    )
}

/// Removes the processes of threads from a report.
fn without_processes(mut report: Json) -> Json {
    if let Some(report) = report.as_object_mut() {
        report.remove("processes");
    }
    let threads = report.get_mut("threads").and_then(Json::as_array_mut);
    for thread in threads.into_iter().flatten() {
        if let Some(thread) = thread.as_object_mut() {
            thread.remove("pid");
        }
    }
    report
}

/// Fails with the difference of two reports.
fn equal(what: &str, expected: Json, found: Json) {
    let lines = |report: Json| serde_json::to_string_pretty(&report).expect("JSON is text");
    let (expected, found) = (lines(expected), lines(found));
    for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
        assert_eq!(expected, found, "{what}: line {number}");
    }
    assert_eq!(expected.len(), found.len(), "{what}");
}

/// The reports of a trace with LTTng's names equal those of the same trace with other names.
fn same(what: &str, lttng: Shape, other: Shape, view: fn(Json) -> Json) {
    for seed in 0..10 {
        let (expected, found) = (reports(seed, lttng), reports(seed, other));
        equal(
            &format!("io of {what}, seed {seed}"),
            view(expected.1),
            view(found.1),
        );
        // Only some events contain processes for `cpu`.
        let (expected, found) = (without_processes(expected.0), without_processes(found.0));
        equal(&format!("cpu of {what}, seed {seed}"), expected, found);
    }
}

#[test]
fn lttng_before_2_6() {
    let other = Shape {
        naming: Naming::OldLttng,
        ..SHAPE
    };
    same("old LTTng", SHAPE, other, |report| report);
    let untold = |shape| Shape {
        told_threads: false,
        ..shape
    };
    same(
        "old LTTng, threads untold",
        untold(SHAPE),
        untold(other),
        |report| report,
    );
}

#[test]
fn perf() {
    let lttng = Shape {
        tid_context: true,
        pid_context: true,
        ..SHAPE
    };
    for (naming, clone3) in [
        (Naming::Perf, true),
        (Naming::Perf, false),
        (Naming::PerfRaw, false),
    ] {
        let lttng = Shape { clone3, ..lttng };
        let other = Shape {
            naming,
            clone3,
            ..SHAPE
        };
        let what = format!("{naming:?}, clone3: {clone3}");
        same(&what, lttng, other, |report| report);
    }
}

/// Only `clone` reveals processes: ftrace records none, and perf's numbers differ in a namespace.
#[test]
fn ftrace_and_perf_in_a_namespace() {
    let lttng = Shape {
        tid_context: true,
        ..SHAPE
    };
    for naming in [Naming::Ftrace, Naming::FtraceRaw, Naming::PerfInside] {
        let other = Shape { naming, ..SHAPE };
        same(&format!("{naming:?}"), lttng, other, without_processes);
    }
}
