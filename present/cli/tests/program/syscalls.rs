//! `syscalls` as users call it, and common properties of reports with several views, on a recorded
//! trace.

use crate::support::{failure, recorded, recorded_trace, run, text, tracebraid};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    let trace = trace();
    let arguments = [
        &["syscalls", "--format", "json"],
        arguments,
        &[trace.as_str()],
    ]
    .concat();
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
    let narrow = |view: &str| {
        let mut command = tracebraid();
        command.env("TRACEBRAID_COLUMNS", "80");
        let output = command
            .args(["syscalls", "--top", "3", "--view", view])
            .arg(trace())
            .output();
        String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8")
    };
    for view in ["stats", "top", "log"] {
        let text = narrow(view);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(format!("syscalls-{view}"), text);
    }
    let bars = text(&["syscalls", "--view", "freq", "--syscall", "wait4", &trace()]);
    insta::assert_snapshot!("syscalls-freq", bars);
}

#[test]
fn all_ways_to_add_up_give_the_same() {
    let report = json(&["--view", "stats,log"]);
    let calls = report["total"]["calls"].as_u64().expect("a number");
    assert_eq!(calls, 57_406);
    for section in ["syscalls", "threads", "thread_syscalls"] {
        assert_eq!(sum(rows(&report, section), "count"), calls, "{section}");
        assert_eq!(
            sum(rows(&report, section), "errors"),
            sum(rows(&report, "errors"), "count"),
            "{section}"
        );
    }
    let log = rows(&report, "log");
    assert_eq!(log.len() as u64, calls);
    assert_eq!(
        sum(log, "duration_ns"),
        sum(rows(&report, "syscalls"), "total_ns")
    );
    let end = |row: &Value| {
        row["begin_ns"]
            .as_i64()
            .zip(row["duration_ns"].as_i64())
            .map(|(a, b)| a + b)
    };
    assert!(log.is_sorted_by_key(end), "in the order of their ends");
}

/// Quantiles and the histogram, compared with the durations of the log.
#[test]
fn distributions_are_those_of_the_log() {
    let views = ["--view", "stats,log,freq", "--buckets", "linear"];
    let report = json(&[&views[..], &["--syscall", "futex"]].concat());
    let mut durations: Vec<u64> = rows(&report, "log")
        .iter()
        .filter_map(|row| row["duration_ns"].as_u64())
        .collect();
    durations.sort_unstable();
    let stats = &rows(&report, "syscalls")[0];
    for (key, thousandths) in [
        ("p50_ns", 500),
        ("p90_ns", 900),
        ("p99_ns", 990),
        ("p999_ns", 999),
    ] {
        let exact = durations[(durations.len() * thousandths).div_ceil(1000) - 1];
        let found = stats[key].as_u64().expect("a number");
        assert!(
            found.abs_diff(exact) <= exact / 128,
            "{key}: {found} for {exact}"
        );
    }
    let bins = rows(&report, "distribution");
    assert_eq!(
        (bins.len(), sum(bins, "count")),
        (20, durations.len() as u64)
    );
    for (at, bin) in bins.iter().enumerate() {
        let [from, to] = ["from_ns", "to_ns"].map(|key| bin[key].as_f64().expect("a number"));
        let inside = |&&value: &&u64| from <= value as f64 && ((value as f64) < to || at == 19);
        assert_eq!(
            bin["count"],
            durations.iter().filter(inside).count(),
            "{bin}"
        );
    }
}

#[test]
fn what_is_chosen() {
    let all = json(&["--view", "log"]);
    let log = rows(&all, "log");
    let count = |keep: &dyn Fn(&Value) -> bool| log.iter().filter(|row| keep(row)).count();
    for (arguments, expected) in [
        (
            &["--min", "10ms"][..],
            count(&|row| row["duration_ns"].as_u64() >= Some(10_000_000)),
        ),
        (
            &["--max", "2us"],
            count(&|row| row["duration_ns"].as_u64() <= Some(2000)),
        ),
        (&["--tid", "284"], count(&|row| row["tid"] == 284)),
        (
            &["--syscall", "read,p*64"],
            count(&|row| {
                let name = row["syscall"].as_str().expect("a name");
                name == "read" || name.starts_with('p') && name.ends_with("64")
            }),
        ),
        (&["--procname", "ab"], count(&|row| row["name"] == "ab")),
    ] {
        let report = json(&[&["--view", "log"], arguments].concat());
        assert!(
            expected > 0 && expected < log.len(),
            "{arguments:?}: {expected}"
        );
        assert_eq!(rows(&report, "log").len(), expected, "{arguments:?}");
    }
    let (code, message) = failure(&["syscalls", "--min", "soon", &trace()]);
    assert_eq!(code, 2);
    assert!(message.contains("expected a duration"), "{message}");
}

