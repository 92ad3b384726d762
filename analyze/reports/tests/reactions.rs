//! Reactions of user-level threads, against a plain model.

use std::collections::BTreeSet;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views};
use tracebraid_models::law::{ALL, SMALL, any_tree, as_in_one_piece};
use tracebraid_models::levels::{LevelShape, ModelReaction, reactions, record, super_records};
use tracebraid_reports::levels::{LevelOptions, ReactionAnalysis};
use tracebraid_tables::{Report, Row, Value, View};

/// Shapes of perfect super-traces, and of super-traces with losses.
fn shapes() -> Vec<(&'static str, LevelShape)> {
    let mut shapes = LevelShape::all();
    for (name, lost) in [("few losses", 20), ("many losses", 200)] {
        let shape = LevelShape {
            lost_super_packets: lost,
            ..LevelShape::PLAIN
        };
        shapes.push((name, shape));
    }
    shapes
}

fn super_trace(seed: u64, shape: LevelShape) -> (tempfile::TempDir, TraceSet) {
    let directory = tempfile::tempdir().expect("a directory");
    let traces = record(seed, shape, directory.path());
    let set = TraceSet::open(&[&traces.super_trace]).expect("a super-trace");
    (directory, set)
}

/// Views of all finished reactions.
fn everything() -> LevelOptions {
    LevelOptions::from(Views {
        views: vec![View::Stats, View::Top],
        rows: 1_000_000,
        ..Views::default()
    })
}

fn report(set: &TraceSet, (threads, chunk_bytes): (usize, u64)) -> Report {
    let analysis = ReactionAnalysis::with(set, Selection::default(), everything());
    let options = Options {
        threads,
        chunk_bytes,
        slice_bytes: chunk_bytes,
        ..Options::default()
    };
    let outcome = fold(set, &analysis, options, &Control::default());
    outcome.expect("the fold is not cancelled").report
}

fn reaction(row: Row<'_>) -> ModelReaction {
    let Value::Time(begin) = row.value("begin_ns") else {
        panic!("a begin");
    };
    let part = |name: &str| row.unsigned(name);
    ModelReaction {
        tid: row.thread().and_then(|thread| thread.tid).expect("an id"),
        begin: begin.0,
        end: begin.0 + part("total_ns") as i64,
        parts: [
            part("interrupt_ns"),
            part("kernel_ns"),
            part("scheduler_ns"),
            part("lwp_ns"),
            part("thread_ns"),
        ],
        source: row.text("source").to_owned(),
        cpu: part("cpu") as u32,
    }
}

/// Reactions in the report, sorted.
fn found(report: &Report) -> Vec<ModelReaction> {
    let mut found: Vec<ModelReaction> = report.rows("longest").map(reaction).collect();
    found.sort();
    found
}

/// Reactions of the model, without threads whose description was lost: the report omits them.
fn expected(set: &TraceSet) -> Vec<ModelReaction> {
    let described = super_records(set).into_iter();
    let described = described.filter(|of| of.record.name == "tracebraid_levels:thread");
    let described: BTreeSet<i32> = described.filter_map(|of| of.record.id("tid")).collect();
    let mut expected = reactions(set);
    expected.retain(|reaction| described.contains(&reaction.tid));
    expected
}

fn same(what: &str, expected: &[ModelReaction], set: &TraceSet, way: (usize, u64)) {
    let found = found(&report(set, way));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

#[test]
fn reactions_are_those_of_a_plain_pass() {
    let mut all = 0;
    for (name, shape) in shapes() {
        for seed in 0..3 {
            let (_directory, set) = super_trace(seed, shape);
            let expected = expected(&set);
            same(
                &format!("{name}, seed {seed}"),
                &expected,
                &set,
                (1, u64::MAX),
            );
            all += expected.len();
            for way in [(2, 1), (2, 3000), (5, 20_000)] {
                same(
                    &format!("{name}, seed {seed}, {way:?}"),
                    &expected,
                    &set,
                    way,
                );
            }
        }
    }
    assert!(all > 1000, "{all} reactions");
}

#[test]
fn reactions_depend_on_neither_threads_nor_chunks() {
    for (name, shape) in shapes() {
        let (_directory, set) = super_trace(7, shape);
        as_in_one_piece::<ReactionAnalysis>(name, &set, ALL, SMALL);
    }
    for seed in 1..3 {
        let shape = LevelShape {
            steps: 20_000,
            lost_super_packets: 5,
            ..LevelShape::PLAIN
        };
        let (_directory, set) = super_trace(seed, shape);
        as_in_one_piece::<ReactionAnalysis>("a long recording", &set, ALL, SMALL);
        any_tree::<ReactionAnalysis>(&set, seed);
    }
}
