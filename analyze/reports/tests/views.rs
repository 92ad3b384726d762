//! Views of reports whose statistics have a form of their own: limits and second passes.

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::kernel::{KernelAnalysis, Limits, Selection, ThreadFilter};
use tracebraid_reports::report::View;

use crate::support::law::{ALL, SMALL, every_way, folded};
use crate::support::naming::Naming;
use crate::support::synthetic::{Shape, trace};
use crate::support::traces::kernel_trace;

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 12_000,
    silent_losses: 10,
    lost_packets: 10,
    counted_losses: 10,
    packet: 900,
    naming: Naming::Lttng,
    told_memory: true,
    told_threads: false,
    clone3: false,
    tid_context: false,
    pid_context: false,
    two_streams: false,
    ties: true,
};

fn report<A: KernelAnalysis>(set: &TraceSet, selection: &Selection) -> Json {
    let analysis = A::new(set, selection.clone());
    serde_json::from_str(&folded(set, &analysis, (1, u64::MAX))).expect("JSON")
}

fn rows<'a>(report: &'a Json, list: &str) -> &'a [Json] {
    report[list].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(row: &Json, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} is a number: {row}"))
}

/// All views, of what is that long or large.
fn all_views(min: u64, max: u64) -> Selection {
    Selection {
        views: View::ALL.to_vec(),
        limits: Limits {
            min: Some(min),
            max: Some(max),
        },
        ..ALL.selection()
    }
}

/// Those rows of a list that are within limits.
fn within(list: &[Json], key: &str, limits: Limits) -> Vec<Json> {
    let least = limits.min.unwrap_or(0);
    let most = limits.max.unwrap_or(u64::MAX);
    let of = |row: &&Json| (least..=most).contains(&number(row, key));
    list.iter().filter(of).cloned().collect()
}

/// A random trace, which is gone afterwards.
fn with_trace(seed: u64, then: impl FnOnce(&TraceSet)) {
    let (directory, set) = trace(seed, SHAPE);
    then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

/// Limits choose rows of the log; what was active stays, and the law holds.
#[test]
fn limits_choose_stretches() {
    for seed in 0..4 {
        with_trace(seed, |set| {
            let whole = report::<CpuAnalysis>(set, &all_views(0, u64::MAX));
            let lengths: Vec<u64> = (rows(&whole, "log").iter())
                .map(|row| number(row, "duration_ns"))
                .collect();
            let (min, max) = (lengths[lengths.len() / 3], lengths[lengths.len() / 2]);
            let selection = all_views(min.min(max), min.max(max));
            let some = report::<CpuAnalysis>(set, &selection);
            let expected = within(rows(&whole, "log"), "duration_ns", selection.limits);
            assert!(!expected.is_empty() && expected.len() < lengths.len());
            assert_eq!(rows(&some, "log"), expected);
            assert_eq!(number(&some["stretches"][0], "count"), expected.len() as u64);
            for list in ["cpus", "threads", "processes", "total"] {
                assert_eq!(some[list], whole[list], "{list}");
            }
            let analysis = CpuAnalysis::new(set, selection);
            let expected = folded(set, &analysis, (1, u64::MAX));
            every_way("stretches within limits", set, &analysis, &expected, SMALL);
        });
    }
}

/// The stretches of all threads that are shown add up to their active time.
#[test]
fn stretches_add_up() {
    for name in ["kernel-mix-small", "kernel-discarded"] {
        let Some(set) = kernel_trace(name) else { continue };
        let whole = report::<CpuAnalysis>(&set, &all_views(0, u64::MAX));
        let active = number(&whole["total"], "active_ns");
        assert_eq!(number(&whole["stretches"][0], "total_ns"), active, "{name}");
        let cuts = |cut: &str| {
            rows(&whole, "log")
                .iter()
                .filter(|row| row["cut_by"] == cut)
                .count()
        };
        assert_eq!(cuts("loss") > 0, name == "kernel-discarded");
        assert!(cuts("range") > 0, "those that run at the end");
    }
}

/// Each stretch is in one step of the second pass, also with a filter of threads, in every way.
#[test]
fn the_second_pass_counts_every_stretch_once() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    for tids in [vec![], vec![284, 249]] {
        let threads = ThreadFilter {
            tids,
            ..ThreadFilter::default()
        };
        let selection = Selection {
            threads,
            ..all_views(20_000, 5_000_000)
        };
        let analysis = CpuAnalysis::new(&set, selection.clone());
        let first = tracebraid_fold::fold(&set, &analysis, Default::default(), &Default::default());
        let first = first.expect("nobody cancels").report;
        let ranges = first.lists.ranges.clone();
        assert!(ranges.len() > 2);
        let second = Selection {
            ranges: Some(ranges),
            ..selection
        };
        let analysis = CpuAnalysis::new(&set, second.clone());
        let expected = folded(&set, &analysis, (1, u64::MAX));
        every_way("the second pass", &set, &analysis, &expected, SMALL);
        let second = report::<CpuAnalysis>(&set, &second);
        let first = serde_json::to_value(first).expect("JSON");
        let count = |name: &str| -> u64 {
            let bins = rows(&second, "distribution").iter();
            let own = bins.filter(|bin| bin["of"] == name);
            own.map(|bin| number(bin, "count")).sum()
        };
        assert_eq!(count("all"), number(&first["stretches"][0], "count"));
        for tid in [284, 249] {
            let of = |row: &&Json| row["tid"] == tid;
            let row = rows(&first, "thread_stretches").iter().find(of).expect("a row");
            let name = row["name"].as_str().expect("a name");
            assert_eq!(count(&format!("{name} ({tid})")), number(row, "count"));
        }
        assert!(second.get("log").is_none(), "only a second pass");
    }
}
