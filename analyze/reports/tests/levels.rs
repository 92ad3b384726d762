//! User-level threads and LWPs: sums against the truth of generated recordings, and the law.

use std::collections::{BTreeMap, BTreeSet};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_models::law::{ALL, SMALL, any_tree, any_tree_of, as_in_one_piece, window};
use tracebraid_models::levels::{
    CallTruth, Duty, LevelShape, LevelTruth, UserLevelState, UserLevelStretch, record,
};
use tracebraid_reports::levels::{LevelAnalysis, LevelOptions};
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

/// By process, user-level thread and function or call: calls, unfinished calls, nanoseconds on a
/// CPU, of these in the function itself, and in all.
type ByCall = BTreeMap<(i32, u64, String), [u64; 5]>;

impl CallOf<'_> {
    fn end(&self) -> u64 {
        let last = self.truth.lives[&self.call.life].last();
        self.call
            .to
            .unwrap_or_else(|| last.map_or(self.call.from, |last| last.to))
    }

    fn active(&self) -> u64 {
        let stretches = self.truth.lives[&self.call.life].iter();
        let active =
            stretches.filter(|stretch| matches!(stretch.state, UserLevelState::Active { .. }));
        let (from, to) = (self.call.from, self.end());
        let part =
            |stretch: &UserLevelStretch| stretch.to.min(to).saturating_sub(stretch.from.max(from));
        active.map(part).sum()
    }

    /// The calls around it, from the innermost.
    fn around(&self) -> impl Iterator<Item = &CallTruth> {
        let calls = &self.truth.calls;
        std::iter::successors(self.call.within, |at| calls[*at].within).map(|at| &calls[at])
    }
}

/// A call of the truth.
struct CallOf<'a> {
    truth: &'a LevelTruth,
    call: &'a CallTruth,
}

fn calls_of_truth(truth: &LevelTruth, is_system: bool) -> ByCall {
    let mut sums = ByCall::new();
    let lived = |call: &&CallTruth| truth.lives.contains_key(&call.life);
    for call in truth.calls.iter().filter(lived) {
        if call.is_system != is_system {
            continue;
        }
        let of = CallOf { truth, call };
        let (active, wall) = (of.active(), of.end() - call.from);
        let key = |name: &str| (call.life.0, call.life.1, name.to_owned());
        let is_outermost = is_system || of.around().all(|other| other.name != call.name);
        let sum = sums.entry(key(&call.name)).or_default();
        sum[0] += 1;
        sum[1] += u64::from(call.to.is_none());
        sum[2] += if is_outermost { active } else { 0 };
        sum[3] = sum[3].wrapping_add(active);
        sum[4] += if is_outermost { wall } else { 0 };
        if let Some(around) = of.around().next().filter(|_| !is_system) {
            let sum = sums.entry(key(&around.name)).or_default();
            sum[3] = sum[3].wrapping_sub(active);
        }
    }
    sums
}

fn calls_of_report(report: &Report, is_system: bool) -> ByCall {
    let (table, name) = match is_system {
        true => ("calls", "call"),
        false => ("functions", "function"),
    };
    let row = |row: Row<'_>| {
        let thread = row.thread().expect("a thread");
        let ult = u64::from(thread.tid.expect("an id") as u32 % 100_000_000);
        let active = row.unsigned("active_ns");
        let (own, wall) = match is_system {
            true => (active, active + row.unsigned("waiting_ns")),
            false => (row.unsigned("own_ns"), row.unsigned("wall_ns")),
        };
        let sums = [
            row.unsigned("calls"),
            row.unsigned("unfinished"),
            active,
            own,
            wall,
        ];
        let key = (
            thread.pid.expect("a process"),
            ult,
            row.text(name).to_owned(),
        );
        (key, sums)
    };
    report.rows(table).map(row).collect()
}

fn has_calls(what: &str, truth: &LevelTruth, report: &Report, shape: LevelShape) {
    let same = |is_system: bool| {
        assert_eq!(
            calls_of_report(report, is_system),
            calls_of_truth(truth, is_system),
            "{what}"
        );
    };
    same(false);
    if shape.syscalls {
        same(true);
    }
}

/// Nanoseconds by a ready user-level thread and another one that had the CPU meanwhile.
type Kept = BTreeMap<((i32, u64), (i32, u64)), u64>;

/// Also the threads that once ran for no time, so that the truth does not contain their CPU.
fn kept_of_truth(truth: &LevelTruth) -> (Kept, BTreeSet<(i32, u64)>) {
    let mut active: BTreeMap<u32, Vec<(u64, u64, (i32, u64))>> = BTreeMap::new();
    for ((pid, ult, _), stretches) in &truth.lives {
        for stretch in stretches {
            if let UserLevelState::Active { cpu, .. } = stretch.state {
                let turns = active.entry(cpu).or_default();
                turns.push((stretch.from, stretch.to, (*pid, *ult)));
            }
        }
    }
    let (mut kept, mut uncertain) = (Kept::new(), BTreeSet::new());
    for ((pid, ult, _), stretches) in &truth.lives {
        // It may have run at the very end.
        let last = stretches.last();
        if last.is_some_and(|last| last.state == UserLevelState::Ready) {
            uncertain.insert((*pid, *ult));
        }
        for pair in stretches.windows(2) {
            if pair[0].state != UserLevelState::Ready {
                continue;
            }
            let UserLevelState::Active { cpu, .. } = &pair[1].state else {
                uncertain.insert((*pid, *ult));
                continue;
            };
            for (from, to, other) in &active[cpu] {
                let ns = pair[0].to.min(*to).saturating_sub(pair[0].from.max(*from));
                if ns > 0 {
                    *kept.entry(((*pid, *ult), *other)).or_default() += ns;
                }
            }
        }
    }
    (kept, uncertain)
}

