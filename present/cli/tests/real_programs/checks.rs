//! Checks for every recording.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{self, reads_alike, run, text};

/// Reports that have results for every recording.
const REPORTS: [&str; 13] = [
    "info",
    "count",
    "cpu",
    "io",
    "syscalls",
    "sched",
    "irq",
    "net",
    "processes",
    "files",
    "waits",
    "report",
    "memory",
];

/// babeltrace2 and all reports read the trace without a warning, and no event was lost.
pub(crate) fn is_sound(trace: &str) {
    if let Some(ours) = reads_alike(trace) {
        assert!(ours.lines().count() > 1000);
    }
    for report in REPORTS {
        let output = run(&[report, "--strict", "--format", "json", trace]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{report}: {said}");
        assert!(!said.contains("lost"), "{report}: {said}");
        let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(
            shown.as_object().is_some_and(|shown| !shown.is_empty()),
            "{report}"
        );
    }
    let disk = run(&["disk", trace]);
    assert_eq!(disk.status.code(), Some(0));
    let counted = json("count", trace);
    assert_eq!(counted["discarded_events"].as_u64().unwrap_or(0), 0);
    runs_on_cpus_that_there_are(trace);
    switches_fit(trace);
}

/// On each CPU, each switch begins with the thread with which the previous one ended.
fn switches_fit(trace: &str) {
    let mut running = BTreeMap::new();
    for line in events(trace, "sched_switch") {
        let cpu = line
            .split("cpu_id = ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let cpu = cpu.expect("a CPU").to_owned();
        let of = |name: &str| field(&line, name).expect("a thread").to_owned();
        if let Some(before) = running.insert(cpu, of("next_tid")) {
            assert_eq!(before, of("prev_tid"), "{line}");
        }
    }
}

/// No CPU is active longer than the recording lasts, and no thread longer than all CPUs.
fn runs_on_cpus_that_there_are(trace: &str) {
    let cpu = json("cpu", trace);
    let duration = number(&cpu["duration_ns"]);
    for row in rows(&cpu["cpus"]) {
        let whole =
            number(&row["active_ns"]) + number(&row["idle_ns"]) + number(&row["unknown_ns"]);
        assert!(whole <= duration, "{row}");
    }
    for row in rows(&cpu["threads"]) {
        assert!(number(&row["active_ns"]) <= duration, "{row}");
    }
}

/// A report as JSON.
pub(crate) fn json(report: &str, trace: &str) -> Value {
    let shown = text(&[report, "--format", "json", trace]);
    serde_json::from_str(&shown).expect("JSON")
}

pub(crate) fn rows(table: &Value) -> &[Value] {
    table.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("a number, not {value}"))
}

/// Number of system calls with a name.
pub(crate) fn calls(trace: &str, name: &str) -> u64 {
    let report = json("syscalls", trace);
    let of_name = rows(&report["syscalls"])
        .iter()
        .filter(|row| row["syscall"] == name);
    of_name.map(|row| number(&row["count"])).sum()
}

/// Bytes read from and written to sockets.
pub(crate) fn network_bytes(trace: &str) -> (u64, u64) {
    let report = json("io", trace);
    let of = |field: &str| {
        let is_socket = |row: &&Value| row["type"] == "network";
        let rows = rows(&report["types"]).iter().filter(is_socket);
        rows.map(|row| number(&row[field])).sum()
    };
    (of("read_bytes"), of("written_bytes"))
}

/// Bytes written by all calls with a name.
pub(crate) fn written_by(trace: &str, call: &str) -> u64 {
    let report = json("io", trace);
    let of_name = rows(&report["syscalls"])
        .iter()
        .filter(|row| row["name"] == call);
    of_name.map(|row| number(&row["written_bytes"])).sum()
}

/// Lines of `print` for events with a name.
pub(crate) fn events(trace: &str, name: &str) -> Vec<String> {
    text(&["print", "--name", name, trace])
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The value of a field in an event's line; strings without their quotes.
pub(crate) fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let payload = line.rsplit_once("}, { ")?.1.trim_end_matches(" }");
    let mut fields = payload
        .split(", ")
        .filter_map(|field| field.split_once(" = "));
    let value = fields.find(|(key, _)| *key == name)?.1;
    Some(value.trim_matches('"'))
}

/// Checks that a function occurs in the stacks. Stacks require a privilege: without any,
/// prints a message.
pub(crate) fn has_stacks_of(trace: &str, names: &[&str]) {
    let report = json("stacks", trace);
    if number(&report["cpu_samples"]) == 0 {
        return support::skipped("perf events are refused here: no stacks");
    }
    let functions = rows(&report["functions"]);
    for name in names {
        let found = functions.iter().any(|row| row["name"] == *name);
        let all: Vec<&Value> = functions.iter().map(|row| &row["name"]).collect();
        assert!(found, "no stack has {name}: {all:?}");
    }
}
