//! Limits of room and time.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::record;
use crate::support::{babeltrace2, compiled, recording_directory, skipped, succeeds, text, tracebraid};

/// Calls as fast as it can.
const STORM: &str = r"
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 300000; i++) syscall(SYS_getppid);
    return 0;
}
";

#[test]
fn what_finds_no_room_is_counted_to_the_last_event() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let options = [
        "--kernel",
        "none",
        "--syscalls",
        "getppid",
        "--buffer-size",
        "64K",
        "--no-state-dump",
    ];
    let (output, trace) = record(directory.path(), &options, &[storm.to_str().unwrap()]);
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("found no room"), "{said}");
    let report: serde_json::Value =
        serde_json::from_str(&text(&["count", "--format", "json", &trace])).unwrap();
    let recorded = report["events"].as_u64().unwrap();
    let lost = report["discarded_events"].as_u64().unwrap();
    assert!(recorded > 0 && lost > 0, "{recorded} {lost}");
    assert_eq!(recorded + lost, 600_000);
}

#[test]
fn limits_end_a_recording() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(
        directory.path(),
        &["--duration", "200ms"],
        &["sh", "-c", "exec sleep 5 > /dev/null 2>&1"],
    );
    succeeds(&output);
    let info: serde_json::Value = serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let length = info["traces"][0]["duration"].as_u64().unwrap();
    assert!((200_000_000..10_000_000_000).contains(&length), "{length}");
}

/// Bytes of all files of a trace.
fn file_bytes(trace: &Path) -> u64 {
    let entries = fs::read_dir(trace).unwrap().flatten();
    let bytes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => file_bytes(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    bytes.sum()
}

#[test]
fn a_trace_is_not_larger_than_it_may_be() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let storm = format!("{0} & {0} & {0}; wait", storm.display());
    let (output, trace) = record(directory.path(), &["--max-size", "3M"], &["sh", "-c", &storm]);
    succeeds(&output);
    let bytes = file_bytes(Path::new(&trace));
    // Room is kept for the gaps of what is lost, which nobody knows before.
    assert!((3 << 19..=3 << 20).contains(&bytes), "{bytes}");
    let counted = text(&["count", "--strict", "--format", "json", &trace]);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert!(counted["events"].as_u64().unwrap() > 10_000);
    // All CPUs end at one time.
    let info: serde_json::Value = serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let streams = info["traces"][0]["streams"].as_array().unwrap();
    let mut ends: Vec<&serde_json::Value> = streams.iter().map(|stream| &stream["end"]).collect();
    assert!(!ends[0].is_null(), "{}", streams[0]);
    ends.dedup();
    assert_eq!(ends.len(), 1, "{ends:?}");
    let mut small = tracebraid();
    let output = small
        .args(["record", "--max-size", "100K", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

/// A file system of so many bytes, until it is dropped.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(at: std::path::PathBuf, size: &str) -> Option<Small> {
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", size, "none"]).arg(&at);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            skipped("no file system can be mounted here");
        }
        mounted.then_some(Small(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_a_recording_at_one_time() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let Some(small) = Small::mount(directory.path().join("small"), "size=4M") else {
        return;
    };
    // On all CPUs.
    let shell = "for i in 1 2 3 4; do $0 & done; wait";
    let options = ["--syscalls", "getppid", "--buffer-size", "1M"];
    let (output, trace) = record(&small.0, &options, &["sh", "-c", shell, storm.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the disk is full") && said.contains("Recorded"),
        "{said}"
    );
    let info: serde_json::Value =
        serde_json::from_str(&text(&["info", "--format", "json", "--strict", &trace])).unwrap();
    let kernel = info["traces"].as_array().unwrap().iter();
    let kernel = kernel
        .clone()
        .find(|trace| trace["environment"]["domain"] == "kernel")
        .unwrap();
    let streams = kernel["streams"].as_array().unwrap();
    let ends: Vec<&serde_json::Value> = streams.iter().map(|stream| &stream["end"]).collect();
    assert!(
        ends.len() > 1 && ends.iter().all(|end| *end == ends[0] && end.is_number()),
        "{ends:?}"
    );
    // What had no room before that is told of, to babeltrace2 as well.
    let count: serde_json::Value =
        serde_json::from_str(&text(&["count", "--format", "json", &trace])).unwrap();
    let events = count["events"].as_u64().unwrap();
    assert!(events > 10_000, "{count:#}");
    if let Some(lines) = babeltrace2(&[&trace]) {
        assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count() as u64, events);
    }
}
