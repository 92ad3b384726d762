//! The law for the reports on devices, on traces full of requests and packets.

use std::collections::BTreeSet;

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_models::devices::trace;
use tracebraid_models::law::{ALL, Asked, Lawful, SMALL, any_tree, as_in_one_piece};
use tracebraid_models::naming::{Maker, Value::Int};
use tracebraid_models::synthetic::{Scripted, Shape, scripted};
use tracebraid_reports::disk::DiskAnalysis;
use tracebraid_reports::net::NetAnalysis;

macro_rules! for_each {
    ($function:ident($($argument:expr),*)) => {
        $function::<DiskAnalysis>($($argument),*);
        $function::<NetAnalysis>($($argument),*);
    };
}

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 0,
    steps: 12_000,
    packet: 1200,
    told_memory: false,
    ties: true,
    ..Shape::PLAIN
};

const SHAPES: [(&str, Shape); 3] = [
    ("plain", SHAPE),
    (
        "lost events",
        Shape {
            silent_losses: 60,
            ..SHAPE
        },
    ),
    (
        "lost packets",
        Shape {
            lost_packets: 50,
            counted_losses: 50,
            silent_losses: 20,
            tid_context: true,
            ..SHAPE
        },
    ),
];

fn with_trace(seed: u64, shape: Shape, then: impl FnOnce(&TraceSet)) {
    let cpus = 1 + seed % 4;
    let (directory, set) = trace(seed, Shape { cpus, ..shape });
    then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

fn in_every_way<A: Lawful>(what: &str, set: &TraceSet) {
    let part = Asked {
        range: (5000 + 60_000, 5000 + 200_000),
        ..ALL
    };
    let two_cpus = Asked {
        cpus: Some(&[0, 2]),
        ..ALL
    };
    for asked in [ALL, part, two_cpus] {
        as_in_one_piece::<A>(what, set, asked, SMALL);
    }
}

#[test]
fn requests_and_packets() {
    for (what, shape) in SHAPES {
        for seed in 0..8 {
            with_trace(seed, shape, |set| {
                for_each!(in_every_way(&format!("{what}, seed {seed}"), set));
            });
        }
    }
}

#[test]
fn any_tree_of_merges() {
    for (_, shape) in SHAPES {
        for seed in 0..6 {
            with_trace(seed, shape, |set| {
                for_each!(any_tree(set, seed));
            });
        }
    }
}

fn json<A: KernelAnalysis>(set: &TraceSet) -> Value {
    let analysis = A::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    serde_json::to_value(&outcome.expect("not cancelled").report).expect("a report is JSON")
}

/// The rows of a table, reduced to the given columns.
fn table(report: &Value, section: &str, columns: &[&str]) -> Vec<Vec<Value>> {
    let rows = report[section].as_array().expect("a section").iter();
    let row = |row: &Value| columns.iter().map(|column| row[*column].clone()).collect();
    rows.map(row).collect()
}

/// The law is meaningless for empty reports.
#[test]
fn there_is_something_to_report() {
    with_trace(2, SHAPES[1].1, |set| {
        let disk = json::<DiskAnalysis>(set);
        let columns = [
            "requests",
            "flushes",
            "flush_sequences",
            "merged_bios",
            "merged_requests",
            "in_parts",
            "requeues",
            "errors",
            "not_begun",
        ];
        for column in columns {
            let sum: Option<u64> = table(&disk, "disks", &[column])
                .iter()
                .map(|row| row[0].as_u64())
                .sum();
            assert!(sum > Some(5), "{column}: {disk}");
        }
        for section in ["kinds", "queue", "depth", "threads", "remaps", "slowest"] {
            assert!(
                disk[section].as_array().is_some_and(|rows| rows.len() >= 2),
                "{section}"
            );
        }
        let net = json::<NetAnalysis>(set);
        for column in [
            "sent_packets",
            "received_packets",
            "busy",
            "errors",
            "sent_drops",
            "received_drops",
        ] {
            let sums = table(&net, "interfaces", &[column]);
            assert!(
                sums.len() == 3 && sums.iter().all(|row| row[0].as_u64() > Some(2)),
                "{column}: {net}"
            );
        }
        let contexts: BTreeSet<_> = table(&net, "threads", &["context"])
            .concat()
            .iter()
            .map(Value::to_string)
            .collect();
        assert_eq!(contexts.len(), 4, "{contexts:?}");
        assert!(
            net["ports"].as_array().is_some_and(|rows| rows.len() == 4),
            "{net}"
        );
    });
}

const DISK: i64 = 8 << 20;

/// A request event: time, first sector, number of sectors, rwbs and, for completions, the error.
fn block(
    time: u64,
    name: &'static str,
    (sector, sectors): (i64, i64),
    rwbs: i64,
) -> Scripted<'static> {
    let mut fields = vec![
        ("dev", 32, Int(DISK)),
        ("sector", 64, Int(sector)),
        ("nr_sector", 32, Int(sectors)),
        ("rwbs", 32, Int(rwbs)),
    ];
    match name {
        "block_rq_complete" => fields.push(("error", 32, Int(0))),
        _ => fields.push(("tid", 32, Int(42))),
    }
    (0, time, Maker { tid: 42, pid: 42 }, name, fields)
}

