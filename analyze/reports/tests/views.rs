//! Views of reports whose statistics have a special form: limits and second passes.

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{KernelAnalysis, Limits, Selection, ThreadFilter, Views};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_tables::View;

use tracebraid_models::events::{ModelEvent, by_cpu, merged};
use tracebraid_models::law::{ALL, SMALL, any_tree_of, every_way, folded, json};
use tracebraid_models::model_io::io_within;
use tracebraid_models::synthetic::{Shape, trace};
use tracebraid_models::traces::kernel_trace;

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 12_000,
    silent_losses: 10,
    lost_packets: 10,
    counted_losses: 10,
    packet: 900,
    ties: true,
    ..Shape::PLAIN
};

fn report<A>(set: &TraceSet, selection: &Selection, views: &Views) -> Json
where
    A: KernelAnalysis<Options: From<Views>>,
{
    let analysis = A::with(set, selection.clone(), views.clone().into());
    serde_json::from_str(&folded(set, &analysis, (1, u64::MAX))).expect("JSON")
}

fn rows<'a>(report: &'a Json, list: &str) -> &'a [Json] {
    report[list]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn number(row: &Json, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} is a number: {row}"))
}

/// All views, with limits of duration or size.
fn all_views(min: u64, max: u64) -> Views {
    Views {
        views: View::ALL.to_vec(),
        limits: Limits {
            min: Some(min),
            max: Some(max),
        },
        ..Views::default()
    }
}

/// All views, without limits.
fn unlimited() -> Views {
    Views {
        limits: Limits::default(),
        ..all_views(0, 0)
    }
}

/// The rows of a list that are within limits.
fn within(list: &[Json], key: &str, limits: Limits) -> Vec<Json> {
    let least = limits.min.unwrap_or(0);
    let most = limits.max.unwrap_or(u64::MAX);
    let of = |row: &&Json| (least..=most).contains(&number(row, key));
    list.iter().filter(of).cloned().collect()
}

/// Calls `then` with a random trace, then removes it.
fn with_trace(seed: u64, then: impl FnOnce(&TraceSet)) {
    let (directory, set) = trace(seed, SHAPE);
    then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

/// Limits select rows of the log; active time stays, and the law holds.
#[test]
fn limits_choose_stretches() {
    for seed in 0..4 {
        with_trace(seed, |set| {
            let whole = report::<CpuAnalysis>(set, &ALL.selection(), &all_views(0, u64::MAX));
            let lengths: Vec<u64> = (rows(&whole, "log").iter())
                .map(|row| number(row, "duration_ns"))
                .collect();
            let (min, max) = (lengths[lengths.len() / 3], lengths[lengths.len() / 2]);
            let views = all_views(min.min(max), min.max(max));
            let some = report::<CpuAnalysis>(set, &ALL.selection(), &views);
            let expected = within(rows(&whole, "log"), "duration_ns", views.limits);
            assert!(!expected.is_empty() && expected.len() < lengths.len());
            assert_eq!(rows(&some, "log"), expected);
            assert_eq!(
                number(&some["stretches"][0], "count"),
                expected.len() as u64
            );
            for row in rows(&some, "thread_stretches") {
                let own = expected.iter().filter(|ran| ran["tid"] == row["tid"]);
                let own: Vec<u64> = own.map(|ran| number(ran, "duration_ns")).collect();
                assert_eq!(number(row, "count"), own.len() as u64, "{row}");
                assert_eq!(number(row, "total_ns"), own.iter().sum::<u64>(), "{row}");
            }
            for list in ["cpus", "threads", "processes", "total"] {
                assert_eq!(some[list], whole[list], "{list}");
            }
            let analysis = CpuAnalysis::with(set, ALL.selection(), views.into());
            let expected = folded(set, &analysis, (1, u64::MAX));
            every_way("stretches within limits", set, &analysis, &expected, SMALL);
        });
    }
}

/// The stretches of all shown threads add up to their active time.
#[test]
fn stretches_add_up() {
    for name in ["kernel-mix-small", "kernel-discarded"] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let whole = report::<CpuAnalysis>(&set, &ALL.selection(), &all_views(0, u64::MAX));
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

/// The second pass counts each stretch once, also with a filter of threads, however it is folded.
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
            ..ALL.selection()
        };
        let views = all_views(20_000, 5_000_000);
        let analysis = CpuAnalysis::with(&set, selection.clone(), views.clone().into());
        let first =
            tracebraid_engine::fold(&set, &analysis, Default::default(), &Default::default());
        let first = first.expect("not cancelled").report;
        let ranges = first.ranges.clone();
        assert!(ranges.len() > 2);
        let second = Views {
            ranges: Some(ranges),
            ..views
        };
        let analysis = CpuAnalysis::with(&set, selection.clone(), second.clone().into());
        let expected = folded(&set, &analysis, (1, u64::MAX));
        every_way("the second pass", &set, &analysis, &expected, SMALL);
        let second = report::<CpuAnalysis>(&set, &selection, &second);
        let first = serde_json::to_value(first).expect("JSON");
        let count = |name: &str| -> u64 {
            let bins = rows(&second, "distribution").iter();
            let own = bins.filter(|bin| bin["of"] == name);
            own.map(|bin| number(bin, "count")).sum()
        };
        let counts = rows(&first, "thread_stretches")
            .iter()
            .map(|row| number(row, "count"));
        assert_eq!(count("all"), counts.sum::<u64>());
        for tid in [284, 249] {
            let of = |row: &&Json| row["tid"] == tid;
            let row = rows(&first, "thread_stretches")
                .iter()
                .find(of)
                .expect("a row");
            let name = row["name"].as_str().expect("a name");
            assert_eq!(count(&format!("{name} ({tid})")), number(row, "count"));
        }
        assert!(second.get("log").is_none(), "only a second pass");
    }
}

