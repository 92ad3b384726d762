//! Traces without the streams of some CPUs: unrecorded values are unknown, and reported once.

use serde_json::Value;
use tempfile::TempDir;
use tracebraid_testkit::partial::PartialTrace;

use crate::support::{recorded_trace, run, succeeds, text};

/// The trace with only the channel file of the first of four CPUs, and its path.
fn first_cpu(index: bool) -> (PartialTrace, String) {
    let part = PartialTrace::of(&[0], index);
    let path = part.path().display().to_string();
    (part, path)
}

const NOTE: &str = "not recorded: CPUs 1-3. ";

#[test]
fn reports_say_it_once_at_their_top() {
    let (_part, trace) = first_cpu(true);
    for command in [
        "report",
        "cpu",
        "sched",
        "waits",
        "disk",
        "net",
        "io",
        "syscalls",
        "processes",
        "irq",
        "memory",
        "files",
    ] {
        let output = run(&[command, &trace]);
        let found = succeeds(&output);
        assert!(found.starts_with(NOTE), "{command}: {found}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (found.matches(NOTE).count(), said.matches(NOTE).count()),
            (1, 0),
            "{command}: {said}"
        );
        let output = run(&[command, &trace, "--format", "csv"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches(NOTE).count(), 1, "{command}: {said}");
        assert!(!succeeds(&output).contains(NOTE), "{command}");
        let json: Value =
            serde_json::from_str(&text(&[command, &trace, "--format", "json"])).expect("JSON");
        let cpus: Vec<u64> = json["not_recorded"]
            .as_array()
            .unwrap_or_else(|| panic!("{command}: a list"))
            .iter()
            .filter_map(|of| of["cpu"].as_u64())
            .collect();
        assert_eq!(cpus, [1, 2, 3], "{command}");
    }
    let whole = recorded_trace("kernel-mix-small");
    assert!(!text(&["report", &whole]).contains("not recorded"));
}

/// The page draws no conclusions from unrecorded CPUs.
#[test]
fn the_page_invents_nothing() {
    for index in [true, false] {
        let (_part, trace) = first_cpu(index);
        let page = text(&["report", &trace]);
        assert!(
            !page.contains("threads wait for CPU") && !page.contains("is busy"),
            "{page}"
        );
        let whole: Value = serde_json::from_str(&text(&[
            "sched",
            &recorded_trace("kernel-mix-small"),
            "--format",
            "json",
        ]))
        .expect("JSON");
        let part: Value =
            serde_json::from_str(&text(&["sched", &trace, "--format", "json"])).expect("JSON");
        let longest = |report: &Value| report["latency"][0]["max_ns"].as_u64().expect("a latency");
        assert!(
            longest(&part) <= longest(&whole),
            "{} {}",
            part["latency"],
            whole["latency"]
        );
    }
}

#[test]
fn info_lists_cpus() {
    let (_part, trace) = first_cpu(false);
    let shown = text(&["info", &trace]);
    let line = |fact: &str| {
        shown
            .lines()
            .find(|line| line.trim_start().starts_with(fact))
            .map(str::trim)
    };
    assert_eq!(line("Recorded CPUs"), Some("Recorded CPUs  0"), "{shown}");
    assert_eq!(
        line("Not recorded"),
        Some("Not recorded   CPUs 1-3"),
        "{shown}"
    );
    let json: Value =
        serde_json::from_str(&text(&["info", &trace, "--format", "json"])).expect("JSON");
    assert_eq!(json["traces"][0]["recorded_cpus"], serde_json::json!([0]));
    assert_eq!(
        json["traces"][0]["not_recorded"].as_array().map(Vec::len),
        Some(3)
    );
}

/// Relative times start at the first event record, even if packets begin long before.
#[test]
fn info_and_reports_have_the_same_relative_times() {
    let copy = PartialTrace::cut(3, 0..4);
    let trace = copy.path().display().to_string();
    let after = |text: &str| {
        let at = text.find("CPU 3 after ").expect("the CPU");
        text[at..].split(" s").next().expect("a time").to_owned()
    };
    assert_eq!(
        after(&text(&["info", &trace])),
        after(&text(&["cpu", &trace]))
    );
}

/// The history and SQL have no state for threads that went to an unrecorded CPU.
#[test]
fn histories_and_sql_know_what_they_do_not_know() {
    let (_part, trace) = first_cpu(true);
    let directory = TempDir::new().expect("a directory");
    let history = directory.path().join("history").display().to_string();
    let output = run(&["history", "build", &trace, "-o", &history]);
    succeeds(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains(NOTE));
    let ask = |question: &str| {
        let sql = [
            "executions",
            "sql",
            "--trace",
            &trace,
            question,
            "--format",
            "json",
        ];
        let output = run(&sql);
        let rows: Value = serde_json::from_str(&succeeds(&output)).expect("JSON");
        (rows, output)
    };
    let question = "SELECT state, count(*) AS n FROM intervals GROUP BY state";
    let (rows, output) = ask(question);
    assert_eq!(
        String::from_utf8_lossy(&output.stderr)
            .matches(NOTE)
            .count(),
        1
    );
    let states: Vec<&str> = rows
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["state"].as_str())
        .collect();
    assert!(
        states.contains(&"unknown") && !states.contains(&"still-waiting"),
        "{states:?}"
    );
    // No preemption without a preemptor.
    let question = "SELECT count(*) AS n FROM intervals WHERE detail = 'by the idle task'";
    let (rows, _) = ask(question);
    assert_eq!(rows[0]["n"], 0);
}
