//! `files` compared with lttng-analyses, number by number: `iolatencystats`, `iolatencytop`,
//! `iolatencyfreq` and the tables of files of `iousagetop`.

use std::collections::BTreeMap;

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views};
use tracebraid_models::lttng::iousagetop;
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_tables::View;

/// The report with each call, and the distributions of a second pass.
fn ours(set: &TraceSet) -> Value {
    let run = |views: Views| {
        let analysis = FilesAnalysis::with(set, Selection::default(), views.into());
        let outcome = fold(set, &analysis, Options::default(), &Control::default());
        outcome.expect("not cancelled").report
    };
    let of = |views, ranges| Views {
        views,
        ranges,
        ..Views::default()
    };
    let mut first = run(of(vec![View::Stats, View::Log], None));
    let ranges = Some(std::mem::take(&mut first.ranges));
    first
        .sections
        .extend(run(of(vec![View::Freq], ranges)).sections);
    serde_json::to_value(&first).expect("a report is JSON")
}

/// The peer's classes and their calls; of `fcntl` it counts the commands that copy without a flag.
const THEIRS: [(&str, &str, &str); 4] = [
    ("Open", "open", "open openat socket dup dup2 dup3 fcntl"),
    ("Read", "read", "read recvmsg recvfrom readv pread64 preadv"),
    (
        "Write",
        "write",
        "write sendmsg sendto writev pwrite64 pwritev",
    ),
    ("Sync", "sync", "sync sync_file_range fsync fdatasync"),
];

/// Our calls that belong to one of its classes.
fn calls<'v>(report: &'v Value, class: &str, names: &str) -> Vec<&'v Value> {
    let log = report["log"].as_array().expect("a log").iter();
    let named = |row: &&Value| names.split(' ').any(|name| row["syscall"] == name);
    log.filter(|row| row["class"] == class)
        .filter(named)
        .collect()
}

fn duration(row: &Value) -> u64 {
    row["duration_ns"].as_u64().expect("a duration")
}

fn close(what: &str, ours: f64, theirs: &Value) {
    let theirs = theirs
        .as_f64()
        .unwrap_or_else(|| panic!("{what}: a number"));
    let most = theirs.abs() * 1e-12;
    assert!((ours - theirs).abs() <= most, "{what}: {ours} for {theirs}");
}

fn tables<'v>(results: &'v Value, class: &str) -> Vec<(&'v str, &'v Vec<Value>)> {
    let tables = results["results"].as_array().expect("tables").iter();
    let of_class =
        tables.filter(|table| table["class"] == class || table["class"]["inherit"] == class);
    let rows = |table: &'v Value| table["data"].as_array().expect("rows");
    of_class
        .map(|table| {
            (
                table["class"]["title"].as_str().unwrap_or_default(),
                rows(table),
            )
        })
        .collect()
}

/// Compares count, minimum, average, maximum and deviation of each class; returns the number of
/// equal numbers.
fn stats(name: &str, report: &Value, results: &Value) -> usize {
    let (_, theirs) = tables(results, "syscall-latency-stats")[0];
    let mut same = 0;
    for (row, (title, class, names)) in theirs.iter().zip(THEIRS) {
        assert_eq!(row[0]["value"], title);
        let what = format!("{name}: {class}");
        let durations: Vec<u64> = calls(report, class, names)
            .into_iter()
            .map(duration)
            .collect();
        let count = durations.len() as f64;
        let average = durations.iter().sum::<u64>() as f64 / count;
        assert_eq!(durations.len() as u64, row[1]["value"], "{what}");
        assert_eq!(
            *durations.iter().min().expect("some"),
            row[2]["value"],
            "{what}"
        );
        close(&what, average, &row[3]["value"]);
        assert_eq!(
            *durations.iter().max().expect("some"),
            row[4]["value"],
            "{what}"
        );
        let squares = durations.iter().map(|&of| (of as f64 - average).powi(2));
        let deviation = (squares.sum::<f64>() / (count - 1.0)).sqrt();
        assert!(
            (deviation / row[5]["value"].as_f64().expect("a number") - 1.0).abs() < 1e-9,
            "{what}"
        );
        same += 5;
        // Where it knows all calls of a class, our table has its numbers.
        let of_class = report["classes"].as_array().expect("classes").iter();
        let own = of_class
            .into_iter()
            .find(|row| row["class"] == class)
            .expect("the class");
        if own["count"] == row[1]["value"] {
            let columns = ["count", "min_ns", "average_ns", "max_ns", "deviation_ns"];
            for (at, column) in columns.iter().enumerate() {
                close(
                    &what,
                    own[column].as_f64().expect("a number"),
                    &row[at + 1]["value"],
                );
                same += 1;
            }
        }
    }
    same
}

