//! Jobs of GPUs against a plain model, in every way of folding.

mod formats;
mod model;
mod script;

use serde_json::{Value, json};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_models::law::{ALL, Asked, SMALL, any_tree, as_in_one_piece};
use tracebraid_models::naming::Naming;
use tracebraid_models::synthetic::Shape;
use tracebraid_reports::gpu::GpuJobAnalysis;

use model::{model, sorted};
use script::{EVENTS, Events, trace};

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 0,
    steps: 6000,
    packet: 1200,
    told_memory: false,
    ties: true,
    ..Shape::PLAIN
};

const SHAPES: [Shape; 3] = [
    SHAPE,
    Shape {
        naming: Naming::Ftrace,
        silent_losses: 40,
        ..SHAPE
    },
    Shape {
        lost_packets: 50,
        counted_losses: 50,
        ..SHAPE
    },
];

fn with_trace(seed: u64, events: Events, shape: Shape, then: impl FnOnce(&str, &TraceSet)) {
    let (directory, set) = trace(seed, events, shape);
    then(&format!("{events:?}, seed {seed}"), &set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

fn report(set: &TraceSet) -> Value {
    let analysis = GpuJobAnalysis::new(set, Selection::default());
    assert_eq!(analysis.lacks(), None);
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    serde_json::to_value(&outcome.expect("not cancelled").report).expect("a report is JSON")
}

/// The columns of a report that the model has.
fn as_modelled(report: &Value) -> Value {
    let rows = |section: &str, row: fn(&Value) -> Value| {
        let rows = report[section].as_array().expect("a table").iter();
        sorted(rows.map(row).collect())
    };
    fn times(row: &Value) -> Value {
        let columns = [
            "jobs",
            "host_queue_ns",
            "device_queue_ns",
            "execution_ns",
            "max_ns",
            "held",
        ];
        columns.iter().map(|column| row[column].clone()).collect()
    }
    json!({
        "rings": rows("rings", |row| json!([
            row["device"], row["ring"], row["processes"], row["span_ns"], row["idle_ns"], times(row)
        ])),
        "jobs": rows("jobs", |row| json!([row["tid"], row["device"], row["ring"], times(row)])),
        "fence_waits": rows("fence_waits", |row| json!([
            row["tid"], row["waits"], row["total_ns"], row["max_ns"]
        ])),
        "unfinished_jobs": report["total"]["unfinished_jobs"],
        "jobs_not_begun": report["total"]["jobs_not_begun"],
    })
}

#[test]
fn as_a_plain_pass_finds_them() {
    for (at, shape) in SHAPES.into_iter().enumerate() {
        for events in EVENTS {
            with_trace(at as u64, events, shape, |what, set| {
                let found = report(set);
                let [found, expected] = [as_modelled(&found), model(set)];
                for section in ["rings", "jobs", "fence_waits"] {
                    let rows = expected[section].as_array().expect("a table");
                    assert!(rows.len() >= 3, "{what}: {section}: {expected:#}");
                }
                let text = |value: &Value| format!("{value:#}");
                tracebraid_models::law::same(what, &text(&expected), &text(&found));
            });
        }
    }
}

#[test]
fn in_every_way() {
    let part = Asked {
        range: (5000 + 20_000, 5000 + 90_000),
        ..ALL
    };
    for shape in SHAPES {
        for (seed, events) in (0..).zip(EVENTS) {
            with_trace(seed, events, shape, |what, set| {
                for asked in [ALL, part] {
                    as_in_one_piece::<GpuJobAnalysis>(what, set, asked, SMALL);
                }
                any_tree::<GpuJobAnalysis>(set, seed);
            });
        }
    }
}
