//! The views of `cpu`, `processes`, `memory` and `io` as users call them, on recorded traces.

use crate::support::{failure, recorded_trace, text, tracebraid};
use serde_json::Value;

/// The commands, each with a trace that has events for it.
const COMMANDS: [(&str, &str); 4] = [
    ("cpu", "kernel-mix-small"),
    ("processes", "kernel-mix-small"),
    ("memory", "perf-memory"),
    ("io", "kernel-mix-small"),
];

fn json(command: &str, arguments: &[&str]) -> Value {
    let (_, trace) = COMMANDS
        .iter()
        .find(|(name, _)| *name == command)
        .expect("a command");
    let trace = recorded_trace(trace);
    let arguments = [&[command, "--format", "json"], arguments, &[&trace]].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn rows<'a>(report: &'a Value, list: &str) -> &'a [Value] {
    report[list]
        .as_array()
        .unwrap_or_else(|| panic!("a list of {list}"))
}

fn numbers(report: &Value, list: &str, field: &str) -> Vec<u64> {
    let rows = rows(report, list).iter();
    rows.map(|row| row[field].as_u64().expect("a number"))
        .collect()
}

#[test]
fn tables_fit_terminals() {
    for (command, trace) in COMMANDS {
        let trace = recorded_trace(trace);
        for view in ["stats", "top", "log", "freq"] {
            let output = tracebraid()
                .env("TRACEBRAID_COLUMNS", "90")
                .args([command, "--clock-gmt", "--top", "3", "--view", view, &trace])
                .output()
                .expect("the binary runs");
            assert!(output.status.success());
            let table = String::from_utf8(output.stdout).expect("UTF-8");
            for line in table.lines() {
                assert!(line.chars().count() <= 90, "{command} {view}: {line}");
            }
            insta::assert_snapshot!(format!("{command}-{view}"), table);
        }
    }
}

/// A selection of two kinds of calls is the sum of both.
#[test]
fn system_calls_are_chosen_by_name() {
    let all = json("io", &[]);
    let of = |name: &str| {
        let rows = rows(&all, "syscalls").iter();
        rows.clone()
            .find(|row| row["name"] == name)
            .expect("a call")
            .clone()
    };
    let two = json("io", &["--syscall", "rea[d],read,writev"]);
    let names: Vec<&Value> = rows(&two, "syscalls")
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for key in [
        "calls",
        "errors",
        "read_bytes",
        "written_bytes",
        "latency_ns",
    ] {
        let sum = |rows: &[Value]| {
            rows.iter()
                .map(|row| row[key].as_u64().expect("a number"))
                .sum::<u64>()
        };
        assert_eq!(two["total"][key], sum(&[of("read"), of("writev")]), "{key}");
        assert_eq!(two["total"][key], sum(rows(&two, "threads")), "{key}");
        assert_eq!(two["total"][key], sum(rows(&two, "types")), "{key}");
    }
    // The slowest calls are those of `files`, and none is of another kind.
    let log = json("io", &["--syscall", "writev", "--view", "log"]);
    let calls = rows(&log, "log");
    assert!(!calls.is_empty() && calls.iter().all(|call| call["syscall"] == "writev"));
}

/// Threads that had a priority, with all their time.
#[test]
fn threads_are_chosen_by_priority() {
    let has = |row: &&Value, priority: &str| {
        let all = row["priorities"].as_array().expect("priorities");
        all.contains(&priority.parse().expect("a number"))
    };
    let all = json("cpu", &[]);
    let expected: Vec<&Value> = rows(&all, "threads")
        .iter()
        .filter(|row| has(row, "100"))
        .collect();
    let chosen = json("cpu", &["--prio", "100"]);
    let chosen: Vec<&Value> = rows(&chosen, "threads").iter().collect();
    assert!(!expected.is_empty() && expected.len() < rows(&all, "threads").len());
    assert_eq!(chosen, expected);
}

