//! `levels` and `--levels` on a recording of `examples/programs/torture.c`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{failure, recorded_trace, text};

fn json(arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--format", "json"]].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn sum(rows: &Value, key: &str) -> u64 {
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| row[key].as_u64().expect("a number")).sum()
}

#[test]
fn tables_agree_with_each_other() {
    let trace = recorded_trace("user-level");
    let report = json(&["levels", &trace]);
    let threads = &report["threads"];
    assert!(threads.as_array().expect("rows").len() >= 30, "{threads}");
    // Each nanosecond without an LWP belongs to one thread that had the CPU.
    let ready = sum(threads, "ready_ns");
    assert!(ready > 0);
    assert_eq!(sum(&report["kept_by"], "kept_ns"), ready);
    for row in report["functions"].as_array().expect("rows") {
        let number = |key: &str| row[key].as_u64().expect("a number");
        assert!(number("own_ns") <= number("active_ns"), "{row}");
        assert!(number("active_ns") <= number("wall_ns"), "{row}");
        assert!(number("unfinished") <= number("calls"), "{row}");
    }
    let one = json(&[
        "levels",
        "--table",
        "functions",
        "--function",
        "none*",
        &trace,
    ]);
    assert_eq!(one, Value::Array(Vec::new()));
}

#[test]
fn all_commands_show_user_level_threads() {
    let trace = recorded_trace("user-level");
    let directory = TempDir::new().expect("a directory");
    let merged = directory.path().join("SUPER").display().to_string();
    text(&["levels", "merge", &trace, "-o", &merged]);
    for command in ["cpu", "waits", "sched", "levels"] {
        assert_eq!(
            json(&[command, "--levels", "-j", "1", &trace]),
            json(&[command, &merged]),
            "{command}"
        );
    }
    let query = "SELECT count(*) AS n FROM intervals WHERE tid >= 100000000";
    let counted = |options: &[&str]| text(&[options, &["--format", "csv"]].concat());
    let of_trace = counted(&["sql", "--levels", &trace, query]);
    assert_eq!(of_trace, counted(&["sql", &merged, query]));
    assert!(!of_trace.ends_with("\n0\n"), "{of_trace}");
    let waits = text(&["waits", &merged]);
    assert!(waits.contains("waits of user-level threads"), "{waits}");
    assert!(text(&["levels", "reactions", &merged]).contains("runtime"));
}

#[test]
fn records_are_selected_by_number_by_range_and_by_lwp() {
    let trace = recorded_trace("user-level");
    let directory = TempDir::new().expect("a directory");
    let merged = directory.path().join("SUPER").display().to_string();
    text(&["levels", "merge", &trace, "-o", &merged]);
    let all = text(&["print", "--no-delta", &merged]);
    let lines: Vec<&str> = all.lines().collect();
    let third = text(&["print", "--no-delta", "--nth", "3", &merged]);
    assert_eq!(third.trim_end(), lines[2]);
    let (begin, end) = ("tracebraid:ult_create", "tracebraid:ult_exit");
    let ranges = text(&[
        "print",
        "--no-delta",
        "--begin-at",
        begin,
        "--end-at",
        end,
        &merged,
    ]);
    let mut expected = Vec::new();
    let mut is_open = false;
    for line in lines {
        let is = |name: &str| line.contains(&format!(" {name}: "));
        let was_open = is_open;
        is_open = if was_open { !is(end) } else { is(begin) };
        if was_open || is_open {
            expected.push(line);
        }
    }
    assert!(!expected.is_empty());
    assert_eq!(ranges.lines().collect::<Vec<_>>(), expected);
    let lwps = json(&["levels", "--table", "lwps", &merged]);
    let lwp = lwps[0]["lwp"]["tid"].as_u64().expect("an id").to_string();
    let of_lwp = text(&["print", "--lwp", &lwp, &merged]);
    assert!(!of_lwp.is_empty());
    let is_of_lwp = |line: &str| line.contains(&format!("lwp = {lwp},"));
    assert!(of_lwp.lines().all(is_of_lwp));
}

#[test]
fn options_that_cannot_be_followed_are_refused() {
    let trace = recorded_trace("user-level");
    let (code, message) = failure(&["levels", "--compensate", &trace]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("record --probes"), "{message}");
    let directory = TempDir::new().expect("a directory");
    let merged = directory.path().join("SUPER").display().to_string();
    let bound = ["levels", "merge", "--bound", "500", &trace, "-o", &merged];
    let (code, message) = failure(&bound);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("unit"), "{message}");
    assert_eq!(
        fs::read_dir(directory.path()).expect("a directory").count(),
        0
    );
}

#[test]
fn cpus_select_the_intervals_that_end_on_them() {
    let trace = recorded_trace("user-level");
    let active = |options: &[&str]| {
        let levels = ["levels", "--table", "threads", &trace];
        sum(&json(&[&levels, options].concat()), "active_ns")
    };
    let whole = active(&[]);
    let of_cpus = ["0", "1"].map(|cpu| active(&["--cpu", cpu]));
    assert_eq!(of_cpus.iter().sum::<u64>(), whole);
    assert!(of_cpus.iter().all(|active| *active < whole), "{of_cpus:?}");
    assert_eq!(active(&["--cpu", "99"]), 0);
}

/// User-level threads of a process that kept others of it from running.
#[test]
fn keepers_are_those_of_kept_threads() {
    let trace = recorded_trace("user-level");
    let report = json(&["levels", &trace]);
    let kept = report["kept_by"].as_array().expect("rows").iter();
    let by_threads = kept.filter(|row| row["keeper"] == "user-level threads");
    let by_threads = by_threads.map(|row| row["kept_ns"].as_u64().expect("a number"));
    assert_eq!(sum(&report["keepers"], "kept_ns"), by_threads.sum::<u64>());
}

#[test]
fn a_super_trace_among_its_sources_is_left_out() {
    let trace = recorded_trace("user-level");
    let directory = TempDir::new().expect("a directory");
    let [first, second] = ["FIRST", "SECOND"].map(|name| directory.path().join(name));
    let [first, second] = [first, second].map(|path| path.display().to_string());
    text(&["levels", "merge", &trace, "-o", &first]);
    text(&["levels", "merge", &first, &trace, "-o", &second]);
    let report = |super_trace: &str| json(&["levels", super_trace]);
    assert_eq!(report(&first), report(&second));
}