/// Limits apply to whole calls, even if a chunk boundary cuts them.
#[test]
fn limits_choose_calls() {
    for seed in 0..6 {
        with_trace(seed, |set| {
            for (min, max) in [(0, 60), (61, u64::MAX), (30, 200)] {
                let expected = json(&io_within(set, ALL.range, None, (min, max)));
                let analysis = IoAnalysis::with(set, ALL.selection(), all_views(min, max).into());
                every_way("calls within limits", set, &analysis, &expected, SMALL);
                any_tree_of("calls within limits", set, &analysis, seed);
            }
        });
    }
}

/// Creations, ends and execs of processes in the events: time, kind, id, and the name or creator.
fn told(set: &TraceSet) -> Vec<(u64, &'static str, i64, String)> {
    let mut told = Vec::new();
    for entry in merged(by_cpu(set, |name| name.starts_with("sched_process_"))) {
        let ModelEvent::Event(event) = &entry.what else {
            continue;
        };
        let id = |name: &str| event.id(name).map(i64::from);
        let (what, tid, detail) = match event.name.as_str() {
            "sched_process_fork" if id("child_tid") == id("child_pid") => (
                "fork",
                id("child_tid"),
                id("parent_pid").map(|pid| pid.to_string()),
            ),
            "sched_process_exec" if id("tid") == id("old_tid") => {
                let path = event.text("filename");
                let name = path.and_then(|path| path.rsplit('/').next());
                (
                    "exec",
                    id("tid"),
                    name.map(|name| name.chars().take(15).collect()),
                )
            }
            _ => continue,
        };
        let (tid, detail) = (tid.expect("a thread"), detail.expect("a name or an id"));
        told.push((entry.time as u64, what, tid, detail));
    }
    told.sort();
    told
}

