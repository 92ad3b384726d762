//! Traces with only some of their CPUs: every reported value is that of the whole trace, or is left
//! out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, KernelReport, Selection, Views, Window};
use tracebraid_graph::{GraphAnalysis, State, WaitReason};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::disk::DiskAnalysis;
use tracebraid_reports::net::NetAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_reports::waits::WaitAnalysis;
use tracebraid_tables::View;
use tracebraid_testkit::partial::{CPUS, KEPT, PartialTrace, whole};

fn everything() -> Views {
    Views {
        views: vec![View::Stats, View::Top, View::Log],
        rows: usize::MAX,
        ..Views::default()
    }
}

/// A report as JSON, which must be the same however it is folded.
fn report<A>(set: &TraceSet, selection: &Selection, views: &Views) -> Value
where
    A: KernelAnalysis<Options: From<Views>>,
{
    let of = |options| {
        let analysis = A::with(set, selection.clone(), views.clone().into());
        let outcome = fold(set, &analysis, options, &Control::default());
        serde_json::to_value(outcome.expect("not cancelled").report).expect("JSON")
    };
    let small = Options {
        threads: 3,
        chunk_bytes: 1 << 14,
        ..Options::default()
    };
    let report = of(Options {
        threads: 1,
        ..Options::default()
    });
    assert!(report == of(small), "the law");
    report
}

fn rows<'r>(report: &'r Value, key: &str) -> &'r [Value] {
    report[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

/// A field, or a nested field by its path.
fn cell<'r>(row: &'r Value, field: &str) -> &'r Value {
    let found = match field.starts_with('/') {
        true => row.pointer(field),
        false => row.get(field),
    };
    found.unwrap_or_else(|| panic!("{field} of {row}"))
}

