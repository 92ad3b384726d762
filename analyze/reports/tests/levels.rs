//! User-level threads and LWPs: sums against the truth of generated recordings, and the law.

use std::collections::BTreeMap;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_models::law::{ALL, SMALL, any_tree, as_in_one_piece, window};
use tracebraid_models::levels::{
    Duty, LevelShape, LevelTruth, UserLevelState, UserLevelStretch, record,
};
use tracebraid_reports::levels::{LevelAnalysis, ReactionAnalysis};
use tracebraid_tables::{Report, Row, Value};

/// The truth about a recording, and its super-trace.
fn recorded(seed: u64, shape: LevelShape) -> (tempfile::TempDir, LevelTruth, TraceSet) {
    let directory = tempfile::tempdir().expect("a directory");
    let traces = record(seed, shape, directory.path());
    let set = TraceSet::open(&[&traces.super_trace]).expect("a super-trace");
    (directory, traces.truth, set)
}

fn report(set: &TraceSet) -> Report {
    report_of(set, Selection::default())
}

fn report_of(set: &TraceSet, selection: Selection) -> Report {
    let analysis = LevelAnalysis::new(set, selection);
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    outcome.expect("the fold is not cancelled").report
}

/// Nanoseconds by process and id, over all lives.
type ById = BTreeMap<(i32, u64), u64>;

fn sums(truth: &LevelTruth, counts: impl Fn(&UserLevelState) -> bool) -> ById {
    let mut sums = ById::new();
    for ((pid, ult, _), stretches) in &truth.lives {
        let counted = stretches.iter().filter(|stretch| counts(&stretch.state));
        let length = |stretch: &UserLevelStretch| stretch.to - stretch.from;
        *sums.entry((*pid, *ult)).or_default() += counted.map(length).sum::<u64>();
    }
    sums
}

fn column(report: &Report, key: &str) -> ById {
    let id = |row: &Row<'_>| {
        let pid = row.thread().expect("a thread").pid.expect("a process");
        (pid, row.unsigned("ult"))
    };
    report
        .rows("threads")
        .map(|row| (id(&row), row.unsigned(key)))
        .collect()
}

fn has_truth(what: &str, truth: &LevelTruth, report: &Report) {
    use UserLevelState::*;
    let same = |key: &str, counts: fn(&UserLevelState) -> bool| {
        assert_eq!(column(report, key), sums(truth, counts), "{what}: {key}");
    };
    same("active_ns", |state| matches!(state, Active { .. }));
    same("preempted_ns", |state| matches!(state, LwpPreempted { .. }));
    same("kernel_ns", |state| matches!(state, LwpBlocked { .. }));
    same("lwp_ready_ns", |state| matches!(state, LwpReady { .. }));
    same("ready_ns", |state| matches!(state, Ready));
    same("blocked_ns", |state| matches!(state, Blocked { .. }));
    same("idle_ns", |state| !matches!(state, Active { .. }));
    same("unknown_ns", |_| false);
}

/// By user-level thread and preemptor.
fn has_preemptors(what: &str, truth: &LevelTruth, report: &Report) {
    let mut expected: BTreeMap<(i32, u64, i32), u64> = BTreeMap::new();
    let pids: Vec<i32> = {
        let mut pids: Vec<i32> = truth.lives.keys().map(|(pid, ..)| *pid).collect();
        pids.dedup();
        pids
    };
    let of_tid: BTreeMap<i32, i32> = truth
        .records
        .values()
        .map(|record| (record.owner.lwp, record.owner.pid))
        .collect();
    for ((pid, ult, _), stretches) in &truth.lives {
        for stretch in stretches {
            if let UserLevelState::LwpPreempted { by, by_ult, .. } = stretch.state {
                let process = pids.iter().position(|pid| Some(pid) == of_tid.get(&by));
                let by = match process {
                    Some(process) if by_ult != 0 => {
                        100_000_000 * (process as i32 + 1) + by_ult as i32
                    }
                    _ => by,
                };
                *expected.entry((*pid, *ult, by)).or_default() += stretch.to - stretch.from;
            }
        }
    }
    let mut found: BTreeMap<(i32, u64, i32), u64> = BTreeMap::new();
    for row in report.rows("preempted_by") {
        let thread = row.thread().expect("a thread");
        let ult = u64::from(thread.tid.expect("an id") as u32 % 100_000_000);
        let Value::Thread(by) = row.value("preemptor") else {
            panic!("a thread preempts");
        };
        let key = (thread.pid.expect("a process"), ult, by.tid.expect("an id"));
        *found.entry(key).or_default() += row.unsigned("preempted_ns");
    }
    found.retain(|_, ns| *ns > 0);
    assert_eq!(found, expected, "{what}");
}

