//! The reports compared with those of lttng-analyses, number by number.
//!
//! The peer's numbers are first reproduced with its own rules (`tests/models/src/lttng.rs`), so
//! that differences can be explained call by call and switch by switch.

use std::collections::BTreeMap;

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::KernelAnalysis;
use tracebraid_models::lttng::{Counted, DescriptorKind, cputop, iousagetop};
use tracebraid_models::model_io::{Call, Found, find};
use tracebraid_models::plain::{CpuReport, plain};
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::cpu::CpuAnalysis;

fn cpu_report(set: &TraceSet) -> CpuReport {
    let analysis = CpuAnalysis::new(set, Default::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    plain(&outcome.expect("not cancelled").report)
}

fn rows(results: &Value, table: usize) -> &Vec<Value> {
    results["results"][table]["data"]
        .as_array()
        .expect("a table")
}

fn int(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

/// Nanoseconds for a ratio that it computed in double precision.
fn time_of(ratio: &Value, duration: u64) -> u64 {
    (ratio.as_f64().expect("a ratio") * duration as f64).round() as u64
}

/// Compares our report after applying the one rule that differs without losses: the time before a
/// CPU's first switch counts as active. Returns the number of compared numbers.
fn compare_cpu(name: &str) -> Option<usize> {
    let set = kernel_trace(name)?;
    let results = oracle(name, "lttng-cputop.mi.json")?;
    let report = cpu_report(&set);
    let range = &results["results"][0]["time-range"];
    assert_eq!(
        report.head.begin_ns,
        Some(int(&range["begin"]["value"])),
        "{name}: begin"
    );
    assert_eq!(
        report.head.end_ns,
        Some(int(&range["end"]["value"])),
        "{name}: end"
    );
    let begin = report.head.begin_ns.expect("a range");
    let mut heads: BTreeMap<i32, (i64, u64)> = BTreeMap::new();
    for cpu in &report.cpus {
        let first = cpu.first_switch.as_ref().expect("a switch on each CPU");
        let time = first.time_ns;
        let head = heads.entry(first.prev_tid).or_insert((time, 0));
        // Only the first CPU whose first switch is from the thread counts: afterwards the thread is
        // known.
        *head = (*head).min((time, 0));
    }
    let ours = |cpu: u32| {
        report
            .cpus
            .iter()
            .find(|row| row.cpu == cpu)
            .expect("the same CPUs")
    };
    for row in rows(&results, 1) {
        let cpu = ours(int(&row[0]["id"]) as u32);
        let expected = time_of(&row[1]["value"], report.head.duration_ns);
        assert_eq!(
            cpu.active_ns + cpu.unknown_ns,
            expected,
            "{name}: CPU {}",
            cpu.cpu
        );
        let head = cpu.first_switch.as_ref().expect("a switch").time_ns;
        assert_eq!(
            cpu.unknown_ns,
            head.abs_diff(begin),
            "{name}: the time before the first switch is unknown"
        );
    }
    assert_eq!(
        rows(&results, 1).len(),
        report.cpus.len(),
        "{name}: number of CPUs"
    );
    let mut met = 0;
    for row in rows(&results, 0) {
        let tid = int(&row[0]["tid"]) as i32;
        let expected = time_of(&row[3]["value"], report.head.duration_ns);
        let thread = report
            .threads
            .iter()
            .find(|thread| thread.thread.tid == Some(tid));
        let active = thread.map_or(0, |thread| thread.usage.active_ns);
        let head = heads.get(&tid).map_or(0, |(time, _)| time.abs_diff(begin));
        assert_eq!(active + head, expected, "{name}: thread {tid}");
        met += usize::from(thread.is_some());
    }
    assert_eq!(
        met,
        report.threads.len(),
        "{name}: all threads are in its table"
    );
    Some(rows(&results, 0).len() + rows(&results, 1).len())
}

#[test]
fn cpu_without_losses() {
    for (name, numbers) in [
        ("kernel-mix-small", 250),
        ("kernel-ust-requests", 84),
        ("many-threads", 8067),
        ("twohost-client", 50),
        ("twohost-server", 58),
    ] {
        if let Some(compared) = compare_cpu(name) {
            assert_eq!(compared, numbers, "{name}: numbers compared");
        }
    }
}

/// By trace: number of threads with the same priority, number of threads without a priority in
/// lttng-analyses, and number of migrations. Migrations of all threads are the same. Priorities are
/// the same except for threads that lttng-analyses first met when they were switched from or
/// migrated.
const PRIORITIES: [(&str, usize, usize, u64); 6] = [
    ("kernel-mix-small", 226, 19, 388),
    ("kernel-ust-requests", 60, 19, 1719),
    ("kernel-discarded", 28, 6, 32),
    ("many-threads", 8057, 1, 0),
    ("twohost-client", 37, 10, 247),
    ("twohost-server", 45, 10, 923),
];

#[test]
fn migrations_and_priorities() {
    for (name, same, untold, migrations) in PRIORITIES {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let Some(results) = oracle(name, "lttng-cputop.mi.json") else {
            continue;
        };
        let report = cpu_report(&set);
        let mut found = (0, 0, 0);
        for row in rows(&results, 0).iter().filter(|row| row[0]["tid"] != 0) {
            let tid = int(&row[0]["tid"]) as i32;
            let thread = report
                .threads
                .iter()
                .find(|row| row.thread.tid == Some(tid));
            // A thread that was only seen leaving a CPU has no row in our report.
            let Some(thread) = thread else { continue };
            let moved = int(&row[1]["value"]) as u64;
            assert_eq!(
                thread.usage.migrations.unwrap_or(0),
                moved,
                "{name}: migrations of {tid}"
            );
            found.2 += moved;
            // On LTTng's scale.
            let ours: Vec<i32> = thread
                .priorities
                .iter()
                .map(|priority| priority - 100)
                .collect();
            match row[2]["value"].as_str().expect("text") {
                "[]" => found.1 += 1,
                theirs => {
                    assert_eq!(format!("{ours:?}"), theirs, "{name}: priorities of {tid}");
                    found.0 += 1;
                }
            }
            let last = thread.priority.map(|priority| priority - 100);
            assert!(
                last.is_some_and(|last| ours.contains(&last)),
                "{name}: {tid}"
            );
        }
        assert_eq!(found, (same, untold, migrations), "{name}");
        let moves = (name != "many-threads").then_some(migrations);
        assert_eq!(report.total.migrations, moves, "{name}");
    }
}

/// Our model of its rules reproduces its numbers on all traces.
#[test]
fn its_rules_give_its_numbers() {
    for name in [
        "kernel-mix-small",
        "kernel-ust-requests",
        "kernel-discarded",
        "many-threads",
        "twohost-client",
        "twohost-server",
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        if let Some(results) = oracle(name, "lttng-cputop.mi.json") {
            let top = cputop(&set, true);
            let duration = top.end.abs_diff(top.begin);
            for row in rows(&results, 1) {
                let cpu = int(&row[0]["id"]) as u32;
                assert_eq!(
                    top.cpus[&cpu],
                    time_of(&row[1]["value"], duration),
                    "{name}: CPU {cpu}"
                );
            }
            for row in rows(&results, 0) {
                let tid = int(&row[0]["tid"]) as i32;
                assert_eq!(
                    top.threads[&tid],
                    time_of(&row[3]["value"], duration),
                    "{name}: thread {tid}"
                );
                let migrations = top.migrations.get(&tid).copied().unwrap_or(0);
                assert_eq!(
                    migrations,
                    int(&row[1]["value"]),
                    "{name}: migrations of thread {tid}"
                );
                assert_eq!(
                    top.priorities[&tid], row[2]["value"],
                    "{name}: priorities of thread {tid}"
                );
            }
        }
        if let Some(results) = oracle(name, "lttng-iousagetop.mi.json") {
            // It cannot read the descriptors in the state dumps of new tracers, so they were left
            // out there.
            let calls = iousagetop(&set, name == "many-threads");
            for (table, write) in [(0, false), (1, true)] {
                for row in rows(&results, table) {
                    let tid = int(&row[0]["tid"]) as i32;
                    let sum = |kind: Option<DescriptorKind>| {
                        let mine = calls
                            .values()
                            .filter(|call| call.tid == tid && call.write == write);
                        mine.filter(|call| kind.is_none_or(|kind| kind == call.kind))
                            .map(|call| call.bytes)
                            .sum::<u64>()
                    };
                    let expected = [1, 2, 3, 4].map(|column| int(&row[column]["value"]) as u64);
                    let found = [
                        sum(None),
                        sum(Some(DescriptorKind::Disk)),
                        sum(Some(DescriptorKind::Net)),
                        sum(Some(DescriptorKind::Unknown)),
                    ];
                    assert_eq!(
                        found,
                        expected,
                        "{name}: thread {tid}, {}",
                        if write { "written" } else { "read" }
                    );
                }
            }
        }
    }
}

/// Number of calls, and bytes.
type Sums = BTreeMap<String, (u64, u64)>;

fn bytes_of(call: &Call) -> u64 {
    call.exit.int("ret").expect("a result").max(0) as u64
}

fn is_copy(call: &Call) -> bool {
    ["splice", "sendfile64"].contains(&call.name.as_str())
}

/// Every call that only one of the two counts, by the other's treatment of it.
fn differences(set: &TraceSet, state_dump: bool) -> Sums {
    let theirs = iousagetop(set, state_dump);
    let found = find(set, (i64::MIN, i64::MAX), None);
    let mut sums = Sums::new();
    let mut add = |what: String, bytes: u64| {
        let sum = sums.entry(what).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes);
    };
    let mut met = std::collections::BTreeSet::new();
    for call in found
        .calls
        .iter()
        .filter(|call| call.exit.int("ret").is_some_and(|ret| ret >= 0))
    {
        let place = (call.cpu, call.exit_time);
        add(compare(&found, call, theirs.get(&place)), bytes_of(call));
        met.insert(place);
    }
    for (_, call) in theirs.iter().filter(|(place, _)| !met.contains(place)) {
        add("only theirs".to_owned(), call.bytes);
    }
    sums
}

fn compare(found: &Found, call: &Call, theirs: Option<&Counted>) -> String {
    match theirs {
        None if is_copy(call) => "moved between two descriptors".to_owned(),
        None => "only ours".to_owned(),
        Some(theirs) if theirs.tid != call.tid => "another thread's".to_owned(),
        Some(theirs) if theirs.entry_time != call.entry_time => "of another entry".to_owned(),
        Some(theirs) => {
            assert_eq!(theirs.bytes, bytes_of(call));
            let kind = found.kind(call, "fd");
            // lttng-analyses counts every path as a disk.
            let kind = if kind.has_path() { "file" } else { kind.name() };
            format!("{kind} is {:?}", theirs.kind)
        }
    }
}

/// Kind of difference, calls, bytes.
type Row = (&'static str, u64, u64);

/// By trace: successful calls and their bytes, by lttng-analyses' treatment of our type of
/// descriptor, or by the reason of the difference. `docs/explain/differences.md` explains each
/// kind.
const IO: &[(&str, &[Row])] = &[
    (
        "kernel-mix-small",
        &[
            ("file is Disk", 1949, 21662035),
            ("file is Unknown", 622, 408099),
            ("moved between two descriptors", 692, 33062912),
            ("network is Net", 4000, 20642000),
            ("network is Unknown", 1001, 162000),
            ("pipe is Unknown", 3288, 1696752),
            ("socket is Net", 4, 196),
            ("socket is Unknown", 5, 25412),
            ("unix is Net", 1, 13156),
            ("unix is Unknown", 1, 13156),
            ("unknown is Unknown", 3, 12288),
        ],
    ),
    (
        "kernel-ust-requests",
        &[
            ("anonymous is Unknown", 16, 128),
            ("file is Disk", 11048, 25961595),
            ("file is Unknown", 279, 159955317),
            ("moved between two descriptors", 256, 16777216),
            ("network is Net", 6790, 434560),
            ("pipe is Unknown", 519, 11100),
            ("socket is Unknown", 8039, 4030192),
            ("unix is Net", 131, 82440),
            ("unix is Unknown", 149, 82440),
            ("unknown is Unknown", 9, 20544),
        ],
    ),
    (
        "kernel-discarded",
        &[
            ("another thread's", 51, 36749),
            ("file is Disk", 29, 21708),
            ("moved between two descriptors", 335, 1372160),
            ("of another entry", 5, 2560),
            ("only ours", 32, 2304),
            ("only theirs", 12, 5633),
            ("pipe is Unknown", 3, 12),
            ("unix is Unknown", 1, 13156),
            ("unknown is Unknown", 1641, 849210),
        ],
    ),
    (
        "many-threads",
        &[
            ("file is Disk", 8183, 222846),
            ("moved between two descriptors", 280, 9011200),
            ("socket is Net", 7, 2756),
            ("socket is Unknown", 1, 13156),
            ("unix is Net", 3, 13374),
            ("unknown is Unknown", 620, 47158),
        ],
    ),
    (
        "twohost-client",
        &[
            ("anonymous is Unknown", 8, 64),
            ("file is Disk", 3745, 9735192),
            ("file is Unknown", 96, 353083),
            ("moved between two descriptors", 80, 5242880),
            ("network is Net", 4000, 256000),
            ("pipe is Unknown", 292, 8350),
            ("socket is Unknown", 113, 1901616),
            ("unix is Net", 117, 78012),
            ("unix is Unknown", 135, 78012),
            ("unknown is Unknown", 4, 8224),
        ],
    ),
    (
        "twohost-server",
        &[
            ("anonymous is Unknown", 6, 48),
            ("file is Disk", 5667, 14899656),
            ("file is Unknown", 249, 133712017),
            ("moved between two descriptors", 160, 10485760),
            ("network is Net", 1420, 90880),
            ("pipe is Unknown", 513, 13185),
            ("socket is Unknown", 6750, 2655513),
            ("unix is Net", 1, 13156),
            ("unix is Unknown", 1, 13156),
            ("unknown is Unknown", 8, 536681),
        ],
    ),
];

#[test]
fn what_differs_in_io() {
    for (name, expected) in IO {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let expected: Sums = expected
            .iter()
            .map(|&(what, calls, bytes)| (what.to_owned(), (calls, bytes)))
            .collect();
        assert_eq!(
            differences(&set, *name == "many-threads"),
            expected,
            "{name}"
        );
    }
}

/// kernel-discarded: CPU, its active time there; our active, idle and unknown time; losses.
const DISCARDED_CPUS: [(u32, u64, u64, u64, u64, u64); 4] = [
    (0, 446425492, 339015668, 721279647, 575296332, 35),
    (1, 1051548533, 756315123, 565647931, 313628593, 37),
    (2, 304652529, 233872673, 1084330930, 317388044, 45),
    (3, 1208135120, 463620978, 393681285, 778289384, 41),
];

/// kernel-discarded: thread, its active time there, and ours, for differences other than the time
/// before the first switch.
const DISCARDED_THREADS: &[(i32, u64, u64)] = &[
    (280, 1635539935, 0),
    (252, 1577012294, 134679976),
    (262, 1555818475, 118959307),
    (263, 1303884630, 313091577),
    (265, 1283805228, 275578447),
    (268, 814157354, 7755306),
    (272, 562289368, 2991340),
    (273, 483125764, 62358239),
    (253, 406692787, 171940436),
    (266, 350343291, 112737540),
    (278, 155842024, 144897542),
    (201, 91418870, 148740954),
    (261, 6070180, 1252654),
    (9, 4755136, 5357406),
    (275, 3710288, 2442742),
    (36, 2375518, 116507971),
    (15, 747162, 149956099),
    (44, 21480, 1201476),
];

#[test]
fn what_differs_in_cpu_where_events_were_lost() {
    let Some(set) = kernel_trace("kernel-discarded") else {
        return;
    };
    let Some(results) = oracle("kernel-discarded", "lttng-cputop.mi.json") else {
        return;
    };
    let report = cpu_report(&set);
    for (row, expected) in rows(&results, 1).iter().zip(DISCARDED_CPUS) {
        let number = int(&row[0]["id"]) as u32;
        let cpu = report
            .cpus
            .iter()
            .find(|cpu| cpu.cpu == number)
            .expect("the same CPUs");
        let theirs = time_of(&row[1]["value"], report.head.duration_ns);
        let found = (
            number,
            theirs,
            cpu.active_ns,
            cpu.idle_ns,
            cpu.unknown_ns,
            cpu.losses,
        );
        assert_eq!(found, expected, "CPU {number}");
        assert_eq!(
            cpu.active_ns + cpu.idle_ns + cpu.unknown_ns,
            report.head.duration_ns,
            "CPU {number}"
        );
    }
    let begin = report.head.begin_ns.expect("a range");
    let mut firsts: Vec<_> = report
        .cpus
        .iter()
        .filter_map(|cpu| cpu.first_switch.clone())
        .collect();
    firsts.sort_by_key(|first| first.time_ns);
    let head = |tid: i32| {
        let first = firsts.iter().find(|first| first.prev_tid == tid);
        first.map_or(0, |first| first.time_ns.abs_diff(begin))
    };
    let mut differ = Vec::new();
    for row in rows(&results, 0) {
        let tid = int(&row[0]["tid"]) as i32;
        let theirs = time_of(&row[3]["value"], report.head.duration_ns);
        let thread = report
            .threads
            .iter()
            .find(|thread| thread.thread.tid == Some(tid));
        let ours = thread.map_or(0, |thread| thread.usage.active_ns);
        if ours + head(tid) != theirs {
            differ.push((tid, theirs, ours));
        }
    }
    assert_eq!(differ, DISCARDED_THREADS);
    assert_eq!(
        rows(&results, 0).len() - differ.len(),
        18,
        "threads that are the same"
    );
}
