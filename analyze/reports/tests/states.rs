//! One run of threads, with their states in the encoding of each kernel and tracer.

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views};
use tracebraid_models::naming::{Maker, Naming, TEXT, Value};
use tracebraid_models::synthetic::{Scripted, Shape, scripted};
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_tables::View;

use Value::{Int, Text};

/// States and their numbers in each encoding: see `state_numbers` of the model.
#[rustfmt::skip]
const STATES: [(&str, [i64; 6]); 9] = [
    //             report  shifted  index   4.4     4.15 raw  6.1 raw
    ("runnable",   [0,     1,       0,      0,      0,        0]),
    ("preempted",  [0x100, 0x100,   0x1000, 0x800,  0x1000,   0x1_0000]),
    ("sleeping",   [1,     2,       1,      1,      1,        0x2001]),
    ("disk-sleep", [2,     4,       2,      0x82,   0x102,    2]),
    ("stopped",    [4,     8,       3,      0x84,   0x104,    0x104]),
    ("traced",     [8,     0x10,    4,      0x88,   0x108,    8]),
    ("dead",       [0x10,  0x20,    5,      0x40,   0x80,     0x80]),
    ("parked",     [0x40,  0x80,    7,      0x200,  0x40,     0x40]),
    ("idle",       [0x80,  0x100,   8,      0x402,  0x402,    0x2402]),
];

const REPORT: usize = 0;
const SHIFTED: usize = 1;
const INDEX: usize = 2;
const RAW_4_4: usize = 3;
const RAW_4_15: usize = 4;
const RAW_6_1: usize = 5;

const SHAPE: Shape = Shape {
    cpus: 1,
    threads: 0,
    steps: 0,
    packet: 4000,
    told_threads: true,
    ..Shape::PLAIN
};

/// Each thread leaves in a state of its own, `rounds` times, and is woken.
fn events(numbers: usize, rounds: u64) -> Vec<Scripted<'static>> {
    let maker = Maker { tid: 0, pid: 0 };
    let mut events = Vec::new();
    let mut now = 1000;
    for _ in 0..rounds {
        for (tid, (name, states)) in (10..).zip(STATES) {
            // Only such threads resolve the kernel's ambiguous number.
            let comm = if name == "idle" { "kworker/0:1" } else { name };
            let names = [
                ("swapper/0", 0, STATES[0].1[numbers]),
                (comm, tid, states[numbers]),
            ];
            for ([prev, next], time) in [[names[0], names[1]], [names[1], names[0]]]
                .into_iter()
                .zip([now, now + 7])
            {
                let fields = vec![
                    ("prev_comm", TEXT, Text(prev.0)),
                    ("prev_tid", 32, Int(prev.1)),
                    ("prev_prio", 32, Int(20)),
                    ("prev_state", 64, Int(prev.2)),
                    ("next_comm", TEXT, Text(next.0)),
                    ("next_tid", 32, Int(next.1)),
                    ("next_prio", 32, Int(20)),
                ];
                events.push((0, time, maker, "sched_switch", fields));
            }
            now += 20;
        }
    }
    events
}

/// The report on a trace with the given events and environment.
fn report(naming: Naming, numbers: usize, environment: &str) -> Json {
    let shape = Shape { naming, ..SHAPE };
    let (directory, _) = scripted(shape, events(numbers, 200));
    let metadata = directory.join("metadata");
    let text = std::fs::read_to_string(&metadata).expect("the metadata");
    let told = text.replace("hostname = \"nowhere\";", environment);
    std::fs::write(&metadata, told).expect("the metadata can be written");
    let set = TraceSet::open(&[&directory]).expect("the trace can be opened");
    let views = Views {
        views: vec![View::Stats, View::Top, View::Log],
        ..Views::default()
    };
    let analysis = SchedAnalysis::with(&set, Selection::default(), views.into());
    let options = Options {
        threads: 2,
        chunk_bytes: 5000,
        ..Options::default()
    };
    let outcome = fold(&set, &analysis, options, &Control::default()).expect("not cancelled");
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    let mut report = serde_json::to_value(outcome.report).expect("a report can be serialized");
    report.as_object_mut().expect("a report").remove("hosts");
    // Only perf's names contain processes.
    for list in report.as_object_mut().expect("a report").values_mut() {
        for row in list.as_array_mut().into_iter().flatten() {
            row.as_object_mut().and_then(|row| row.remove("pid"));
        }
    }
    report
}

fn reasons(report: &Json) -> Vec<(String, u64)> {
    let rows = report["reasons"].as_array().expect("reasons");
    let row = |row: &Json| {
        let reason = row["reason"].as_str().expect("a name");
        (
            reason.to_owned(),
            row["switches"].as_u64().expect("a number"),
        )
    };
    rows.iter().map(row).collect()
}

#[test]
fn states_are_the_same_however_they_are_numbered() {
    let expected = report(Naming::Lttng, REPORT, "kernel_release = \"6.1.0\";");
    let mut found = reasons(&expected);
    found.sort();
    let mut all: Vec<_> = STATES
        .iter()
        .map(|state| (state.0.to_owned(), 200))
        .collect();
    all.sort();
    assert_eq!(found, all, "each state is what it is");

    let lttng = |version: [u32; 3], release: &str| {
        let [major, minor, patch] = version;
        format!(
            "tracer_name = \"lttng-modules\"; tracer_major = {major}; tracer_minor = {minor};
             tracer_patchlevel = {patch}; kernel_release = \"{release}\";"
        )
    };
    let kernels = |tracer: &str, release: &str| {
        format!("tracer_name = \"{tracer}\"; kernel_release = \"{release}\";")
    };
    let of = |release: &str| format!("kernel_release = \"{release}\";");
    let told = [
        (Naming::Lttng, REPORT, lttng([2, 13, 9], "6.1.0-56-amd64")),
        (Naming::Lttng, REPORT, lttng([2, 10, 12], "4.15.0")),
        (Naming::Lttng, RAW_4_4, lttng([2, 8, 0], "4.4.3-1-ARCH")),
        (
            Naming::Lttng,
            RAW_4_15,
            lttng([2, 10, 11], "4.15.0-65-generic"),
        ),
        // A pre-release, and a vendor's kernel with a later commit.
        (
            Naming::Lttng,
            RAW_4_15,
            lttng([2, 11, 0], "4.15.0-43-generic"),
        ),
        (Naming::Lttng, REPORT, lttng([2, 10, 5], "4.15.0")),
        (Naming::Ftrace, INDEX, kernels("ftrace", "4.14.3")),
        (
            Naming::Perf,
            SHIFTED,
            kernels("perf", "4.18.0-305.el8.x86_64"),
        ),
        (
            Naming::Perf,
            REPORT,
            kernels("perf", "4.18.0-553.el8.x86_64"),
        ),
        (Naming::Perf, REPORT, kernels("perf", "4.19.9")),
        (Naming::Ftrace, REPORT, kernels("ftrace", "6.12.1")),
        // An unknown tracer.
        (Naming::Lttng, RAW_6_1, of("6.1.0")),
        // The states alone.
        (Naming::Lttng, REPORT, String::new()),
        (Naming::Lttng, RAW_4_15, String::new()),
        (Naming::Perf, SHIFTED, String::new()),
        (Naming::Ftrace, INDEX, String::new()),
    ];
    for (naming, numbers, environment) in told {
        let found = report(naming, numbers, &environment);
        let what = format!("{naming:?}, column {numbers}, {environment:?}");
        assert_eq!(reasons(&found), reasons(&expected), "{what}");
        assert_eq!(found, expected, "{what}");
    }
}
