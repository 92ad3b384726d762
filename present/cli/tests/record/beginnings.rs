//! What a recording begins with, and what it refuses.

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
    // Interrupts that take a tenth of a second would be ones whose end was not seen.
    let report: serde_json::Value =
        serde_json::from_str(&text(&["irq", "--format", "json", &trace])).unwrap();
    let rows = report["interrupts"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["max_ns"].as_u64().unwrap() < 100_000_000, "{row}");
    }
    // One for each kind on each CPU at most.
    assert!(
        report["total"]["unknown_begin"].as_u64().unwrap() < 20,
        "{}",
        report["total"]
    );
}

#[test]
fn whoever_is_not_there_cannot_be_recorded() {
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("trace");
    let failing = |options: &[&str]| {
        let mut record = tracebraid();
        let output = record.arg("record").args(options).arg("-o").arg(&trace).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(failing(&["--pid", "4000000000"]).contains("no process 4000000000"));
    let said = failing(&["--system", "--kernel", "none", "--syscalls", "none"]);
    assert!(said.contains("nothing is to be recorded"), "{said}");
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