#[test]
fn csv_has_a_table_for_each_section() {
    let csv = text(&[
        "syscalls",
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
    assert_eq!(heads.len(), 6, "{csv}");
    assert_eq!(
        heads[5],
        "begin_ns,duration_ns,syscall,result,error,host,pid,tid,name"
    );
    assert!(
        csv.contains(",epoll_wait,1,,,222,231,Client manageme"),
        "{csv}"
    );
}

/// Makes a report for LAMI, in which each table must match its class; returns the number of tables.
fn fitting_tables(
    command: &str,
    classes: &serde_json::Map<String, Value>,
    arguments: &[&str],
) -> usize {
    let format: &[&str] = &[command, "--format", "lami", "--output-progress"];
    let output = text(&[format, arguments].concat());
    assert!(output.starts_with("0 reading\n"), "{command}");
    let results = output
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("results");
    let results: Value = serde_json::from_str(results).expect("JSON");
    let tables = results["results"].as_array().expect("tables");
    for table in tables {
        let class = &classes[table["class"].as_str().expect("a class")];
        let columns = class["column-descriptions"].as_array().expect("columns");
        assert!(class["title"].is_string());
        assert_eq!(table["time-range"]["begin"]["class"], "timestamp");
        for row in table["data"].as_array().expect("rows") {
            let row = row.as_array().expect("cells");
            assert_eq!(row.len(), columns.len(), "{command}: {class}");
            for (cell, column) in row.iter().zip(columns) {
                assert!(
                    cell.is_null() || cell["class"] == column["class"],
                    "{cell} {column}"
                );
                assert!(
                    cell.get("value").is_none_or(|value| !value.is_null()),
                    "{cell}"
                );
            }
        }
    }
    tables.len()
}

/// The four phases of LAMI, as Trace Compass calls them.
#[test]
fn machine_interface() {
    assert_eq!(text(&["--mi-version"]), "1.0\n");
    for command in [
        "cpu",
        "disk",
        "io",
        "irq",
        "net",
        "processes",
        "report",
        "sched",
        "syscalls",
    ] {
        let metadata: Value =
            serde_json::from_str(&text(&[command, "--format", "lami", "--metadata"]))
                .expect("JSON");
        assert_eq!(metadata["mi-version"]["major"], 1);
        let classes = metadata["table-classes"].as_object().expect("classes");
        assert_eq!(text(&[command, "--test-compatibility", &trace()]), "");
        let several = ["cpu", "io", "irq", "processes", "syscalls", "sched"].contains(&command);
        let views: &[&str] = if several {
            &["--view", "stats,top,log,freq"]
        } else {
            &[]
        };
        let range = [
            "--begin",
            "1795225394500000000",
            "--end",
            "1795225395500000000",
        ];
        let used = fitting_tables(command, classes, &[views, &range, &[&trace()]].concat());
        if several && command != "sched" {
            assert_eq!(used, classes.len(), "{command}: every class occurs");
        }
        // Also for several hosts.
        let other = crate::support::recorded_trace("kernel-discarded");
        fitting_tables(command, classes, &[views, &[&trace(), &other]].concat());
    }
    let user_space = recorded("ust-cyg-profile").join("ust-cyg-profile");
    let output = run(&[
        "syscalls",
        "--test-compatibility",
        user_space.to_str().expect("UTF-8"),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.starts_with(b"{\"error-message\":"));
    assert!(
        output.stderr.is_empty(),
        "Trace Compass reads it with the answer"
    );
}
