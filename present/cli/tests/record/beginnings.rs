//! Beginnings of recordings, and recordings that are refused.

use std::collections::HashMap;

use tempfile::TempDir;

use crate::record;
use crate::support::{recording_directory, run, succeeds, text, tracebraid};

#[test]
fn what_is_there_is_told_to_the_end_however_short_the_command() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(directory.path(), &[], &["true"]);
    succeeds(&output);
    let printed = text(&["print", "--name", "lttng_statedump_*", &trace]);
    for event in [
        "start",
        "end",
        "block_device",
        "network_interface",
        "process_state",
    ] {
        let name = format!("lttng_statedump_{event}:");
        assert!(printed.contains(&name), "{name}");
    }
}

#[test]
fn nothing_lasts_from_before_the_recording() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(
        directory.path(),
        &["--kernel", "all", "--system"],
        &["sleep", "0.2"],
    );
    succeeds(&output);
    let report: serde_json::Value =
        serde_json::from_str(&text(&["irq", "--format", "json", &trace])).unwrap();
    assert!(!report["interrupts"].as_array().unwrap().is_empty());
    // A handler that was running before the recording began ends in it, once for each kind on each
    // CPU. From then on, beginnings and ends alternate; a handler without one of them would seem to
    // last until the next.
    let mut is_open: HashMap<(String, String), bool> = HashMap::new();
    let mut began_earlier = 0;
    let printed = text(&["print", "--name", "irq_handler_*,irq_softirq_*", &trace]);
    for line in printed
        .lines()
        .filter(|line| !line.contains("softirq_raise"))
    {
        let cpu = line
            .split("cpu_id = ")
            .nth(1)
            .and_then(|rest| rest.split([' ', ',']).next());
        let kind = if line.contains("softirq") {
            "softirq"
        } else {
            "handler"
        };
        let key = (kind.to_owned(), cpu.expect("a CPU").to_owned());
        let begins = line.contains("_entry:");
        match is_open.insert(key, begins) {
            None => began_earlier += u64::from(!begins),
            Some(was_open) => assert_eq!(was_open, !begins, "{line}"),
        }
    }
    assert!(!is_open.is_empty());
    // The report has further kinds: timers, and interrupts between CPUs.
    let unknown = report["total"]["unknown_begin"].as_u64().unwrap();
    assert!(unknown >= began_earlier, "{unknown} and {began_earlier}");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    assert!(unknown <= 8 * cpus, "{}", report["total"]);
}

#[test]
fn whoever_is_not_there_cannot_be_recorded() {
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("trace");
    let failing = |options: &[&str]| {
        let mut record = tracebraid();
        let output = record
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(&trace)
            .output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(failing(&["--pid", "4000000000"]).contains("4000000000"));
    let said = failing(&["--system", "--kernel", "none", "--syscalls", "none"]);
    assert!(said.contains("nothing to record"), "{said}");
}

#[test]
fn wrong_usage_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("trace");
    for options in [
        &["--syscalls", "reed"][..],
        &["--kernel", "shed"],
        &["--buffer-size", "5000"],
        &["--pid", "x"],
    ] {
        let mut record = tracebraid();
        let output = record
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(&trace)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(!trace.exists());
    }
    assert_eq!(run(&["record"]).status.code(), Some(2));
}