/// The log of processes equals the events, and lives extend between its rows.
#[test]
fn lives_are_told_by_events() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let whole = report::<ProcessAnalysis>(&set, &ALL.selection(), &all_views(0, u64::MAX));
    let log = report::<ProcessAnalysis>(&set, &ALL.selection(), &unlimited());
    let log = rows(&log, "log");
    assert!(log.is_sorted_by_key(|row| number(row, "time_ns")));
    let of = |row: &Json| {
        let what = row["event"].as_str().expect("what");
        let detail = match what {
            "fork" => row["parent"]["pid"].to_string(),
            _ => row["new_name"].as_str().unwrap_or_default().to_owned(),
        };
        (
            number(row, "time_ns"),
            what.to_owned(),
            number(row, "tid") as i64,
            detail,
        )
    };
    let mut found: Vec<_> = log.iter().map(of).collect();
    found.retain(|row| row.1 == "fork" || row.1 == "exec");
    found.sort();
    let told = told(&set).into_iter();
    let told: Vec<_> = told
        .map(|(time, what, tid, detail)| (time, what.to_owned(), tid, detail))
        .collect();
    assert_eq!(found, told);
    // Lives from start to end.
    let mut lives = Vec::new();
    for row in log
        .iter()
        .filter(|row| row["event"] == "exit" && !row["life_ns"].is_null())
    {
        let end = number(row, "time_ns");
        let is_begin = |other: &&Json| {
            other["event"] == "fork"
                && other["tid"] == row["tid"]
                && number(other, "time_ns") <= end
        };
        let begin = log.iter().rev().find(is_begin).expect("it was made");
        lives.push(end - number(begin, "time_ns"));
        assert_eq!(lives.last(), row["life_ns"].as_u64().as_ref());
    }
    lives.sort_unstable_by(|a, b| b.cmp(a));
    let longest: Vec<u64> = (rows(&whole, "longest").iter())
        .map(|row| number(row, "life_ns"))
        .collect();
    assert_eq!(longest, lives[..20]);
    assert_eq!(number(&whole["lives"][0], "count"), lives.len() as u64);
    assert_eq!(
        number(&whole["lives"][0], "total_ns"),
        lives.iter().sum::<u64>()
    );
    let counts = rows(&whole, "distribution")
        .iter()
        .map(|row| number(row, "count"));
    assert_eq!(counts.sum::<u64>(), lives.len() as u64);
}

/// Limits and ranges select lives; the tree stays.
#[test]
fn limits_choose_lives() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let views = all_views(10_000_000, 100_000_000);
    let (begin, end) = tracebraid_models::events::extent(&set);
    let middle = begin + (end - begin) / 2;
    let within_range = |range| Selection {
        window: tracebraid_models::law::window(range),
        ..ALL.selection()
    };
    let whole = report::<ProcessAnalysis>(&set, &within_range(ALL.range), &unlimited());
    let some = report::<ProcessAnalysis>(&set, &ALL.selection(), &views);
    assert_eq!(whole["processes"], some["processes"]);
    let exits: Vec<Json> = (rows(&whole, "log").iter())
        .filter(|row| !row["life_ns"].is_null())
        .cloned()
        .collect();
    let chosen = within(&exits, "life_ns", views.limits);
    assert!(!chosen.is_empty() && chosen.len() < exits.len());
    let found: Vec<&Json> = (rows(&some, "log").iter())
        .filter(|row| row["event"] == "exit")
        .collect();
    assert_eq!(found, chosen.iter().collect::<Vec<_>>());
    assert_eq!(number(&some["lives"][0], "count"), chosen.len() as u64);
    // Two halves make up the whole.
    let of = |range| report::<ProcessAnalysis>(&set, &within_range(range), &unlimited());
    let (first, second) = (of((begin, middle)), of((middle, end + 1)));
    let halves = [rows(&first, "log"), rows(&second, "log")].concat();
    assert_eq!(halves, rows(&whole, "log"));
    let analysis = ProcessAnalysis::with(&set, ALL.selection(), views.into());
    let expected = folded(&set, &analysis, (1, u64::MAX));
    every_way("lives within limits", &set, &analysis, &expected, SMALL);
}
