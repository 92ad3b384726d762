//! What this program and others read in a recording.

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::{self, recording_directory, succeeds, text};
use crate::{fields, record};

#[test]
fn babeltrace2_reads_the_same_without_a_warning() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let script = "ls / > /dev/null; cat /etc/passwd | wc -l > /dev/null; sleep 0.01";
    let (output, trace) = record(directory.path(), &["--kernel", "all"], &["sh", "-c", script]);
    succeeds(&output);
    let peer = Command::new("babeltrace2").env("TZ", "UTC").arg(&trace).output();
    let Ok(peer) = peer else {
        return support::skipped("babeltrace2 does not run");
    };
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let theirs = String::from_utf8(peer.stdout).unwrap();
    // babeltrace2 2.0.4 shows an earlier text where one is empty.
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
    let io: serde_json::Value =
        serde_json::from_str(&text(&["io", "--procname", "dd", "--format", "json", &trace])).unwrap();
    let process = &io["processes"][0];
    assert_eq!(process["name"], "dd");
    assert!(process["written_bytes"].as_u64().unwrap() >= 40 << 16);
    let files = text(&["files", "--procname", "dd", "--format", "csv", &trace]);
    assert!(files.contains(zeros.to_str().unwrap()), "{files}");
    let processes = text(&["processes", "--format", "csv", &trace]);
    assert!(processes.contains(",dd,"), "{processes}");
    let cpu: serde_json::Value = serde_json::from_str(&text(&["cpu", "--format", "json", &trace])).unwrap();
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
    let (output, trace) = record(directory.path(), &["--ctf2"], &["sh", "-c", "ls / > /dev/null"]);
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
    let info: serde_json::Value = serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let recorder = &info["traces"][0]["environment"]["tracebraid_pid"];
    let pid = recorder.to_string();
    // Of whatever table, a row with its number.
    let has = |options: &[&str]| {
        let shown = text(&[options, &["--format", "json", &*trace]].concat());
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let is_its = |row: &serde_json::Value| row["pid"] == *recorder;
        let tables = shown.as_object().unwrap().values();
        let rows = tables.filter_map(serde_json::Value::as_array);
        rows.flatten().any(is_its)
    };
    // In the tree of processes it stays, as its command's parent.
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
        &["sh", "-c", "sync; sleep 0.3"],
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
            // The work of some functions becomes another one's when it is done.
            done += u32::from(function == field("function"));
        }
    }
    assert!(done >= 3, "{done}: {text}");
}