/// Values of the given fields of each row, as text.
fn picked(report: &Value, key: &str, fields: &[&str]) -> Vec<String> {
    let row = |row: &Value| {
        fields
            .iter()
            .map(|field| cell(row, field).to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    rows(report, key).iter().map(row).collect()
}

/// Every value reported for a part is reported for the whole; returns the number of values.
#[track_caller]
fn within(part: &[String], whole: &[String], about: &str) -> usize {
    let whole: BTreeSet<&String> = whole.iter().collect();
    let invented: Vec<&String> = part.iter().filter(|row| !whole.contains(row)).collect();
    assert!(
        invented.is_empty(),
        "{about}: {} of {} are invented: {:#?}",
        invented.len(),
        part.len(),
        &invented[..invented.len().min(8)]
    );
    part.len()
}

const THREAD: &str = "tid";

#[test]
fn a_whole_trace_misses_nothing() {
    let set = TraceSet::open(&[whole()]).expect("a trace");
    let analysis = SchedAnalysis::new(&set, Selection::default());
    assert_eq!(analysis.input().head().note(), None);
    assert!(
        report::<CpuAnalysis>(&set, &Selection::default(), &Views::default())["not_recorded"]
            .is_null()
    );
}

#[test]
fn what_is_missing_is_named() {
    for (kept, with_index) in KEPT {
        let copy = PartialTrace::of(kept, with_index);
        let head = report::<CpuAnalysis>(&copy.open(), &Selection::default(), &Views::default());
        let named: Vec<u32> = rows(&head, "not_recorded")
            .iter()
            .map(|of| number(&of["cpu"]) as u32)
            .collect();
        let missing: Vec<u32> = (0..CPUS).filter(|cpu| !kept.contains(cpu)).collect();
        assert_eq!(named, missing, "{kept:?}");
    }
}

/// Wake-ups, waits for CPUs and preemptions.
#[test]
fn the_scheduler_invents_nothing() {
    let whole = report::<SchedAnalysis>(
        &TraceSet::open(&[whole()]).expect("a trace"),
        &Selection::default(),
        &everything(),
    );
    let latency = [
        THREAD,
        "wakeup_ns",
        "switch_ns",
        "cpu",
        "priority",
        "waker_context",
    ];
    let all = picked(&whole, "log", &latency);
    let sums = |report: &Value, key: &str, by: &[&str], value: &str| -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for row in rows(report, key) {
            let about: Vec<String> = by
                .iter()
                .map(|field| cell(row, field).to_string())
                .collect();
            *sums.entry(about.join(" ")).or_insert(0) += number(&row[value]);
        }
        sums
    };
    for (kept, copy) in PartialTrace::all() {
        let part = report::<SchedAnalysis>(&copy.open(), &Selection::default(), &everything());
        let told = within(
            &picked(&part, "log", &latency),
            &all,
            &format!("latencies of {kept:?}"),
        );
        assert!(told > 100, "{kept:?}: {told}");
        for row in rows(&part, "queues") {
            let cpu = number(&row["cpu"]);
            assert!(kept.contains(&(cpu as u32)), "{kept:?}: {row}");
            let own = rows(&whole, "queues")
                .iter()
                .find(|of| of["cpu"] == row["cpu"]);
            let own = own.expect("a row of the whole trace");
            assert!(
                row["max_length"].is_null() && row["average_length"].is_null(),
                "{row}"
            );
            for field in ["waits", "wait_ns", "max_wait_ns"] {
                assert!(
                    number(&row[field]) <= number(&own[field]),
                    "{kept:?}, {field}: {row} {own}"
                );
            }
        }
        let tables: [(&str, &[&str], &[&str]); 3] = [
            ("thread_waits", &[THREAD], &["waits", "wait_ns"]),
            (
                "preempted_by",
                &[THREAD, "/preemptor/tid"],
                &["count", "total_ns"],
            ),
            ("thread_switches", &[THREAD], &["switches"]),
        ];
        for (key, by, values) in tables {
            for value in values {
                let own = sums(&whole, key, by, value);
                for (about, sum) in sums(&part, key, by, value) {
                    let most = own.get(&about).copied().unwrap_or(0);
                    assert!(
                        sum <= most,
                        "{kept:?}, {key} {about}, {value}: {sum} {most}"
                    );
                }
            }
        }
    }
}

/// The active time of threads on a CPU does not depend on other CPUs.
#[test]
fn cpus_that_are_there_are_told_of_in_full() {
    let set = TraceSet::open(&[whole()]).expect("a trace");
    for (kept, with_index) in KEPT {
        let copy = PartialTrace::of(kept, with_index);
        let part = copy.open();
        let whole = report::<CpuAnalysis>(&part, &Selection::default(), &Views::default());
        let time = |key: &str| Timestamp(whole[key].as_i64().expect("a time"));
        let selection = Selection {
            window: Window {
                from: Some(time("begin_ns")),
                to: Some(time("end_ns")),
            },
            ..Selection::default()
        };
        let own = report::<CpuAnalysis>(&part, &selection, &Views::default());
        let all = report::<CpuAnalysis>(&set, &selection, &Views::default());
        let expected: Vec<&Value> = rows(&all, "cpus")
            .iter()
            .filter(|row| kept.contains(&(number(&row["cpu"]) as u32)))
            .collect();
        assert_eq!(
            rows(&own, "cpus").iter().collect::<Vec<_>>(),
            expected,
            "{kept:?}"
        );
        report::<ProcessAnalysis>(&part, &selection, &Views::default());
    }
}

#[test]
fn devices_and_waits_invent_nothing() {
    let set = TraceSet::open(&[whole()]).expect("a trace");
    let all = (
        report::<DiskAnalysis>(&set, &Selection::default(), &everything()),
        report::<NetAnalysis>(&set, &Selection::default(), &everything()),
        report::<WaitAnalysis>(&set, &Selection::default(), &everything()),
    );
    let request = ["issued_ns", "latency_ns", "sector", "bytes"];
    let packet = ["queued_ns", "duration_ns", "interface", "bytes"];
    let wait = [THREAD, "begin_ns", "duration_ns", "why", "context"];
    for (kept, copy) in PartialTrace::all() {
        let part = copy.open();
        let disk = report::<DiskAnalysis>(&part, &Selection::default(), &everything());
        within(
            &picked(&disk, "log", &request),
            &picked(&all.0, "log", &request),
            &format!("requests of {kept:?}"),
        );
        for row in rows(&disk, "depth") {
            assert!(
                row["utilization"].is_null() && row["busy_ns"].is_null(),
                "{row}"
            );
        }
        assert!(disk["total"]["unfinished"].is_null());
        let net = report::<NetAnalysis>(&part, &Selection::default(), &everything());
        within(
            &picked(&net, "log", &packet),
            &picked(&all.1, "log", &packet),
            &format!("packets of {kept:?}"),
        );
        let waits = report::<WaitAnalysis>(&part, &Selection::default(), &everything());
        let known: Vec<String> = picked(&waits, "log", &wait)
            .into_iter()
            .filter(|row| !row.contains("unknown"))
            .collect();
        within(
            &known,
            &picked(&all.2, "log", &wait),
            &format!("waits of {kept:?}"),
        );
    }
}

/// Reported values of threads that did not run.
#[test]
fn the_graph_invents_no_waits() {
    let stretches = |set: &TraceSet| -> (BTreeSet<String>, usize) {
        let analysis = GraphAnalysis::new(set, Selection::default());
        let outcome = fold(set, &analysis, Options::default(), &Control::default());
        let graph = outcome.expect("not cancelled").report;
        assert!(!graph.is_empty());
        let mut found = BTreeSet::new();
        let mut unknown = 0;
        let is_whole = graph.head.not_recorded.is_empty();
        for actor in &graph.actors {
            for (place, stretch) in actor.line.iter().enumerate() {
                let reason = graph.reason_of(stretch.state);
                let Some(next) = actor.line.get(place + 1) else {
                    let lacks_cpu =
                        matches!(stretch.state, State::Preempted(_) | State::Runnable(_));
                    let is_sure = lacks_cpu || reason == Some(WaitReason::StillWaiting);
                    assert!(is_whole || !is_sure, "{} {stretch:?}", actor.key.tid);
                    continue;
                };
                unknown += usize::from(reason == Some(WaitReason::Unknown));
                match stretch.state {
                    // In the whole trace, an interrupt that is missing in the part may have
                    // interrupted the seeming waker.
                    State::Preempted(_) | State::Runnable(_) | State::Blocked { .. }
                        if is_whole || reason != Some(WaitReason::Unknown) =>
                    {
                        let what = match stretch.state {
                            State::Blocked { .. } => "blocked",
                            _ => "lacks a CPU",
                        };
                        found.insert(format!(
                            "{} {} {} {what}",
                            actor.key.tid, stretch.begin, next.begin
                        ));
                    }
                    _ => {}
                }
            }
        }
        (found, unknown)
    };
    let (all, _) = stretches(&TraceSet::open(&[whole()]).expect("a trace"));
    for (kept, copy) in PartialTrace::all() {
        let (part, unknown) = stretches(&copy.open());
        let invented: Vec<&String> = part.difference(&all).collect();
        assert!(
            invented.is_empty(),
            "{kept:?}: {} of {}: {:#?}",
            invented.len(),
            part.len(),
            &invented[..invented.len().min(8)]
        );
        assert!(
            unknown > 0 && part.len() > 100,
            "{kept:?}: {unknown} {}",
            part.len()
        );
    }
}