/// Compares its bins, computed in its double-precision arithmetic, with ours where it knows all
/// calls of a class.
fn frequencies(name: &str, report: &Value, results: &Value) -> usize {
    let mut same = 0;
    for (title, theirs) in tables(results, "freq") {
        let Some((_, class, names)) = THEIRS
            .iter()
            .find(|of| title.ends_with(&format!("[{}]", of.1)))
        else {
            continue;
        };
        let what = format!("{name}: {class}");
        let durations: Vec<f64> = calls(report, class, names)
            .into_iter()
            .map(|row| duration(row) as f64 / 1000.0)
            .collect();
        let low = durations.iter().copied().fold(f64::INFINITY, f64::min);
        let high = durations.iter().copied().fold(0.0, f64::max);
        let step = (high - low) / 20.0;
        let mut counts = [0u64; 20];
        durations
            .iter()
            .for_each(|of| counts[(((of - low) / step) as usize).min(19)] += 1);
        for (at, row) in theirs.iter().enumerate() {
            close(&what, (at as f64 * step + low) * 1000.0, &row[0]["value"]);
            close(
                &what,
                ((at + 1) as f64 * step + low) * 1000.0,
                &row[1]["value"],
            );
            assert_eq!(counts[at], row[2]["value"], "{what}: step {at}");
            same += 3;
        }
        let bins = report["distribution"].as_array().expect("bins").iter();
        let bins: Vec<_> = bins.filter(|bin| bin["class"] == *class).collect();
        let total = bins
            .iter()
            .map(|bin| bin["count"].as_u64().expect("a count"))
            .sum::<u64>();
        if total == durations.len() as u64 {
            for (bin, row) in bins.iter().zip(theirs) {
                close(
                    &what,
                    bin["from_ns"].as_f64().expect("a number"),
                    &row[0]["value"],
                );
                close(
                    &what,
                    bin["to_ns"].as_f64().expect("a number"),
                    &row[1]["value"],
                );
                assert_eq!(bin["count"], row[2]["value"], "{what}: {bin}");
                same += 3;
            }
        }
    }
    same
}

/// The kind of difference between our name of a file and its name.
fn names(ours: &Value, theirs: &str) -> String {
    let own = ours.as_str().unwrap_or("nothing");
    if own == theirs {
        return "the same".to_owned();
    }
    if own.strip_prefix("socket ") == Some(theirs) {
        return "the same address".to_owned();
    }
    let theirs = if theirs.starts_with('/') {
        "a path"
    } else {
        theirs
    };
    let ours = match own {
        own if own.starts_with('/') => "a path",
        own if own.starts_with("socket from ") => "an accepted connection",
        own if own.starts_with("socket ") => "an address",
        own => own.split(":[").next().unwrap_or(own),
    };
    let theirs = if theirs.contains(':') {
        "an address"
    } else {
        theirs
    };
    format!("{ours} is {theirs}")
}

/// Number of files by kind of difference between names.
type Names = BTreeMap<String, u64>;

/// Finds each of its slowest calls among ours, with the same duration, size, thread and descriptor.
fn slowest(name: &str, report: &Value, results: &Value) -> (usize, Names) {
    let (mut same, mut differ) = (0, Names::new());
    for (title, theirs) in tables(results, "top-syscall") {
        let (_, class, names_of) = THEIRS
            .iter()
            .find(|of| title.ends_with(&format!("[{}]", of.1)))
            .expect("a class");
        let mut own = calls(report, class, names_of);
        own.sort_by_key(|row| std::cmp::Reverse(duration(row)));
        let durations: Vec<_> = own
            .iter()
            .take(theirs.len())
            .map(|row| duration(row))
            .collect();
        let expected: Vec<_> = theirs
            .iter()
            .map(|row| row[2]["value"].as_u64().expect("a duration"))
            .collect();
        assert_eq!(durations, expected, "{name}: {title}");
        for row in theirs {
            let begin = &row[0]["begin"]["value"];
            let tid = &row[5]["tid"];
            let found = own
                .iter()
                .find(|own| own["begin_ns"] == *begin && own["tid"] == *tid);
            let found = found.unwrap_or_else(|| panic!("{name}: {row}"));
            assert_eq!(found["duration_ns"], row[2]["value"], "{name}: {row}");
            let syscall = row[3]["name"].as_str().expect("a name");
            assert_eq!(found["syscall"], syscall, "{name}: {row}");
            let size = row[4].get("value").cloned().unwrap_or(Value::Null);
            assert_eq!(found["bytes"], size, "{name}: {row}");
            let fd = row[7].get("fd").cloned().unwrap_or(Value::Null);
            assert_eq!(found["fd"], fd, "{name}: {row}");
            same += 5;
            let path = row[6]
                .get("path")
                .and_then(Value::as_str)
                .unwrap_or("nothing");
            *differ.entry(names(&found["path"], path)).or_default() += 1;
        }
    }
    (same, differ)
}

