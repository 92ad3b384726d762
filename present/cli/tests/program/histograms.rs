//! Options of histograms: `--by` and `--buckets`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{failure, recorded_trace, text};

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    json_of(arguments, &trace())
}

fn json_of(arguments: &[&str], trace: &str) -> Value {
    let arguments = [arguments, &["--format", "json", trace]].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn count(report: &Value) -> u64 {
    let rows = report["distribution"].as_array().expect("rows").iter();
    rows.map(|row| row["count"].as_u64().expect("a number"))
        .sum()
}

/// The histogram of one thread is that of its calls in the log, each counted once.
#[test]
fn the_histogram_of_a_thread_counts_its_calls() {
    let select = ["--syscall", "read,write", "--tid", "284"];
    let csv = |options: &[&str]| {
        let trace = trace();
        let csv = [
            &["syscalls", "--format", "csv"],
            options,
            &select,
            &[&trace],
        ];
        text(&csv.concat())
    };
    let log = csv(&["--view", "log"]);
    let mut lines = log.lines();
    let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let column = names
        .iter()
        .position(|&name| name == "duration_ns")
        .expect("a column");
    let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
    for line in lines {
        let duration = line.split(',').nth(column).expect("a duration");
        let duration: u64 = duration.parse().expect("a number");
        *expected.entry(duration.ilog2()).or_default() += 1;
    }
    assert!(expected.len() > 3);
    let histogram = csv(&["--by", "thread"]);
    let mut lines = histogram.lines();
    assert_eq!(
        lines.next(),
        Some("of,from_ns,to_ns,count,host,pid,tid,name")
    );
    let mut found = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let &[who, from, to, count, _host, _pid, tid, name] = cells.as_slice() else {
            panic!("{line}");
        };
        assert_eq!((who, tid), (format!("{name} (284)").as_str(), "284"));
        let [from, to, count] =
            [from, to, count].map(|text| text.parse::<u64>().expect("a number"));
        assert_eq!(to, 2 * from);
        found.insert(from.ilog2(), count);
    }
    let (first, last) = (expected.first_key_value(), expected.last_key_value());
    let all = *first.expect("a call").0..=*last.expect("a call").0;
    assert!(found.keys().copied().eq(all));
    found.retain(|_, count| *count > 0);
    assert_eq!(found, expected);
}

/// Every grouping has all values.
#[test]
fn groups_have_all_values() {
    for (command, usual, others) in [
        ("syscalls", "call", &["all", "thread", "process"][..]),
        ("waits", "reason", &["all", "call", "thread", "process"]),
        ("sched", "all", &["thread", "process", "priority"]),
        ("cpu", "all", &["cpu", "thread", "process"]),
        ("disk", "disk", &["all", "thread", "process"]),
        ("files", "operation", &["all", "thread", "process"]),
        ("io", "operation", &["all", "thread", "process"]),
        ("net", "interface", &["all"]),
        ("memory", "event", &["thread", "process"]),
        ("processes", "all", &[]),
    ] {
        let trace = match command {
            "memory" => recorded_trace("perf-memory"),
            _ => trace(),
        };
        let of = |by: &str| count(&json_of(&[command, "--by", by], &trace));
        let all = of(usual);
        assert!(all > 100, "{command}");
        for other in others {
            assert_eq!(of(other), all, "{command} --by {other}");
        }
    }
}

#[test]
fn groups_imply_their_view() {
    let of = |options: &[&str]| json(&[&["syscalls"], options].concat());
    let by = of(&["--by", "thread"]);
    assert!(by.get("syscalls").is_none() && by.get("distribution").is_some());
    let with_others = of(&["--by", "thread", "--view", "stats"]);
    assert!(with_others.get("syscalls").is_some() && with_others.get("distribution").is_none());
    let usual = of(&[]);
    assert!(usual.get("syscalls").is_some() && usual.get("distribution").is_none());
    // Also for commands that show only statistics by default.
    assert!(json(&["cpu", "--by", "cpu"]).get("cpus").is_none());
    assert!(json(&["cpu"]).get("cpus").is_some());
}

#[test]
fn linear_buckets_have_equal_widths() {
    let report = json(&["syscalls", "--syscall", "read", "--buckets", "linear"]);
    let rows = report["distribution"].as_array().expect("rows");
    assert_eq!(rows.len(), 20);
    let number = |row: &Value, key: &str| row[key].as_f64().expect("a number");
    let width = |row: &Value| number(row, "to_ns") - number(row, "from_ns");
    let widths = rows.iter().map(width);
    assert!(
        widths
            .clone()
            .all(|own| (own - width(&rows[0])).abs() < 1.0)
    );
    let log = json(&["syscalls", "--syscall", "read", "--by", "call"]);
    assert_eq!(count(&report), count(&log));
    let (code, message) = failure(&["syscalls", "--buckets", "linear", "--by", "call", &trace()]);
    assert_eq!(code, 2);
    assert!(
        message.contains("--by needs logarithmic buckets"),
        "{message}"
    );
}

#[test]
fn unknown_groups_are_told_with_the_nearest_first() {
    let (code, message) = failure(&["syscalls", "--by", "thred", &trace()]);
    assert_eq!(code, 2);
    let expected = "invalid value 'thred' for '--by <GROUP>'\n  \
                    [possible values: thread, all, call, process]";
    assert!(message.contains(expected), "{message}");
    assert!(
        message.contains("tip: a similar value exists: 'thread'"),
        "{message}"
    );
    // What another report knows.
    let (_, message) = failure(&["syscalls", "--by", "priority", &trace()]);
    assert!(
        message.contains("[possible values: all, call, process, thread]"),
        "{message}"
    );
}

#[test]
fn text_has_as_many_groups_as_are_asked_for() {
    let shown = text(&["sched", "--by", "thread", "--top", "2", &trace()]);
    assert_eq!(shown.matches("Distribution: ").count(), 2, "{shown}");
    assert!(shown.contains(" more groups\n"), "{shown}");
    let shown = text(&[
        "waits",
        "--why",
        "block-*",
        "--by",
        "call",
        "--tid",
        "281",
        &trace(),
    ]);
    insta::assert_snapshot!("by-call", shown);
}

#[test]
fn values_are_completed() {
    let script = text(&["completions", "bash"]);
    for words in [
        "\"all reason call process thread\"",
        "block-device",
        "anonymous",
    ] {
        assert!(script.contains(words), "{words}");
    }
}
