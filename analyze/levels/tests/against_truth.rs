//! Super-traces of generated recordings against what happened, and against a plain merge.

use std::collections::BTreeMap;

use tempfile::TempDir;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Control;
use tracebraid_levels::{Options, merge};
use tracebraid_models::levels::{
    self, LevelShape, LevelTraces, Merged, SuperRecord, UNKNOWN, record, super_records,
};

/// Threads, bytes of chunks, bytes of windows.
const WAYS: [(usize, u64, u64); 4] = [
    (1, 0, 0),
    (1, 1, 20_000),
    (3, 2_000, 60_000),
    (4, 10_000, 1),
];

struct Recording {
    directory: TempDir,
    traces: LevelTraces,
    set: TraceSet,
    shape: LevelShape,
}

fn recorded(seed: u64, shape: LevelShape) -> Recording {
    let directory = tempfile::tempdir().expect("a directory");
    let traces = record(seed, shape, directory.path());
    let set = TraceSet::open(&traces.all()).expect("the traces can be opened");
    Recording {
        directory,
        traces,
        set,
        shape,
    }
}

impl Recording {
    fn merged(&self, (threads, chunk_bytes, window_bytes): (usize, u64, u64)) -> Vec<SuperRecord> {
        let to = self
            .directory
            .path()
            .join(format!("super-{threads}-{window_bytes}"));
        let options = Options {
            threads,
            chunk_bytes,
            window_bytes,
            bound: Some(self.shape.clock_error),
        };
        let merged = merge(&self.set, &to, options, &Control::default()).expect("a super-trace");
        assert_eq!(merged.len(), 1, "one host");
        let set = TraceSet::open(&[&to]).expect("the super-trace can be opened");
        super_records(&set)
    }

    fn model(&self) -> Merged {
        levels::merge(&self.set, self.shape.clock_error as i64)
    }
}

/// The original records by serial number, each once.
fn by_serial<'a>(what: &str, records: &'a [SuperRecord]) -> BTreeMap<u64, &'a SuperRecord> {
    let mut by_serial = BTreeMap::new();
    for record in records {
        if let Some(serial) = record.serial().filter(|serial| *serial > 0) {
            let other = by_serial.insert(serial, record);
            assert!(other.is_none(), "{what}: record {serial} occurs twice");
        }
    }
    by_serial
}

/// Owners are those of the truth, or unknown.
fn never_wrong(what: &str, of: &Recording, records: &BTreeMap<u64, &SuperRecord>) {
    let truth = &of.traces.truth.records;
    assert!(records.keys().eq(truth.keys()), "{what}: each record once");
    for (serial, found) in records {
        let expected = &truth[serial];
        let owner = expected.owner;
        let what = format!("{what}, record {serial}: {found:?}, truth {expected:?}");
        assert!(
            found.cpu.is_none_or(|cpu| cpu == owner.cpu),
            "CPU of {what}"
        );
        assert!(found.lwp == -1 || found.lwp == owner.lwp, "LWP of {what}");
        // The entry of an interrupt may be lost.
        let is_current = of.shape.lost_kernel_packets > 0 && found.ult == owner.current;
        let is_right = found.ult == owner.ult || found.ult == UNKNOWN || is_current;
        assert!(is_right, "user-level thread of {what}");
    }
}

/// Owners and times are those of the plain merge.
fn as_model(what: &str, of: &Recording, records: &BTreeMap<u64, &SuperRecord>) {
    let model = of.model();
    for (serial, found) in records {
        let expected = &model.records[serial];
        let of_found = (found.cpu, found.tid, found.lwp, found.ult, found.time);
        let of_model = (
            expected.cpu,
            expected.tid,
            expected.lwp,
            expected.ult,
            expected.time,
        );
        assert_eq!(of_found, of_model, "{what}, record {serial}: {found:?}");
    }
}

/// Records of a stream are in the order of time, and those of a CPU in the kernel's order.
fn in_order(what: &str, of: &Recording, records: &[SuperRecord]) {
    let mut last: BTreeMap<usize, (i64, u64)> = BTreeMap::new();
    for record in records {
        let (time, serial) = last.entry(record.stream).or_insert((i64::MIN, 0));
        assert!(*time <= record.time, "{what}: {record:?} after {time}");
        *time = record.time;
        let truth = record
            .serial()
            .and_then(|own| of.traces.truth.records.get(&own));
        if let (Some(own), Some(true)) = (record.serial(), truth.map(|truth| truth.is_kernel)) {
            assert!(*serial < own, "{what}: record {own} after {serial}");
            *serial = own;
        }
    }
}

fn check(
    of_shape: fn(&LevelShape) -> bool,
    seeds: u64,
    check: impl Fn(&str, &Recording, &[SuperRecord]),
) {
    for (name, shape) in LevelShape::all() {
        if !of_shape(&shape) {
            continue;
        }
        for seed in 0..seeds {
            let recording = recorded(seed, shape);
            for way in WAYS {
                // A record is not moved across the border of a window.
                if shape.clock_error > 0 && way.2 > 0 {
                    continue;
                }
                let what = format!("{name}, seed {seed}, {way:?}");
                check(&what, &recording, &recording.merged(way));
            }
        }
    }
}

#[test]
fn owners_are_those_of_the_truth_or_unknown() {
    check(
        |_| true,
        4,
        |what, recording, records| {
            in_order(what, recording, records);
            never_wrong(what, recording, &by_serial(what, records));
        },
    );
}

#[test]
fn owners_are_those_of_the_plain_merge() {
    // Around losses, the model knows less: from the last record on, not from the end of its packet.
    let is_decided = |shape: &LevelShape| shape.lost_kernel_packets + shape.lost_user_packets == 0;
    check(is_decided, 4, |what, recording, records| {
        as_model(what, recording, &by_serial(what, records));
    });
}

/// Of an event of user-level scheduling: time, CPU, name, thread, and its integers.
type DerivedEvent = (i64, Option<u32>, String, i32, i32, u64, Vec<(String, i64)>);

fn derived(records: &[SuperRecord]) -> Vec<DerivedEvent> {
    let of = |record: &SuperRecord| {
        let mut fields: Vec<_> = record
            .record
            .ints
            .iter()
            .map(|(name, value)| (name.clone(), *value))
            .collect();
        // The CPU where a user-level thread will run is unknown.
        fields.retain(|(name, _)| {
            !["prio", "prev_prio", "next_prio", "target_cpu"].contains(&name.as_str())
        });
        fields.sort();
        let SuperRecord {
            time,
            cpu,
            tid,
            lwp,
            ult,
            record,
            ..
        } = record;
        (*time, *cpu, record.name.clone(), *tid, *lwp, *ult, fields)
    };
    let is_derived = |record: &&SuperRecord| {
        record.record.int("level").is_some_and(|level| level > 0)
            || record.record.name.starts_with("ult_wait_")
    };
    let mut all: Vec<_> = records.iter().filter(is_derived).map(of).collect();
    all.sort();
    all
}

#[test]
fn derived_events_are_those_of_a_perfect_merge() {
    let is_exact = |shape: &LevelShape| {
        let lost = shape.lost_kernel_packets + shape.lost_user_packets;
        lost == 0 && shape.clock_error == 0 && shape.unrecorded_steps == 0
    };
    check(is_exact, 3, |what, recording, records| {
        let set = TraceSet::open(&[&recording.traces.super_trace]).expect("a super-trace");
        let expected = derived(&super_records(&set));
        let found = derived(records);
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(found, expected, "{what}");
        }
        assert_eq!(found.len(), expected.len(), "{what}");
    });
}
