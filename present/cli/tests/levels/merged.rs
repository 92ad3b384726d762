//! The super-trace agrees with the log of the M:N library: for each record, each sample and each
//! interval, it has the user-level thread, the LWP and the CPU.

use std::collections::BTreeMap;
use std::path::Path;

use crate::examples::{built, fields_agree, recorded};
use crate::mn_truth::{TruthEntry, mn_truth};
use crate::recorded_schedule::{KERNEL_CLOCK_ERROR, RecordedSchedule, kernel_runs};
use crate::super_trace::{CpuPiece, SuperRecord, SuperTrace, add_switch, runs_about};
use crate::support::can_record_kernel;

type Truth = BTreeMap<u64, Vec<TruthEntry>>;

/// Entries of an LWP that correspond to event records.
fn recorded_entries(entries: &[TruthEntry]) -> impl Iterator<Item = &TruthEntry> {
    entries.iter().filter(|entry| entry.kind != "sample")
}

/// Each record has its time, its LWP, the user-level thread that was current, and the CPU.
fn check_records(merged: &SuperTrace, recorded: &RecordedSchedule, truth: &Truth) {
    let mut moved = 0;
    assert!(merged.records.keys().eq(truth.keys()), "LWPs");
    for (tid, entries) in truth {
        let records = &merged.records[tid];
        let originals = &recorded.lwps[tid];
        assert_eq!(records.len(), originals.len(), "records of LWP {tid}");
        let mut current = 0;
        for ((entry, record), original) in recorded_entries(entries).zip(records).zip(originals) {
            assert!(
                fields_agree(entry, &record.class, &record.payload),
                "{entry:?}\n{record:?}"
            );
            assert!(
                record.time.abs_diff(original.time) <= KERNEL_CLOCK_ERROR,
                "{original:?}\n{record:?}"
            );
            moved += usize::from(record.time != original.time);
            assert_eq!(record.ult, current, "{entry:?}\n{record:?}");
            let cpus = [entry.cpu_before, entry.cpu_after].map(Some);
            // The kernel moved the LWP while it recorded: it may have been on a third CPU.
            if cpus[0] == cpus[1] {
                assert_eq!(record.cpu, cpus[0], "{entry:?}\n{record:?}");
            }
            if entry.kind == "switch" {
                current = entry.b;
            }
        }
    }
    let all: usize = merged.records.values().map(Vec::len).sum();
    assert!(moved * 1000 <= all, "{moved} of {all} records were moved");
}

/// Each sample finds its user-level thread on its CPU.
fn check_samples(merged: &SuperTrace, truth: &Truth) -> usize {
    let mut count = 0;
    for sample in truth.values().flatten() {
        if sample.kind == "sample" && sample.cpu_before == sample.cpu_after {
            let pieces = &merged.pieces[&sample.cpu_before];
            let tid = merged.tids[&sample.a];
            assert!(runs_about(pieces, sample.before, tid), "{sample:?}");
            count += 1;
        }
    }
    count
}

/// Where the kernel ran each LWP, in the order of time.
fn pieces_of_lwps(trace: &str) -> BTreeMap<u64, Vec<CpuPiece>> {
    let mut lwps: BTreeMap<u64, Vec<CpuPiece>> = BTreeMap::new();
    for (cpu, runs) in kernel_runs(trace) {
        let mut pieces = Vec::new();
        for (time, tid) in runs {
            add_switch(&mut pieces, cpu, tid, time);
        }
        for piece in pieces {
            lwps.entry(piece.tid).or_default().push(piece);
        }
    }
    for pieces in lwps.values_mut() {
        pieces.sort_by_key(|piece| piece.begin);
    }
    lwps
}

/// The parts of an interval in which the LWP held a CPU.
fn parts(pieces: &[CpuPiece], begin: u64, end: u64) -> Vec<CpuPiece> {
    let first = pieces.partition_point(|piece| piece.end <= begin);
    let held = pieces[first..].iter().take_while(|piece| piece.begin < end);
    let part = |piece: &CpuPiece| CpuPiece {
        begin: piece.begin.max(begin),
        end: piece.end.min(end),
        ..*piece
    };
    held.map(part).collect()
}

/// Each interval of each user-level thread on an LWP has the same parts on the same CPUs as the LWP.
fn check_intervals(trace: &str, merged: &SuperTrace) -> usize {
    let lwps = pieces_of_lwps(trace);
    let mut ults: BTreeMap<u64, Vec<CpuPiece>> = BTreeMap::new();
    for piece in merged.pieces.values().flatten() {
        // Two switches at the same time have nothing between them.
        if piece.begin < piece.end {
            ults.entry(piece.tid).or_default().push(*piece);
        }
    }
    for pieces in ults.values_mut() {
        pieces.sort_by_key(|piece| piece.begin);
    }
    let mut count = 0;
    for (lwp, records) in &merged.records {
        let is_switch = |record: &&SuperRecord| record.class == "ult_switch";
        let switches: Vec<_> = records.iter().filter(is_switch).collect();
        for pair in switches.windows(2) {
            let ult = pair[0].payload["next_ult"].as_u64().expect("a number");
            if ult == 0 {
                continue;
            }
            let (begin, end) = (pair[0].time, pair[1].time);
            let tid = merged.tids[&ult];
            let of_ult = |part: CpuPiece| CpuPiece { tid, ..part };
            let expected = parts(&lwps[lwp], begin, end).into_iter().map(of_ult);
            let expected: Vec<CpuPiece> = expected.collect();
            let pieces = ults.get(&tid).map(Vec::as_slice).unwrap_or_default();
            assert_eq!(parts(pieces, begin, end), expected, "{ult} on {lwp}");
            count += expected.len();
        }
    }
    count
}

fn check(trace: &str, truth: &Path) {
    let recorded = RecordedSchedule::of(trace);
    let truth = mn_truth(truth);
    let merged = SuperTrace::of(trace, recorded.offset);
    assert_eq!(merged.violations, 0);
    check_records(&merged, &recorded, &truth);
    let samples = check_samples(&merged, &truth);
    let intervals = check_intervals(trace, &merged);
    println!("{samples} samples and {intervals} parts of intervals agree");
    assert!(samples > 1000 && intervals > 1000);
}

/// Thousands of user-level threads on more LWPs than CPUs, preempted by other processes, and moved by
/// both schedulers.
#[test]
fn each_interval_of_the_log_is_in_the_super_trace() {
    if !can_record_kernel() {
        return;
    }
    let directory = built(&[]);
    let arguments = [
        "threads=800",
        "steps=10",
        "hogs=2",
        "seed=3",
        "queues=stealing",
    ];
    let (trace, truth) = recorded(directory.path(), "torture", &arguments);
    check(&trace, &truth);
}
