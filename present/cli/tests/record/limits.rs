//! Limits of room and time.

use std::fs;
use std::path::Path;

use crate::record;
use crate::support::{compiled, recording_directory, succeeds, text, tracebraid};

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
