//! `--table` and `-o DIR`: single tables of reports, for other programs.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{failure, recorded_trace, run, succeeds, text};

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

#[test]
fn one_table_is_an_array_in_json_and_the_only_one_in_csv() {
    let trace = trace();
    let whole: Value =
        serde_json::from_str(&text(&["syscalls", "--format", "json", &trace])).expect("JSON");
    let table = ["syscalls", "--table", "threads", &trace];
    let rows: Value =
        serde_json::from_str(&text(&[&table[..], &["--format", "json"]].concat())).expect("JSON");
    assert_eq!(rows, whole["threads"]);
    let output = run(&[&table[..], &["--format", "csv"]].concat());
    assert!(output.stderr.is_empty());
    let lines = succeeds(&output);
    let rows = rows.as_array().expect("rows");
    assert_eq!(lines.lines().count(), 1 + rows.len());
    assert!(lines.starts_with("host,pid,tid,name,count,"), "{lines}");
    let shown = text(&table);
    assert!(
        shown.contains("By thread") && !shown.contains("By system call"),
        "{shown}"
    );
    // Several tables of CSV follow one another, which is said.
    let output = run(&["syscalls", "--format", "csv", &trace]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("tables follow one another (syscalls, threads,"),
        "{said}"
    );
}

#[test]
fn tables_that_csv_leaves_out_have_their_numbers_when_they_are_chosen() {
    let trace = trace();
    for (command, table, expected) in [
        ("cpu", "cpus", "cpu,active_ns,"),
        ("io", "types", "type,"),
        ("io", "syscalls", "calls,errors,"),
    ] {
        let arguments = [command, "--table", table, "--format", "csv", &trace];
        let lines = text(&arguments);
        let head = lines.lines().next().unwrap_or_default();
        assert!(head.contains(expected), "{command} {table}: {lines}");
        let json = text(&[command, "--table", table, "--format", "json", &trace]);
        let rows: Value = serde_json::from_str(&json).expect("JSON");
        let rows = rows.as_array().expect("rows");
        assert_eq!(lines.lines().count(), 1 + rows.len());
        for (key, value) in rows[0].as_object().expect("an object") {
            if value.is_number() {
                assert!(
                    head.split(',').any(|name| name == key),
                    "{table}: {key}: {head}"
                );
            }
        }
    }
}

#[test]
fn unknown_tables_are_refused_with_the_known_ones() {
    let (code, said) = failure(&["cpu", "--table", "thread", &trace()]);
    assert_eq!(code, 2);
    for part in ["did you mean 'threads'?", "cpus, processes, threads"] {
        assert!(said.contains(part), "{said}");
    }
    let (code, said) = failure(&["cpu", "-o", "directory", &trace()]);
    assert!(code == 2 && said.contains("--format csv"), "{said}");
}

#[test]
fn each_table_becomes_a_file() {
    let directory = TempDir::new().expect("a temporary directory");
    let trace = trace();
    for (format, total) in [("csv", None), ("json", Some("summary.json"))] {
        let to = directory.path().join(format);
        let path = to.to_str().expect("UTF-8");
        let view = ["--view", "stats,log"];
        let arguments = ["cpu", &trace, "--format", format, "-o", path];
        let output = run(&[&arguments[..], &view].concat());
        assert_eq!(succeeds(&output), "");
        let entries = fs::read_dir(&to).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect();
        names.sort();
        let mut expected: Vec<String> = ["cpus", "log", "processes", "stretches", "threads"]
            .iter()
            .map(|name| format!("{name}.{format}"))
            .chain(total.map(str::to_owned))
            .collect();
        expected.sort();
        assert_eq!(names, expected);
        let threads = fs::read_to_string(to.join(format!("threads.{format}"))).expect("read");
        let alone = ["cpu", &trace, "--format", format, "--table", "threads"];
        assert_eq!(threads, text(&alone));
    }
}

/// Captured values have columns and types of their own.
#[test]
fn captures_are_columns_and_objects() {
    let trace = trace();
    let periods = [
        "periods",
        "--period",
        "run : sched_switch : sched_switch && cpu == $begin.cpu",
        "--captures",
        "run : comm = next_comm, tid = next_tid",
        "--view",
        "log",
        "--table",
        "log",
        &trace,
    ];
    let csv = text(&[&periods[..], &["--format", "csv"]].concat());
    let head = csv.lines().next().unwrap_or_default();
    assert!(head.contains(",begin.comm,begin.tid"), "{head}");
    let json = text(&[&periods[..], &["--format", "json"]].concat());
    let rows: Value = serde_json::from_str(&json).expect("JSON");
    let first = &rows[0]["begin"];
    assert!(
        first["comm"].is_string() && first["tid"].is_i64(),
        "{first}"
    );
    let grouped = [
        "periods",
        "--period",
        "run : sched_switch : sched_switch && cpu == $begin.cpu",
        "--captures",
        "run : tid = next_tid",
        "--group-by",
        "tid",
        "--table",
        "groups",
        "--format",
        "csv",
        &trace,
    ];
    let csv = text(&grouped);
    assert!(csv.starts_with("period,group.tid,count,"), "{csv}");
}
