//! `periods` as users call it, on recorded traces.

use std::collections::BTreeMap;

use crate::support::{failure, recorded, recorded_trace, text, tracebraid};
use serde_json::Value;

const RUN: [&str; 4] = [
    "--period",
    "run : sched_switch : sched_switch && cpu == $begin.cpu",
    "--period-captures",
    "run : comm = next_comm, tid = next_tid",
];

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(command: &str, arguments: &[&str]) -> Value {
    let trace = trace();
    let arguments = [&[command, "--format", "json"], arguments, &[trace.as_str()]].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn rows<'r>(report: &'r Value, section: &str) -> &'r Vec<Value> {
    report[section].as_array().expect("rows")
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().expect("a number")
}

fn periods(arguments: &[&str]) -> Value {
    json("periods", &[&RUN[..], arguments].concat())
}

#[test]
fn tables() {
    let arguments = [
        &["periods", "--top", "4"],
        &RUN[..],
        &["--group-by", "run.comm", "--view"],
    ]
    .concat();
    for view in ["stats", "top", "log", "freq"] {
        let mut command = tracebraid();
        command
            .env("TRACEBRAID_COLUMNS", "110")
            .args(&arguments)
            .args([view]);
        if view == "freq" {
            command.args(["--select", "run", "--min", "20ms"]);
        }
        let output = command.arg(trace()).output().expect("the binary runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        insta::assert_snapshot!(format!("periods-{view}"), text);
    }
}

/// LAMI's metadata announces every table of periods with its columns.
#[test]
fn lami() {
    let metadata: Value =
        serde_json::from_str(&text(&["periods", "--format", "lami", "--metadata"])).expect("JSON");
    let classes = metadata["table-classes"].as_object().expect("classes");
    assert_eq!(text(&["periods", "--test-compatibility", &trace()]), "");
    let inner = "irq(run) : irq_handler_entry && cpu == $parent.cpu : \
                 irq_handler_exit && cpu == $begin.cpu";
    let asked = [
        "--period",
        inner,
        "--group-by",
        "run.comm",
        "--aggregate-by",
        "run",
        "--freq-series",
    ];
    let format = [
        "--format",
        "lami",
        "--output-progress",
        "--view",
        "stats,top,log,freq",
    ];
    let trace = trace();
    let arguments = [&["periods"], &RUN[..], &asked, &format, &[trace.as_str()]].concat();
    let output = text(&arguments);
    let results = output
        .strip_prefix("0 reading\n")
        .expect("the progress comes first");
    let results: Value = serde_json::from_str(results).expect("JSON");
    let tables = results["results"].as_array().expect("tables");
    assert_eq!(tables.len(), classes.len(), "every class occurs");
    for table in tables {
        let class = &classes[table["class"].as_str().expect("a class")];
        let columns = class["column-descriptions"].as_array().expect("columns");
        for row in table["data"].as_array().expect("rows") {
            let cells = row.as_array().expect("cells");
            assert_eq!(cells.len(), columns.len());
            let mut both = cells.iter().zip(columns);
            assert!(both.all(|(cell, column)| cell.is_null() || cell["class"] == column["class"]));
        }
    }
}

/// From each switch to the next one on its CPU, a thread runs. By thread this is the active time of
/// `cpu`, except after the last switch of each CPU, where `cpu` knows the end of the trace.
#[test]
fn time_between_switches_is_active_time() {
    let report = periods(&["--group-by", "run.tid", "--view", "stats,log"]);
    let mut found: BTreeMap<i64, u64> = BTreeMap::new();
    for row in rows(&report, "groups") {
        let tid = row["group"]["run.tid"].as_i64().expect("a thread");
        found.insert(tid, number(row, "total_ns"));
    }
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for row in rows(&report, "log") {
        let end = last.entry(number(row, "cpu")).or_default();
        *end = number(row, "end_ns").max(*end);
    }
    let cpu = json("cpu", &[]);
    let mut expected: BTreeMap<i64, u64> = BTreeMap::new();
    for row in rows(&cpu, "threads") {
        expected.insert(
            row["tid"].as_i64().expect("a thread"),
            number(row, "active_ns"),
        );
    }
    let idle: u64 = rows(&cpu, "cpus")
        .iter()
        .map(|row| number(row, "idle_ns"))
        .sum();
    expected.insert(0, idle);
    // Running time after the last switches belongs to threads without such a period.
    let end = number(&cpu, "end_ns");
    let behind: u64 = last.values().map(|last| end - last).sum();
    let sum = |all: &BTreeMap<i64, u64>| all.values().sum::<u64>();
    assert_eq!(sum(&expected), sum(&found) + behind);
    let differ = expected
        .iter()
        .filter(|(tid, active)| found.get(tid).copied().unwrap_or(0) != **active);
    let differ: Vec<_> = differ.collect();
    assert!(
        differ.len() <= last.len(),
        "at most one thread for each CPU: {differ:?}"
    );
    assert!(found.len() > 200, "{}", found.len());
    assert_eq!(report["total"]["unfinished"], last.len() as u64);
}

/// Periods that match system calls equal `syscalls`, for calls that stay on one CPU.
#[test]
fn system_calls_are_periods() {
    let call = "call : syscall_entry_getpid : syscall_exit_getpid && cpu \
                == $begin.cpu";
    let report = json("periods", &["--period", call, "--view", "log"]);
    let calls = json("syscalls", &["--syscall", "getpid", "--view", "log"]);
    let pairs = |rows: &[Value]| {
        let mut pairs: Vec<_> = rows
            .iter()
            .map(|row| (number(row, "begin_ns"), number(row, "duration_ns")))
            .collect();
        pairs.sort_unstable();
        pairs
    };
    assert!(!rows(&report, "log").is_empty());
    assert_eq!(pairs(rows(&report, "log")), pairs(rows(&calls, "log")));
}

/// Definitions in a file, and a trace of a program with conditions on pointers.
#[test]
fn definitions_come_from_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("calls.periods");
    let definitions = "# functions\nperiod call : *:func_entry\n  : *:func_exit && \
                       addr == $begin.addr && stream_ctx.vtid == $begin.vtid\ncaptures call : \
                       addr = addr\n";
    std::fs::write(&path, definitions).expect("a file");
    let file = path.to_str().expect("UTF-8");
    let program = recorded("ust-cyg-profile").join("ust-cyg-profile");
    let program = program.to_str().expect("UTF-8");
    let report = text(&["periods", "--file", file, "--format", "json", program]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert!(number(&report["total"], "periods") > 0, "{report}");
    std::fs::write(&path, "period a : x == 1\n\nperiod b\n : x = 1\n").expect("a file");
    let (code, message) = failure(&["periods", "--file", file, program]);
    assert_eq!(code, 2);
    assert!(
        message.contains("calls.periods: line 4, column 6: to compare"),
        "{message}"
    );
    assert!(message.ends_with("   : x = 1\n       ^\n"), "{message}");
}

#[test]
fn what_is_chosen() {
    let all = periods(&["--view", "log"]);
    let log = rows(&all, "log");
    let count = |keep: &dyn Fn(&Value) -> bool| log.iter().filter(|row| keep(row)).count();
    for (arguments, expected) in [
        (
            &["--min", "10ms"][..],
            count(&|row| number(row, "duration_ns") >= 10_000_000),
        ),
        (
            &["--max", "20us"],
            count(&|row| number(row, "duration_ns") <= 20_000),
        ),
        (
            &["--cpu", "1,2"],
            count(&|row| [1, 2].contains(&number(row, "cpu"))),
        ),
    ] {
        let report = periods(&[&["--view", "log"], arguments].concat());
        assert!(
            expected > 0 && expected < log.len(),
            "{arguments:?}: {expected}"
        );
        assert_eq!(rows(&report, "log").len(), expected, "{arguments:?}");
    }
    let report = periods(&["--view", "log", "--order-by", "duration"]);
    assert!(
        rows(&report, "log").is_sorted_by_key(|row| std::cmp::Reverse(number(row, "duration_ns")))
    );
    assert!(log.is_sorted_by_key(|row| number(row, "begin_ns")));
    let csv = text(
        &[
            &["periods", "--format", "csv", "--view", "top", "--top", "1"],
            &RUN[..],
            &[&trace()],
        ]
        .concat(),
    );
    let expected = "begin_ns,end_ns,duration_ns,period,cpu,begin.comm,begin.tid,end\n\
                    1795225395220023739,1795225395312005892,91982153,run,2,stress-ng-cpu,333,\n";
    assert_eq!(csv, expected);
}

#[test]
fn wrong_usage() {
    let trace = trace();
    for (arguments, words) in [
        (&[][..], "no period is defined"),
        (
            &["--period", "p : x == "],
            "--period: line 1, column 10: expected a number",
        ),
        (
            &["--period", "p : x == 1", "--captures", "q : x"],
            "--captures: line 1, column 1: no period",
        ),
        (
            &["--period", "p : x == 1", "--group-by", "p.y"],
            "does not capture `y`",
        ),
        (
            &["--period", "p : x == 1", "--select", "q"],
            "no period `q`",
        ),
        (
            &["--period", "p : x == 1", "--aggregate-by", "q"],
            "no period `q`",
        ),
        (&["--period", "p : x == 1", "--freq-series"], "--group-by"),
        (&["--file", "/nonexistent"], "/nonexistent"),
    ] {
        let (code, message) = failure(&[&["periods"], arguments, &[trace.as_str()]].concat());
        assert_eq!(code, 2, "{arguments:?}");
        assert!(message.contains(words), "{message}");
    }
}