/// Without `--view`, only statistics are shown, and no list.
#[test]
fn statistics_are_what_is_shown_if_nothing_is_said() {
    for (command, trace) in COMMANDS {
        let trace = recorded_trace(trace);
        for format in ["table", "json", "csv", "lami"] {
            let of =
                |more: &[&str]| text(&[&[command, "--format", format], more, &[&trace]].concat());
            assert!(of(&[]) == of(&["--view", "stats"]), "{command} as {format}");
        }
        let report = json(command, &[]);
        assert!(report.get("log").is_none() && report.get("longest").is_none());
    }
}

#[test]
fn stretches() {
    let report = json("cpu", &["--view", "stats,top,log,freq"]);
    let log = numbers(&report, "log", "duration_ns");
    assert_eq!(log.len(), 8671);
    assert_eq!(
        Some(log.iter().sum()),
        report["total"]["active_ns"].as_u64()
    );
    assert_eq!(report["stretches"][0]["count"], 8671);
    assert_eq!(
        log.iter().max(),
        numbers(&report, "longest", "duration_ns").first()
    );
    // All, and each thread that ran.
    let names = rows(&report, "distribution").iter().map(|row| &row["of"]);
    let mut names: Vec<&Value> = names.collect();
    names.dedup();
    assert_eq!(names[0], "all");
    assert_eq!(names.len(), 1 + rows(&report, "thread_stretches").len());
    // With linear buckets, all and the twenty threads with the most active time.
    let linear = json("cpu", &["--view", "freq", "--buckets", "linear"]);
    assert_eq!(rows(&linear, "distribution").len(), 21 * 20);
    assert_eq!(rows(&linear, "distribution")[20]["of"], "ab (284)");
    let long = json(
        "cpu",
        &[
            "--view", "log", "--min", "10ms", "--max", "40ms", "--tid", "284",
        ],
    );
    assert!(long.get("threads").is_none(), "no statistics");
    let lengths = numbers(&long, "log", "duration_ns");
    assert!(lengths.len() > 10);
    assert!(
        lengths
            .iter()
            .all(|length| (10_000_000..=40_000_000).contains(length))
    );
    assert!(rows(&long, "log").iter().all(|row| row["tid"] == 284));
    let limited = json("cpu", &["--min", "10ms"]);
    assert_eq!(limited["threads"], report["threads"]);
    assert_ne!(limited["stretches"], report["stretches"]);
    // The range cuts intervals at its beginning.
    let part = json("cpu", &["--view", "log", "--from", "+1s", "--to", "+500ms"]);
    let cut = rows(&part, "log")
        .iter()
        .filter(|row| row["cut_by"] == "range");
    let cut: Vec<_> = cut.collect();
    assert!((2..=8).contains(&cut.len()), "at most each CPU twice");
    assert!(cut.iter().any(|row| row["begin_ns"] == part["begin_ns"]));
    let trace = recorded_trace("kernel-mix-small");
    let csv = text(&[
        "cpu",
        "--format",
        "csv",
        "--top",
        "1",
        "--view",
        "stats,top",
        &trace,
    ]);
    let heads: Vec<_> = csv
        .split("\n\n")
        .filter_map(|table| table.lines().next())
        .collect();
    assert_eq!(
        heads,
        [
            "host,pid,tid,name,active_ns,active_share,switches,migrations,priority,priorities",
            "begin_ns,end_ns,duration_ns,cpu,host,pid,tid,name,cut_by"
        ]
    );
    assert!(csv.contains(
        "\n1795225395220023739,1795225395312005892,91982153,2,,333,333,stress-ng-cpu,\n"
    ));
}

#[test]
fn lives() {
    let report = json("processes", &["--view", "stats,top,log,freq"]);
    let steps = |what: &str| {
        rows(&report, "log")
            .iter()
            .filter(|row| row["event"] == what)
            .count()
    };
    assert_eq!(report["lives"][0]["count"], 213);
    assert!(steps("fork") > 0 && steps("exec") > 0 && steps("exit") >= 213);
    let ab: Vec<_> = rows(&report, "log")
        .iter()
        .filter(|row| row["tid"] == 284)
        .collect();
    let events: Vec<_> = ab
        .iter()
        .map(|row| (&row["event"], &row["new_name"]))
        .collect();
    assert_eq!(
        serde_json::to_value(events).expect("JSON"),
        serde_json::json!([["fork", "bash"], ["exec", "ab"], ["exit", null]])
    );
    assert_eq!(
        (&ab[0]["parent"]["pid"], &ab[0]["parent"]["name"]),
        (&200.into(), &"bash".into())
    );
    let counts = numbers(&report, "distribution", "count");
    assert_eq!(counts.iter().sum::<u64>(), 213);
    let short = json("processes", &["--view", "top", "--max", "5ms"]);
    assert!(
        numbers(&short, "longest", "life_ns")
            .iter()
            .all(|life| *life <= 5_000_000)
    );
    assert!(!rows(&short, "longest").is_empty());
}