const READ: i64 = 4;
const WRITE: i64 = 1;
const FLUSH: i64 = 1280;

fn requests() -> Vec<Scripted<'static>> {
    vec![
        // Issued before the trace.
        block(1000, "block_rq_complete", (500, 8), READ),
        // Completed in two parts, with another completion between them.
        block(1100, "block_getrq", (0, 24), READ),
        block(1200, "block_rq_issue", (0, 24), READ),
        block(1300, "block_rq_issue", (24, 8), WRITE),
        block(1400, "block_rq_complete", (0, 16), READ),
        block(1500, "block_rq_complete", (24, 8), WRITE),
        block(1600, "block_rq_complete", (16, 8), READ),
        // Requeued and issued again.
        block(2000, "block_rq_insert", (64, 8), WRITE),
        block(2010, "block_rq_issue", (64, 8), WRITE),
        block(2020, "block_rq_requeue", (64, 8), WRITE),
        block(2030, "block_rq_insert", (64, 8), WRITE),
        block(2070, "block_rq_issue", (64, 8), WRITE),
        block(2100, "block_rq_complete", (64, 8), WRITE),
        // A flush, and the write that requested it.
        block(3000, "block_rq_issue", (0, 0), FLUSH),
        block(3050, "block_rq_complete", (-1, 0), FLUSH),
        block(3060, "block_rq_complete", (0, 0), 33),
        // Never completed.
        block(4000, "block_rq_issue", (128, 8), READ),
    ]
}

#[test]
fn what_becomes_of_requests() {
    let shape = Shape {
        cpus: 1,
        packet: 100_000,
        ..SHAPE
    };
    let (directory, set) = scripted(shape, requests());
    let report = json::<DiskAnalysis>(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    let counts = [
        "requests",
        "sectors",
        "flushes",
        "flush_sequences",
        "in_parts",
        "requeues",
        "not_begun",
    ];
    // The first part of the request ends nothing, nor does the request from before the trace.
    assert_eq!(
        table(&report, "disks", &counts),
        [[3, 40, 1, 1, 1, 1, 2].map(Value::from)]
    );
    assert_eq!(report["total"]["unfinished"], 1);
    let times = ["kind", "count", "total_ns"];
    let kinds: [[Value; 3]; 3] = [
        ["read".into(), 1.into(), 400.into()],
        ["write".into(), 2.into(), (200 + 30).into()],
        ["flush".into(), 1.into(), 50.into()],
    ];
    assert_eq!(table(&report, "kinds", &times), kinds);
    // Until the issue: 100, 10 and 40.
    assert_eq!(
        table(&report, "queue", &["count", "total_ns"]),
        [[3, 150].map(Value::from)]
    );
    assert_eq!(
        table(
            &report,
            "threads",
            &["tid", "requests", "read_bytes", "written_bytes"]
        ),
        [[42, 6, 32 * 512, 24 * 512].map(Value::from)]
    );
    // Depth 1 from 1200, 2 from 1300, 1 from 1400, 0 from 1500; then 10 and 30.
    assert_eq!(
        table(&report, "depth", &["max_depth", "busy_ns"]),
        [[2, 300 + 10 + 30].map(Value::from)]
    );
}
