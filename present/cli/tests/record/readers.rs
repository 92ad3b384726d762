//! Recordings as read by this program and by others.

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::{self, compiled_with, recording_directory, succeeds, text};
use crate::{fields, record};

#[test]
fn babeltrace2_reads_the_same_without_a_warning() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let script = "ls / > /dev/null; cat /etc/passwd | wc -l > /dev/null; sleep 0.01";
    let (output, trace) = record(
        directory.path(),
        &["--kernel", "all"],
        &["sh", "-c", script],
    );
    succeeds(&output);
    let peer = Command::new("babeltrace2")
        .env("TZ", "UTC")
        .arg(&trace)
        .output();
    let Ok(peer) = peer else {
        return support::skipped("babeltrace2 does not run");
    };
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let theirs = String::from_utf8(peer.stdout).unwrap();
    // babeltrace2 2.0.4 shows an earlier text in place of an empty one.
    let has_text = |line: &&str| !line.contains("\"\"");
    let ours = text(&["print", &trace]);
    let mut compared = 0;
    for (ours, theirs) in ours
        .lines()
        .zip(theirs.lines())
        .filter(|(ours, _)| has_text(ours))
    {
        assert_eq!(ours, theirs);
        compared += 1;
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    assert!(compared > 500, "{compared}");
}

#[test]
fn reports_know_what_the_program_did() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let zeros = directory.path().join("zeros");
    let target = format!("of={}", zeros.display());
    let (output, trace) = record(
        directory.path(),
        &[],
        &["dd", "if=/dev/zero", &target, "bs=64k", "count=40"],
    );
    succeeds(&output);
    let io: serde_json::Value = serde_json::from_str(&text(&[
        "io",
        "--procname",
        "dd",
        "--format",
        "json",
        &trace,
    ]))
    .unwrap();
    let process = &io["processes"][0];
    assert_eq!(process["name"], "dd");
    assert!(process["written_bytes"].as_u64().unwrap() >= 40 << 16);
    let files = text(&["files", "--procname", "dd", "--format", "csv", &trace]);
    assert!(files.contains(zeros.to_str().unwrap()), "{files}");
    let processes = text(&["processes", "--format", "csv", &trace]);
    assert!(processes.contains(",dd,"), "{processes}");
    let cpu: serde_json::Value =
        serde_json::from_str(&text(&["cpu", "--format", "json", &trace])).unwrap();
    assert!(
        cpu["processes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["name"] == "dd")
    );
}

#[test]
fn ctf_2_has_the_same_events() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(
        directory.path(),
        &["--ctf2"],
        &["sh", "-c", "ls / > /dev/null"],
    );
    succeeds(&output);
    let info = text(&["info", &trace]);
    assert!(info.contains("CTF 2"), "{info}");
    let printed = text(&["print", "--name", "sched_process_exec", &trace]);
    assert!(printed.contains("/ls\""), "{printed}");
}

#[test]
fn the_recorder_can_be_left_out() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(directory.path(), &["--system"], &["sleep", "0.3"]);
    succeeds(&output);
    let info: serde_json::Value =
        serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let recorder = &info["traces"][0]["environment"]["tracebraid_pid"];
    let pid = recorder.to_string();
    // Whether any table has a row with its process id.
    let has = |options: &[&str]| {
        let shown = text(&[options, &["--format", "json", &*trace]].concat());
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let is_its = |row: &serde_json::Value| row["pid"] == *recorder;
        let tables = shown.as_object().unwrap().values();
        let rows = tables.filter_map(serde_json::Value::as_array);
        rows.flatten().any(is_its)
    };
    // In the process tree it stays as the parent of its command.
    for report in ["cpu", "syscalls", "sched", "io", "waits"] {
        assert!(has(&[report]), "{report}");
        assert!(!has(&[report, "--no-recorder"]), "{report}");
    }
    let count = |options: &[&str]| {
        let printed = text(&[&["print"], options, &[&*trace]].concat());
        printed.lines().count()
    };
    let own = count(&["--pid", &pid]);
    assert!(own > 0);
    assert_eq!(count(&["--no-recorder"]), count(&[]) - own);
    let counted = text(&["count", "--no-recorder", "--format", "json", &trace]);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert_eq!(counted["events"], count(&["--no-recorder"]));
}