#[test]
fn pages() {
    let report = json("memory", &["--view", "stats,top,log,freq"]);
    assert_eq!(
        numbers(&report, "largest", "size_bytes")[..4],
        [65_536, 16_384, 8192, 4096]
    );
    let pages = |what: &str| -> u64 {
        let of = rows(&report, "log")
            .iter()
            .filter(|row| row["event"] == what);
        of.map(|row| row["size_bytes"].as_u64().expect("a size") / 4096)
            .sum()
    };
    assert_eq!(report["total"]["allocated_pages"], pages("allocated"));
    assert_eq!(report["total"]["freed_pages"], pages("freed"));
    let large = json("memory", &["--min", "8k"]);
    assert_eq!(large["total"]["allocated_pages"], 22);
    assert_eq!(large["faults"], report["faults"]);
    let trace = recorded_trace("perf-memory");
    assert_eq!(failure(&["memory", "--min", "10ms", &trace]).0, 2);
}

/// Single calls are those of `files`.
#[test]
fn calls() {
    let trace = recorded_trace("kernel-mix-small");
    let views = [
        "--view",
        "top,log,freq",
        "--top",
        "4",
        "--min",
        "20us",
        &trace,
    ];
    let of =
        |command: &str, format: &str| text(&[&[command, "--format", format], &views[..]].concat());
    for format in ["table", "json", "csv", "lami"] {
        assert!(of("io", format) == of("files", format), "{format}");
    }
    let both = json("io", &["--view", "stats,log", "--min", "1ms"]);
    let log = rows(&both, "log");
    let moves = ["read", "write", "copy"].map(Value::from);
    let moving = log.iter().filter(|row| moves.contains(&row["class"]));
    assert_eq!(both["total"]["calls"].as_u64(), Some(moving.count() as u64));
    assert!(
        log.iter()
            .all(|row| row["duration_ns"].as_u64() >= Some(1_000_000))
    );
}

/// The metadata announces every table of each view, with the right number of columns.
#[test]
fn machine_interface() {
    for (command, trace) in COMMANDS {
        let metadata = text(&[command, "--format", "lami", "--metadata"]);
        let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
        let classes = metadata["table-classes"].as_object().expect("classes");
        let trace = recorded_trace(trace);
        let views = ["--view", "stats,top,log,freq", &trace];
        let results = text(&[&[command, "--format", "lami"], &views[..]].concat());
        let results: Value = serde_json::from_str(&results).expect("JSON");
        let mut names = Vec::new();
        for table in rows(&results, "results") {
            let name = table["class"].as_str().expect("a class");
            names.push(name);
            let columns = rows(&classes[name], "column-descriptions").len();
            for row in rows(table, "data") {
                assert_eq!(
                    row.as_array().map(Vec::len),
                    Some(columns),
                    "{command} {name}"
                );
            }
        }
        assert!(
            names.contains(&"log") && names.contains(&"distribution"),
            "{names:?}"
        );
    }
}

#[test]
fn threads_and_chunks_do_not_matter() {
    for (command, trace) in COMMANDS {
        let trace = recorded_trace(trace);
        let of = |threads, chunk| {
            let way = [
                "--view",
                "stats,top,log,freq",
                "-j",
                threads,
                "--chunk-size",
                chunk,
                &trace,
            ];
            text(&[&[command, "--format", "json"], &way[..]].concat())
        };
        let expected = of("1", "1G");
        for (threads, chunk) in [("1", "1"), ("2", "64K"), ("8", "300K")] {
            assert!(
                expected == of(threads, chunk),
                "{command} with {threads} threads, chunks of {chunk}"
            );
        }
    }
}