/// Kind of difference between names, and number of calls.
type Row = (&'static str, u64);

fn expected(rows: &[Row]) -> Names {
    rows.iter()
        .map(|&(what, calls)| (what.to_owned(), calls))
        .collect()
}

/// By trace: rows of its slowest calls, by their files. `docs/explain/differences.md` explains each
/// kind.
const SLOWEST: &[(&str, &[Row])] = &[
    (
        "kernel-mix-small",
        &[
            ("a path is unknown", 97),
            ("network socket is an address", 24),
            ("pipe is unknown", 79),
            ("the same", 201),
            ("the same address", 3),
        ],
    ),
    (
        "kernel-ust-requests",
        &[
            ("a path is nothing", 3),
            ("a path is unknown", 115),
            ("network socket is an address", 1),
            ("network socket is socket", 1),
            ("pipe is unknown", 87),
            ("socket is unknown", 8),
            ("the same", 188),
            ("unix socket is socket", 1),
        ],
    ),
    (
        "many-threads",
        &[
            ("socket is unknown", 1),
            ("the same", 389),
            ("unix socket is socket", 3),
            ("unknown is nothing", 11),
        ],
    ),
    (
        "twohost-client",
        &[
            ("a path is nothing", 4),
            ("a path is unknown", 101),
            ("network socket is an address", 1),
            ("pipe is unknown", 6),
            ("socket is unknown", 18),
            ("the same", 83),
            ("the same address", 152),
            ("unix socket is socket", 11),
            ("unix socket is unknown", 12),
        ],
    ),
    (
        "twohost-server",
        &[
            ("a path is nothing", 1),
            ("a path is unknown", 120),
            ("an address is socket", 3),
            ("network socket is socket", 1),
            ("pipe is unknown", 63),
            ("socket is unknown", 6),
            ("the same", 185),
            ("unix socket is socket", 1),
        ],
    ),
];

#[test]
fn latencies() {
    for (name, slow) in SLOWEST {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let report = ours(&set);
        let results = |file: &str| oracle(name, &format!("lttng-{file}.mi.json"));
        // Five numbers of four classes; our own tables have the same numbers for three of the
        // classes.
        if let Some(results) = results("iolatencystats") {
            assert_eq!(stats(name, &report, &results), 4 * 5 + 3 * 5, "{name}");
        }
        if let Some(results) = results("iolatencyfreq") {
            assert_eq!(
                frequencies(name, &report, &results),
                (4 + 3) * 20 * 3,
                "{name}"
            );
        }
        if let Some(results) = results("iolatencytop") {
            let rows: u64 = slow.iter().map(|row| row.1).sum();
            let found = slowest(name, &report, &results);
            assert_eq!(found, (5 * rows as usize, expected(slow)), "{name}");
        }
    }
}

/// kernel-discarded: class, our calls, its calls, number of equal rows among its slowest calls, and
/// number of all.
const DISCARDED: [(&str, u64, u64, usize, usize); 4] = [
    ("open", 30, 60, 30, 60),
    ("read", 752, 837, 90, 101),
    ("write", 794, 905, 78, 101),
    ("sync", 216, 293, 73, 101),
];

/// It ignores losses of events.
#[test]
fn lost_events_leave_no_more_calls_than_it_has() {
    let name = "kernel-discarded";
    let stats = oracle(name, "lttng-iolatencystats.mi.json");
    let top = oracle(name, "lttng-iolatencytop.mi.json");
    let Some((set, (stats, top))) = kernel_trace(name).zip(stats.zip(top)) else {
        return;
    };
    let report = ours(&set);
    let (_, counts) = tables(&stats, "syscall-latency-stats")[0];
    let mut found = Vec::new();
    for (at, (_, class, names)) in THEIRS.into_iter().enumerate() {
        let own = calls(&report, class, names);
        let slowest = tables(&top, "top-syscall");
        let slowest = slowest
            .iter()
            .find(|(title, _)| title.ends_with(&format!("[{class}]")));
        let slowest = slowest.expect("a table").1;
        let is_ours = |row: &&Value| {
            own.iter().any(|own| {
                own["begin_ns"] == row[0]["begin"]["value"]
                    && own["duration_ns"] == row[2]["value"]
                    && own["tid"] == row[5]["tid"]
            })
        };
        let same = slowest.iter().filter(is_ours).count();
        let theirs = counts[at][1]["value"].as_u64().expect("a number");
        found.push((class, own.len() as u64, theirs, same, slowest.len()));
    }
    assert_eq!(found, DISCARDED);
}

/// Bytes read and written, by name.
type Bytes = BTreeMap<String, (u64, u64)>;

/// The peer's tables of files, without the thread that it appends to names that are not paths.
fn files_of(results: &Value) -> Bytes {
    let mut bytes = Bytes::new();
    for (title, rows) in tables(results, "per-file-top") {
        for row in rows {
            let path = row[0]["path"].as_str().expect("a path");
            let is_plain = ["pipe", "socket", "anon_inode", "unknown"]
                .iter()
                .any(|of| path.starts_with(of));
            let name = match path.rsplit_once(" (") {
                Some((name, _)) if is_plain => name,
                _ => path,
            };
            let size = row[1]["value"].as_u64().expect("bytes");
            let sums = bytes.entry(name.to_owned()).or_default();
            match title.ends_with("[read]") {
                true => sums.0 += size,
                false => sums.1 += size,
            }
        }
    }
    bytes
}

/// By trace: calls that it counts, by their files.
const FILES: &[(&str, usize, &[Row])] = &[
    (
        "kernel-mix-small",
        142,
        &[
            ("a path is unknown", 622),
            ("an accepted connection is unknown", 1001),
            ("pipe is unknown", 3288),
            ("socket is unknown", 5),
            ("the same", 1956),
            ("the same address", 4000),
            ("unix socket is socket", 1),
            ("unix socket is unknown", 1),
        ],
    ),
    (
        "kernel-ust-requests",
        37,
        &[
            ("a path is unknown", 279),
            ("an address is socket", 1790),
            ("anon_inode is unknown", 16),
            ("pipe is unknown", 519),
            ("socket is unknown", 2495),
            ("the same", 16601),
            ("the same address", 5000),
            ("unix socket is socket", 131),
            ("unix socket is unknown", 149),
        ],
    ),
    (
        "many-threads",
        8072,
        &[
            ("socket is unknown", 1),
            ("the same", 8810),
            ("unix socket is socket", 3),
        ],
    ),
    (
        "twohost-client",
        34,
        &[
            ("a path is unknown", 96),
            ("anon_inode is unknown", 8),
            ("pipe is unknown", 292),
            ("socket is unknown", 113),
            ("the same", 3749),
            ("the same address", 4000),
            ("unix socket is socket", 117),
            ("unix socket is unknown", 135),
        ],
    ),
    (
        "twohost-server",
        24,
        &[
            ("a path is unknown", 249),
            ("an address is socket", 1420),
            ("anon_inode is unknown", 6),
            ("pipe is unknown", 513),
            ("socket is unknown", 1328),
            ("the same", 11097),
            ("unix socket is socket", 1),
            ("unix socket is unknown", 1),
        ],
    ),
];

/// The peer's rules reproduce its bytes of each file; its names are compared with ours call by
/// call.
#[test]
fn files() {
    for &(name, files, calls) in FILES {
        let Some((set, results)) = kernel_trace(name).zip(oracle(name, "lttng-iousagetop.mi.json"))
        else {
            continue;
        };
        let counted = iousagetop(&set, name == "many-threads");
        let mut bytes = Bytes::new();
        for call in counted.values().filter(|call| call.bytes > 0) {
            let sums = bytes.entry(call.name.clone()).or_default();
            match call.write {
                true => sums.1 += call.bytes,
                false => sums.0 += call.bytes,
            }
        }
        assert_eq!(bytes, files_of(&results), "{name}");
        let report = ours(&set);
        let log = report["log"].as_array().expect("a log").iter();
        let mut by_call = BTreeMap::new();
        for row in log.filter(|row| row["class"] == "read" || row["class"] == "write") {
            let key = (
                row["begin_ns"].as_i64().expect("a time"),
                row["tid"].as_i64().expect("a thread"),
            );
            by_call.insert(key, row);
        }
        let mut differ = Names::new();
        for call in counted.values() {
            let row = by_call[&(call.entry_time, i64::from(call.tid))];
            assert_eq!(row["bytes"], call.bytes, "{name}: {row}");
            *differ.entry(names(&row["path"], &call.name)).or_default() += 1;
        }
        assert_eq!((bytes.len(), differ), (files, expected(calls)), "{name}");
    }
}