fn has_reasons(what: &str, truth: &LevelTruth, report: &Report) {
    let mut expected: BTreeMap<(i32, u64, String), u64> = BTreeMap::new();
    for ((pid, ult, _), stretches) in &truth.lives {
        for stretch in stretches {
            if let UserLevelState::Blocked { reason } = &stretch.state {
                *expected.entry((*pid, *ult, reason.clone())).or_default() +=
                    stretch.to - stretch.from;
            }
        }
    }
    let mut found: BTreeMap<(i32, u64, String), u64> = BTreeMap::new();
    for row in report.rows("blocked") {
        let thread = row.thread().expect("a thread");
        let ult = u64::from(thread.tid.expect("an id") as u32 % 100_000_000);
        let key = (
            thread.pid.expect("a process"),
            ult,
            row.text("reason").to_owned(),
        );
        *found.entry(key).or_default() += row.unsigned("blocked_ns");
    }
    found.retain(|_, ns| *ns > 0);
    assert_eq!(found, expected, "{what}");
}

/// In user-level threads, and in the scheduler.
fn has_duties(what: &str, truth: &LevelTruth, report: &Report) {
    let mut expected: BTreeMap<i32, u64> = BTreeMap::new();
    for (lwp, duties) in &truth.duties {
        for (from, to, duty) in duties {
            if let Duty::Thread(_) = duty {
                *expected.entry(*lwp).or_default() += to - from;
            }
        }
    }
    let lwps = report.rows("lwps").map(|row| {
        let lwp = row.value("lwp");
        let Value::Thread(lwp) = lwp else {
            panic!("an LWP")
        };
        (lwp.tid.expect("an id"), row.unsigned("threads_ns"))
    });
    let mut found: BTreeMap<i32, u64> = lwps.collect();
    found.retain(|_, ns| *ns > 0);
    assert_eq!(found, expected, "{what}");
}

#[test]
fn sums_are_those_of_the_truth() {
    for (name, shape) in LevelShape::all() {
        if shape.unrecorded_steps > 0 {
            continue;
        }
        for seed in 0..4 {
            let what = format!("{name}, seed {seed}");
            let (_directory, truth, set) = recorded(seed, shape);
            let report = report(&set);
            has_truth(&what, &truth, &report);
            has_preemptors(&what, &truth, &report);
            has_reasons(&what, &truth, &report);
            has_duties(&what, &truth, &report);
        }
    }
}

#[test]
fn reports_depend_on_neither_threads_nor_chunks() {
    for (name, shape) in LevelShape::all() {
        let (_directory, _, set) = recorded(0, shape);
        as_in_one_piece::<LevelAnalysis>(name, &set, ALL, SMALL);
        as_in_one_piece::<ReactionAnalysis>(name, &set, ALL, SMALL);
    }
    for seed in 1..3 {
        let shape = LevelShape {
            steps: 20_000,
            ..LevelShape::PLAIN
        };
        let (_directory, _, set) = recorded(seed, shape);
        as_in_one_piece::<LevelAnalysis>("a long recording", &set, ALL, SMALL);
        any_tree::<LevelAnalysis>(&set, seed);
        any_tree::<ReactionAnalysis>(&set, seed);
    }
}

/// Each nanosecond belongs to one range.
#[test]
fn ranges_share_the_time() {
    for (name, shape) in LevelShape::all() {
        let (_directory, _, set) = recorded(3, shape);
        let whole = report(&set);
        let (begin, end) = (
            whole.head.begin.expect("events").0,
            whole.head.end.expect("events").0,
        );
        let middle = begin + (end - begin) / 3;
        let range = |range| {
            report_of(
                &set,
                Selection {
                    window: window(range),
                    ..Selection::default()
                },
            )
        };
        let (first, second) = (range((i64::MIN, middle)), range((middle, i64::MAX)));
        for key in [
            "active_ns",
            "preempted_ns",
            "kernel_ns",
            "lwp_ready_ns",
            "ready_ns",
            "blocked_ns",
        ] {
            let mut sums = column(&first, key);
            for (thread, ns) in column(&second, key) {
                *sums.entry(thread).or_default() += ns;
            }
            assert_eq!(sums, column(&whole, key), "{name}: {key}");
        }
    }
}
