//! Snapshots that are written when a condition holds (`--when`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::record;
use crate::support::{compiled, reads_alike, recording_directory, run, succeeds, text, tracebraid};

/// Short calls, then a call of 300 ms (`nanosleep`), then short calls again.
const SLEEPER: &str = r"
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    for (int round = 0; round < atoi(words[1]); round++) {
        struct timespec some = {0, 20000000}, many = {0, 300000000};
        for (int i = 0; i < 20; i++) syscall(SYS_nanosleep, &some, 0);
        syscall(SYS_nanosleep, &many, 0);
        for (int i = 0; i < 20; i++) syscall(SYS_nanosleep, &some, 0);
    }
    return 0;
}
";

fn snapshots(trace: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(trace).unwrap().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("snapshot-")
    });
    paths.sort();
    paths
}

fn info(trace: &Path) -> Value {
    let info = text(&["info", "--format", "json", trace.to_str().unwrap()]);
    serde_json::from_str(&info).unwrap()
}

#[test]
fn a_long_call_leads_to_a_snapshot() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let sleeper = compiled(directory.path(), "sleeper", SLEEPER);
    let options = [
        "--snapshot",
        "--when",
        "syscall(nanosleep) > 250ms",
        "--snapshots",
        "1",
    ];
    let (output, trace) = record(
        directory.path(),
        &options,
        &[sleeper.to_str().unwrap(), "2"],
    );
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let snapshots = snapshots(&trace);
    assert_eq!(snapshots.len(), 1, "{said}");
    assert!(
        said.contains("syscall(nanosleep) > 250ms (nanosleep of thread "),
        "{said}"
    );
    let info = info(&snapshots[0]);
    let of = &info["traces"][0];
    assert_eq!(of["end_reason"], "snapshot");
    assert_eq!(
        of["environment"]["tracebraid_when"],
        "syscall(nanosleep) > 250ms"
    );
    let triggers = of["triggers"].as_array().unwrap();
    assert_eq!(triggers.len(), 1);
    assert_eq!(triggers[0]["condition"], "syscall(nanosleep) > 250ms");
    let value = triggers[0]["value"].as_str().unwrap();
    assert!(
        value.starts_with("nanosleep of thread ") && value.contains(" took "),
        "{value}"
    );
    // The condition held when the call ended.
    let chunk = snapshots[0].to_str().unwrap();
    let printed = text(&["print", "--name", "tracebraid_trigger", chunk]);
    assert!(
        printed.contains("condition = \"syscall(nanosleep) > 250ms\""),
        "{printed}"
    );
    let time = |line: &str| {
        line.split_once(']')
            .map(|(time, _)| time.to_owned())
            .unwrap()
    };
    let exits = text(&["print", "--name", "syscall_exit_nanosleep", chunk]);
    assert!(
        exits.lines().any(|line| time(line) == time(&printed)),
        "{printed} is not the time of any exit:\n{exits}"
    );
    reads_alike(chunk);
    assert!(text(&["info", chunk]).contains("syscall(nanosleep) > 250ms (nanosleep of thread"));
    // The recording continued, and all of it is read once: the snapshot is part of the recording.
    let count = |trace: &str| {
        let counted = text(&["count", "--strict", "--format", "json", trace]);
        let counted: Value = serde_json::from_str(&counted).unwrap();
        counted["events"].as_u64().unwrap()
    };
    let kernel = format!("{trace}/kernel");
    assert!(count(&kernel) > count(chunk));
    assert_eq!(count(&trace), count(&kernel));
    assert_eq!(run(&["report", &trace]).status.code(), Some(0));
}

/// Conditions of `--when` are evaluated only for calls that `--where` records.
#[test]
fn conditions_of_snapshots_and_of_calls_go_together() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let sleeper = compiled(directory.path(), "sleeper", SLEEPER);
    let options = [
        &[
            "--snapshot",
            "--where",
            "duration > 100ms",
            "--snapshots",
            "1",
        ][..],
        &["--when", "rate(syscall_entry_nanosleep) > 8/s"],
        &["--when", "syscall(nanosleep) > 250ms"],
    ]
    .concat();
    let (output, trace) = record(
        directory.path(),
        &options,
        &[sleeper.to_str().unwrap(), "3"],
    );
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // 40 calls of 20 ms in each round reach that rate, but only long calls are recorded.
    assert!(
        said.contains("syscall(nanosleep) > 250ms (nanosleep of thread "),
        "{said}"
    );
    assert!(
        !said.contains("rate(syscall_entry_nanosleep) > 8/s ("),
        "{said}"
    );
    assert!(said.contains("Left out by --where"), "{said}");
    let snapshots = snapshots(&trace);
    assert_eq!(snapshots.len(), 1, "{said}");
    let snapshot = snapshots[0].to_str().unwrap();
    let calls = |trace: &str| {
        let entries = text(&["print", "--name", "syscall_entry_nanosleep", trace])
            .lines()
            .count();
        let exits = text(&["print", "--name", "syscall_exit_nanosleep", trace])
            .lines()
            .count();
        (entries, exits)
    };
    // The snapshot contains the call that triggered it, with its entry.
    let (entries, exits) = calls(snapshot);
    assert!(exits >= 1 && entries >= exits, "{entries} {exits}");
    let (entries, exits) = calls(&format!("{trace}/kernel"));
    assert!(exits >= 3 && entries == exits, "{entries} {exits}");
    reads_alike(snapshot);
    reads_alike(&trace);
    assert_eq!(run(&["report", &trace]).status.code(), Some(0));
}

