//! `waits` as users call it, on a recorded trace.

use std::collections::BTreeMap;

use crate::support::{failure, recorded_trace, text, tracebraid};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    let trace = trace();
    let arguments = [&["waits", "--format", "json"], arguments, &[trace.as_str()]].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn rows<'r>(report: &'r Value, section: &str) -> &'r Vec<Value> {
    report[section].as_array().expect("rows")
}

fn sum(rows: &[Value], key: &str) -> u64 {
    rows.iter()
        .map(|row| row[key].as_u64().expect("a number"))
        .sum()
}

#[test]
fn tables() {
    for view in ["stats", "top", "log"] {
        let mut command = tracebraid();
        command.env("TRACEBRAID_COLUMNS", "80");
        let output = command
            .args(["waits", "--top", "3", "--view", view])
            .arg(trace())
            .output();
        let text = String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(format!("waits-{view}"), text);
    }
    let bars = text(&["waits", "--view", "freq", "--syscall", "futex", &trace()]);
    insta::assert_snapshot!("waits-freq", bars);
}

#[test]
fn all_ways_to_add_up_give_the_same() {
    let report = json(&["--view", "stats,log"]);
    let time = report["total"]["time_ns"].as_u64().expect("a number");
    assert_eq!(report["total"]["calls"], 57_406);
    for section in [
        "reasons",
        "syscalls",
        "syscall_reasons",
        "threads",
        "thread_reasons",
        "processes",
    ] {
        assert_eq!(sum(rows(&report, section), "total_ns"), time, "{section}");
    }
    for section in ["syscalls", "threads", "processes"] {
        assert_eq!(sum(rows(&report, section), "calls"), 57_406, "{section}");
    }
    // The log contains each wait of the tables.
    let mut waits: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows(&report, "log") {
        let duration = row["duration_ns"].as_u64().expect("a number");
        *waits.entry(row["why"].as_str().expect("text")).or_default() += duration;
    }
    let reasons = rows(&report, "reasons")
        .iter()
        .filter(|row| row["why"] != "running");
    let reasons = reasons.map(|row| {
        let time = row["total_ns"].as_u64().expect("a number");
        (row["why"].as_str().expect("text"), time)
    });
    assert_eq!(waits, reasons.collect());
    let end = |row: &Value| {
        row["begin_ns"]
            .as_i64()
            .zip(row["duration_ns"].as_i64())
            .map(|(a, b)| a + b)
    };
    assert!(
        rows(&report, "log").is_sorted_by_key(end),
        "in the order of their ends"
    );
}

/// The programs in the trace wait for known reasons: `sleep` for timers, parents for their
/// children, and `dd oflag=dsync` for its disk.
#[test]
fn programs_wait_for_what_they_do() {
    let report = json(&["--view", "stats", "--procname", "sleep"]);
    let sleep = rows(&report, "syscalls")
        .iter()
        .find(|row| row["syscall"] == "clock_nanosleep");
    let sleep = sleep.expect("a sleeper");
    assert!(sleep["timer_ns"].as_f64() > sleep["total_ns"].as_f64().map(|total| total * 0.9));
    let report = json(&["--view", "stats", "--procname", "dd", "--syscall", "write"]);
    let write = &rows(&report, "syscalls")[0];
    assert!(
        write["block_device_ns"].as_u64() > Some(100_000_000),
        "{write}"
    );
    assert_eq!(write["network_ns"], 0);
    let report = json(&["--view", "stats", "--syscall", "wait4"]);
    let child = &rows(&report, "reasons")[0];
    assert_eq!(child["why"], "child");
    assert!(child["share"].as_f64() > Some(0.95), "{child}");
}

/// The histogram contains all calls.
#[test]
fn histograms_have_all_calls() {
    let report = json(&["--view", "stats,freq"]);
    for reason in rows(&report, "reasons") {
        let bins = rows(&report, "distribution")
            .iter()
            .filter(|bin| bin["why"] == reason["why"]);
        let bins: Vec<Value> = bins.cloned().collect();
        let ends = [bins.first(), bins.last()];
        let counts = ends.map(|bin| bin.expect("a bucket")["count"].as_u64());
        assert!(counts.iter().all(|count| *count > Some(0)), "{reason}");
        assert_eq!(
            Some(sum(&bins, "count")),
            reason["count"].as_u64(),
            "{reason}"
        );
    }
}