/// Nanoseconds by ready user-level thread; true: kept by threads of another process.
type KeptBy = BTreeMap<((i32, u64), bool), u64>;

fn has_keepers(what: &str, truth: &LevelTruth, report: &Report) {
    let mut kept = KeptBy::new();
    let mut whole = ById::new();
    let id = |tid: i32| u64::from(tid as u32 % 100_000_000);
    for row in report.rows("kept_by") {
        let thread = row.thread().expect("a thread");
        let waiter = (
            thread.pid.expect("a process"),
            id(thread.tid.expect("an id")),
        );
        *whole.entry(waiter).or_default() += row.unsigned("kept_ns");
        let is_other = match row.text("keeper") {
            "user-level threads" => false,
            "other processes" => true,
            _ => continue,
        };
        *kept.entry((waiter, is_other)).or_default() += row.unsigned("kept_ns");
    }
    assert_eq!(whole, ready_by_thread(report), "{what}");
    let (pairs, uncertain) = kept_of_truth(truth);
    let (mut expected, mut keepers) = (KeptBy::new(), ById::new());
    for ((waiter, keeper), ns) in pairs {
        *expected.entry((waiter, waiter.0 != keeper.0)).or_default() += ns;
        *keepers.entry(keeper).or_default() += ns;
    }
    let certain = |kept: &KeptBy| {
        let mut kept = kept.clone();
        kept.retain(|(waiter, _), _| !uncertain.contains(waiter));
        kept
    };
    assert_eq!(certain(&kept), certain(&expected), "{what}");
    let mut of_report = ById::new();
    for row in report.rows("keepers") {
        let thread = row.thread().expect("a thread");
        let key = (
            thread.pid.expect("a process"),
            id(thread.tid.expect("an id")),
        );
        *of_report.entry(key).or_default() += row.unsigned("kept_ns");
    }
    let all = |kept: u64, ns: &u64| kept + ns;
    assert_eq!(
        of_report.values().fold(0, all),
        kept.values().fold(0, all),
        "{what}"
    );
    // Some waits are not in the truth.
    for (keeper, ns) in keepers {
        let kept = of_report.get(&keeper);
        assert!(
            kept.is_some_and(|kept| *kept >= ns),
            "{what}: {keeper:?} {kept:?} {ns}"
        );
    }
}

/// Of threads that were ready without an LWP.
fn ready_by_thread(report: &Report) -> ById {
    let mut ready = column(report, "ready_ns");
    ready.retain(|_, ns| *ns > 0);
    ready
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
            has_calls(&what, &truth, &report, shape);
            has_keepers(&what, &truth, &report);
        }
    }
}

#[test]
fn reports_depend_on_neither_threads_nor_chunks() {
    for (name, shape) in LevelShape::all() {
        let (_directory, _, set) = recorded(0, shape);
        as_in_one_piece::<LevelAnalysis>(name, &set, ALL, SMALL);
    }
    for seed in 1..3 {
        let shape = LevelShape {
            steps: 20_000,
            ..LevelShape::PLAIN
        };
        let (_directory, _, set) = recorded(seed, shape);
        as_in_one_piece::<LevelAnalysis>("a long recording", &set, ALL, SMALL);
        any_tree::<LevelAnalysis>(&set, seed);
    }
}

/// Nanoseconds of a probe.
const COST: u32 = 7;

fn compensating(set: &TraceSet) -> LevelAnalysis {
    let options = LevelOptions {
        probe_costs: vec![COST],
        ..LevelOptions::default()
    };
    LevelAnalysis::with(set, Selection::default(), options)
}

#[test]
fn compensation_subtracts_each_probe() {
    for seed in 0..3 {
        let (_directory, truth, set) = recorded(seed, LevelShape::PLAIN);
        let outcome = fold(
            &set,
            &compensating(&set),
            Options::default(),
            &Control::default(),
        );
        let report = outcome.expect("the fold is not cancelled").report;
        let mut expected = sums(&truth, |state| {
            matches!(state, UserLevelState::Active { .. })
        });
        let mut probes: BTreeMap<(i32, u64), u64> = BTreeMap::new();
        for record in truth.records.values() {
            if !record.is_kernel {
                *probes
                    .entry((record.owner.pid, record.owner.current))
                    .or_default() += u64::from(COST);
            }
        }
        for (thread, ns) in &mut expected {
            *ns = ns.saturating_sub(probes.get(thread).copied().unwrap_or(0));
        }
        assert_eq!(column(&report, "active_ns"), expected, "seed {seed}");
        let plain = time_in_functions(&self::report(&set));
        let corrected = time_in_functions(&report);
        assert!(corrected < plain, "{corrected} of {plain}");
        any_tree_of("compensated levels", &set, &compensating(&set), seed);
    }
}

/// Time in functions, by all threads.
fn time_in_functions(report: &Report) -> u64 {
    let own = |row: Row<'_>| row.unsigned("own_ns");
    report.rows("functions").map(own).sum()
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