#[test]
fn conditions_that_do_not_hold_lead_to_nothing() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let sleeper = compiled(directory.path(), "sleeper", SLEEPER);
    let options = [
        &["--snapshot", "--when", "syscall(read) > 10s"][..],
        &["--when", "rate(syscall_entry_nanosleep) > 1000000/s"],
        &[
            "--when",
            "load > 1000",
            "--when",
            "runnable > 1000",
            "--when",
            "latency > 100s",
        ],
    ]
    .concat();
    let (output, trace) = record(
        directory.path(),
        &options,
        &[sleeper.to_str().unwrap(), "1"],
    );
    succeeds(&output);
    assert_eq!(snapshots(&trace), Vec::<PathBuf>::new());
    let info = info(Path::new(&trace));
    assert!(info["traces"][0]["triggers"].is_null());
}

#[test]
fn rates_and_loads_lead_to_snapshots() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let sleeper = compiled(directory.path(), "sleeper", SLEEPER);
    for (condition, expected) in [
        (
            "rate(syscall_entry_nanosleep) > 5/s",
            "6 events in a second",
        ),
        ("cpu > 0%", "of all CPUs are used"),
        ("runnable > 0", "threads run or are runnable"),
        ("latency > 1ns", " for a CPU"),
    ] {
        let name = directory
            .path()
            .join(condition.split(['(', ' ']).next().unwrap());
        fs::create_dir(&name).unwrap();
        let options = [
            &["--snapshot", "--max-size", "8M", "--when", condition][..],
            &["--when-interval", "100ms", "--snapshots", "2"],
        ]
        .concat();
        let (output, trace) = record(&name, &options, &[sleeper.to_str().unwrap(), "3"]);
        succeeds(&output);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(snapshots(&trace).len(), 2, "{condition}: {said}");
        assert!(said.contains(expected), "{condition}: {said}");
    }
}

#[test]
fn the_rate_of_an_event_that_was_chosen_by_name_can_be_compared() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let sleeper = compiled(directory.path(), "sleeper", SLEEPER);
    let event = ["--kernel", "none", "--event", "tracepoint:task:task_rename"];
    let options = [
        &["--snapshot", "--when", "rate(task_rename) > 0/s"],
        &event[..],
    ]
    .concat();
    let (output, trace) = record(
        directory.path(),
        &options,
        &[sleeper.to_str().unwrap(), "1"],
    );
    succeeds(&output);
    assert_eq!(
        snapshots(&trace).len(),
        1,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn conditions_that_cannot_hold_are_refused() {
    let Some(directory) = recording_directory() else {
        return;
    };
    for (options, why) in [
        (&["--when", "load > 1"][..], "--snapshot"),
        (
            &["--snapshot", "--when", "syscall > 3 bytes"],
            "conditions are `syscall > 100ms`",
        ),
        (
            &["--snapshot", "--when", "rate(none_such) > 3"],
            "no event of the kernel is named `none_such`",
        ),
        (
            &["--snapshot", "--when", "syscall(reed) > 3s"],
            "there is no system call `reed`",
        ),
        (
            &["--snapshot", "--when", "latency > 3s", "--kernel", "irq"],
            "needs the group sched",
        ),
        (
            &["--snapshot", "--when", "syscall > 3s", "--syscalls", "none"],
            "needs system calls",
        ),
        (
            &[
                "--snapshot",
                "--when",
                "syscall(fsync) > 3s",
                "--syscalls",
                "read,write",
            ],
            "`fsync` is not recorded: add it to --syscalls",
        ),
        (
            &["--snapshot", "--when", "syscall(exit_group) > 3s"],
            "does not return",
        ),
        (
            &[
                "--snapshot",
                "--when",
                "syscall > 3s",
                "--where",
                "duration < 1s",
            ],
            "--where excludes",
        ),
        (
            &["--snapshot", "--when", "syscall > 3s", "--duration", "2s"],
            "--duration",
        ),
        (
            &["--snapshot", "--when", "load > 1", "--duration", "500ms"],
            "--duration",
        ),
        (
            &[
                "--snapshot",
                "--when",
                "rate(block_rq_issue) > 3",
                "--kernel",
                "sched",
            ],
            "add the group block to --kernel",
        ),
        (
            &["--snapshot", "--when", "rate(contention_*) > 3/s"],
            "add the group lock to --kernel",
        ),
        (
            &[
                "--snapshot",
                "--when",
                "rate(syscall_entry_read) > 3/s",
                "--syscalls",
                "write",
            ],
            "`read` is not recorded: add it to --syscalls",
        ),
        (
            &["--snapshot", "--when", "rate(tracebraid_cpu_stack) > 3/s"],
            "--stacks",
        ),
        (&["--snapshot", "--when", "cpu > 100%"], "at most 100 %"),
        (&["--snapshot", "--when", "load > 1e9"], "at most"),
        (&["--snapshot", "--when", "runnable > 99999999"], "at most"),
        (&["--snapshot", "--snapshots", "3"], "--when"),
    ] {
        let mut record = tracebraid();
        record
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(directory.path().join("none"));
        let output = record.args(["--", "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(why), "{options:?}: {said}");
    }
}