/// Of each call only the parts of the chosen reasons count, and only calls with such a part.
#[test]
fn reasons_are_chosen() {
    let of = |options: &[&str]| json(&[&["--view", "stats,log"], options].concat());
    let (all, some) = (of(&[]), of(&["--why", "block-*,futex"]));
    let is_chosen = |row: &&Value| row["why"] == "block-device" || row["why"] == "futex";
    let without_share = |row: &Value| {
        let mut row = row.clone();
        row.as_object_mut().expect("a row").remove("share");
        row
    };
    let chosen = |report: &Value, section: &str| -> Vec<Value> {
        let rows = rows(report, section).iter().filter(is_chosen);
        rows.map(without_share).collect()
    };
    for section in ["reasons", "syscall_reasons", "thread_reasons", "log"] {
        let (mut expected, mut found) = (chosen(&all, section), chosen(&some, section));
        assert_eq!(found.len(), rows(&some, section).len(), "{section}");
        // Calls and threads come in the order of their times, which are others.
        for rows in [&mut expected, &mut found] {
            rows.sort_by_key(Value::to_string);
        }
        assert!(!found.is_empty());
        assert_eq!(found, expected, "{section}");
    }
    let time = some["total"]["time_ns"].as_u64().expect("a number");
    for section in ["reasons", "syscalls", "threads", "processes"] {
        assert_eq!(sum(rows(&some, section), "total_ns"), time, "{section}");
    }
    for row in rows(&some, "threads") {
        let parts = ["block_device_ns", "futex_ns"].map(|part| row[part].as_u64());
        assert_eq!(
            parts[0].zip(parts[1]).map(|(a, b)| a + b),
            row["total_ns"].as_u64()
        );
        assert_eq!(row["running_ns"], 0);
    }
    // Most calls do nothing but run.
    let running = of(&["--why", "running"]);
    let calls = |report: &Value| report["total"]["calls"].as_u64();
    assert!(calls(&running) > Some(50_000) && calls(&running) <= calls(&all));
    assert!(calls(&some) < Some(5_000), "{}", some["total"]);
}

#[test]
fn what_is_chosen() {
    let all = json(&["--view", "log"]);
    let log = rows(&all, "log");
    let long = log
        .iter()
        .filter(|row| row["duration_ns"].as_u64() >= Some(10_000_000))
        .count();
    assert!(long > 0 && long < log.len());
    assert_eq!(
        rows(&json(&["--view", "log", "--min", "10ms"]), "log").len(),
        long
    );
    let own = log.iter().filter(|row| row["tid"] == 284).count();
    assert!(own > 0 && own < log.len());
    assert_eq!(
        rows(&json(&["--view", "log", "--tid", "284"]), "log").len(),
        own
    );
    let top = json(&["--view", "top", "--top", "5"]);
    assert_eq!(rows(&top, "longest").len(), 5);
    let longest = log
        .iter()
        .filter_map(|row| row["duration_ns"].as_u64())
        .max();
    assert_eq!(rows(&top, "longest")[0]["duration_ns"].as_u64(), longest);
    let (code, message) = failure(&["waits", "--min", "soon", &trace()]);
    assert_eq!(code, 2);
    assert!(message.contains("expected a duration"), "{message}");
}

#[test]
fn csv_has_a_table_for_each_section() {
    let csv = text(&[
        "waits",
        "--format",
        "csv",
        "--view",
        "stats,top",
        "--top",
        "2",
        &trace(),
    ]);
    let heads: Vec<&str> = csv
        .split("\n\n")
        .filter_map(|section| section.lines().next())
        .collect();
    assert_eq!(heads.len(), 10, "{csv}");
    assert_eq!(
        heads[9],
        "begin_ns,duration_ns,why,syscall,host,pid,tid,name,context,waker_host,waker_pid,waker_tid,waker_name"
    );
    assert!(csv.contains(",127.0.0.1:8080,connect,"), "{csv}");
}

#[test]
fn machine_interface() {
    let metadata: Value =
        serde_json::from_str(&text(&["waits", "--format", "lami", "--metadata"])).expect("JSON");
    let classes = metadata["table-classes"].as_object().expect("classes");
    let output = text(&[
        "waits",
        "--format",
        "lami",
        "--view",
        "stats,top,log,freq",
        &trace(),
    ]);
    let results: Value = serde_json::from_str(output.trim()).expect("JSON");
    let tables = results["results"].as_array().expect("tables");
    assert_eq!(tables.len(), classes.len(), "every class occurs");
    for table in tables {
        let class = &classes[table["class"].as_str().expect("a class")];
        let columns = class["column-descriptions"].as_array().expect("columns");
        let rows = table["data"].as_array().expect("rows");
        assert!(
            rows.iter()
                .all(|row| row.as_array().map(Vec::len) == Some(columns.len()))
        );
    }
}

/// The help has examples, and names the events to record.
#[test]
fn help() {
    let help = text(&["waits", "--help"]);
    for part in [
        "sched_waking",
        "irq_softirq_*",
        "Examples:",
        "tracebraid waits --view log --min 10ms TRACE",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

/// A thread's histogram contains only calls of that thread.
#[test]
fn histograms_are_of_the_threads_that_were_asked_for() {
    let trace = trace();
    for command in ["syscalls", "waits", "files", "sched"] {
        let of = |view: &str| -> Value {
            let arguments = [
                command, "--tid", "284", "--format", "json", "--view", view, &trace,
            ];
            serde_json::from_str(&text(&arguments)).expect("JSON")
        };
        let counted = sum(rows(&of("freq"), "distribution"), "count");
        let stats = of("stats");
        let expected = match command {
            "syscalls" => stats["total"]["calls"].as_u64().expect("a number"),
            "waits" => sum(rows(&stats, "reasons"), "count"),
            "files" => sum(rows(&stats, "classes"), "count"),
            // All latencies, by thread and by priority.
            _ => 3 * sum(rows(&stats, "threads"), "count"),
        };
        assert_eq!(counted, expected, "{command}");
        assert!(counted > 0, "{command}");
    }
}