#[test]
fn work_of_queues_is_queued_before_it_is_done() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(
        directory.path(),
        &["--kernel", "sched,work", "--syscalls", "none"],
        &["python3", "-c", TERMINAL],
    );
    succeeds(&output);
    let text = text(&["print", &trace]);
    let (mut queued, mut done) = (BTreeMap::new(), 0);
    for line in text.lines() {
        let fields = fields(line);
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        if line.contains(" workqueue_queue_work: ") {
            assert_ne!(field("workqueue"), "\"\"", "{line}");
            queued.insert(field("work"), field("function"));
        } else if line.contains(" workqueue_execute_start: ")
            && let Some(function) = queued.remove(&field("work"))
        {
            // The work of some functions is passed on to another function when it is done.
            done += u32::from(function == field("function"));
        }
    }
    assert!(done >= ECHOES, "{done}: {text}");
}

/// Number of lines that pass through a terminal.
const ECHOES: u32 = 20;

/// Queued work carries bytes from one end of a pseudo terminal to the other, which the reader waits
/// for.
const TERMINAL: &str = "
import os, pty
one, other = pty.openpty()
for i in range(20):
    os.write(one, b'line\\n')
    assert os.read(other, 100) == b'line\\n'
";

const RINGS: &str = include_str!("rings.c");

/// Requests of `rings.c` are visible from submission to completion, and critical paths pass through
/// them.
#[test]
fn requests_of_rings_are_seen_through() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled_with(directory.path(), "rings", RINGS, &["-lpthread"]);
    let pipe = directory.path().join("pipe").display().to_string();
    let (output, trace) = record(
        directory.path(),
        &["--kernel", "sched,irq,timer,work"],
        &[&program.display().to_string(), &pipe],
    );
    if output.status.code() == Some(77) {
        return support::skipped("io_uring is refused");
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("io_uring_submit_req") {
        return support::skipped("the kernel's io_uring events have unknown fields");
    }
    let descriptors: Vec<String> = succeeds(&output).lines().map(str::to_owned).collect();
    let text_of = text(&["print", &trace]);
    let mut steps: BTreeMap<u64, Vec<(&str, BTreeMap<String, String>)>> = BTreeMap::new();
    for line in text_of.lines() {
        let names = [
            "io_uring_submit_req",
            "io_uring_queue_async_work",
            "io_uring_complete",
        ];
        let name = names
            .into_iter()
            .find(|name| line.contains(&format!(" {name}: ")));
        let fields = fields(line);
        let number = fields
            .get("user_data")
            .and_then(|number| number.strip_prefix("0x"));
        let number = number.and_then(|number| u64::from_str_radix(number, 16).ok());
        if let (Some(name), Some(number @ 1000..1100)) = (name, number) {
            steps.entry(number).or_default().push((name, fields));
        }
    }
    let numbers: Vec<u64> = steps.keys().copied().collect();
    assert_eq!(numbers, [1000, 1001, 1002, 1003, 1004]);
    for (steps, descriptor) in steps.values().zip(&descriptors) {
        let names: Vec<&str> = steps.iter().map(|step| step.0).collect();
        assert_eq!(
            names,
            [
                "io_uring_submit_req",
                "io_uring_queue_async_work",
                "io_uring_complete"
            ]
        );
        for field in ["req", "ctx"] {
            assert!(
                steps.iter().all(|step| step.1[field] == steps[0].1[field]),
                "{steps:?}"
            );
        }
        // IORING_OP_OPENAT.
        assert_eq!(
            (&*steps[0].1["opcode"], &*steps[1].1["opcode"]),
            ("18", "18")
        );
        assert_eq!(&steps[2].1["res"], descriptor);
    }
    // The program waits for the thread that opens the other ends of the pipes and works for a while
    // before.
    let ask = ["critical-path", "--longest", "io_uring_enter", &trace];
    let shown = text(&ask);
    let waits = shown
        .matches("io_uring_enter openat, woken by iou-wrk")
        .count();
    // A wait may be split in two, or may end before the worker thread starts to wait.
    assert!(waits >= 3, "{shown}");
    let paths = text(&[&ask[..], &["--format", "json"]].concat());
    let paths: serde_json::Value = serde_json::from_str(&paths).unwrap();
    let parts = paths["paths"].as_array().unwrap().iter();
    let parts: Vec<_> = parts
        .flat_map(|path| path["segments"].as_array().unwrap())
        .collect();
    let sum = |name: Option<&str>| {
        let of = parts
            .iter()
            .filter(|part| name.is_none_or(|name| part["thread"]["name"] == name));
        of.filter_map(|part| part["duration_ns"].as_u64())
            .sum::<u64>()
    };
    // The feeder uses 20 ms of CPU time for each of five requests, while the other thread is
    // waiting.
    let (feeder, all) = (sum(Some("feeder")), sum(None));
    assert!(
        feeder >= 70_000_000 && all >= feeder,
        "{feeder} of {all}: {shown}"
    );
}
