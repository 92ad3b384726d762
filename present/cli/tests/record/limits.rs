//! Limits of size and time.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::record;
use crate::support::{
    babeltrace2, compiled, compiled_with, libraries, recording_directory, skipped, succeeds, text,
    tracebraid,
};

/// Makes calls as fast as possible.
pub(crate) const STORM: &str = r"
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
    assert!(said.contains("were lost"), "{said}");
    let report: serde_json::Value =
        serde_json::from_str(&text(&["count", "--format", "json", &trace])).unwrap();
    let recorded = report["events"].as_u64().unwrap();
    let lost = report["discarded_events"].as_u64().unwrap();
    assert!(recorded > 0 && lost > 0, "{recorded} {lost}");
    // The last event is the end mark.
    assert_eq!(recorded - 1 + lost, 600_000);
}

/// The kernel kills a process that exceeds the file size limit (SIGXFSZ).
#[test]
fn a_limit_of_the_size_of_files_is_one_of_the_trace() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let trace = directory.path().join("limited");
    let script =
        r#"ulimit -f 4000; exec "$0" record --kernel none --syscalls getppid -o "$1" -- "$2""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_tracebraid")]);
    let output = shell.arg(&trace).arg(storm).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let trace = trace.display().to_string();
    assert!(text(&["count", &trace]).contains("syscall_entry_getppid"));
    assert!(
        text(&["info", &trace]).contains("limit"),
        "{}",
        text(&["info", &trace])
    );
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
    let info: serde_json::Value =
        serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let length = info["traces"][0]["duration"].as_u64().unwrap();
    assert!((200_000_000..10_000_000_000).contains(&length), "{length}");
}

/// Total size of all files of a trace in bytes.
pub(crate) fn file_bytes(trace: &Path) -> u64 {
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
    let (output, trace) = record(
        directory.path(),
        &["--max-size", "3M"],
        &["sh", "-c", &storm],
    );
    succeeds(&output);
    let bytes = file_bytes(Path::new(&trace));
    // Space is reserved for gaps of losses, whose number is unknown in advance.
    assert!((3 << 19..=3 << 20).contains(&bytes), "{bytes}");
    let counted = text(&["count", "--strict", "--format", "json", &trace]);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert!(counted["events"].as_u64().unwrap() > 10_000);
    // All CPUs end at the same time.
    let info: serde_json::Value =
        serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
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

/// A file system of a given size in bytes, unmounted on drop.
pub(crate) struct Small(pub(crate) std::path::PathBuf);

impl Small {
    pub(crate) fn mount(at: std::path::PathBuf, size: &str) -> Option<Small> {
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
    let (output, trace) = record(
        &small.0,
        &options,
        &["sh", "-c", shell, storm.to_str().unwrap()],
    );
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
    assert_eq!(kernel["ended"], true);
    assert_eq!(kernel["end_reason"], "disk_full");
    let streams = kernel["streams"].as_array().unwrap();
    let ends: Vec<&serde_json::Value> = streams.iter().map(|stream| &stream["end"]).collect();
    // A machine with one CPU has one stream.
    assert!(
        !ends.is_empty() && ends.iter().all(|end| *end == ends[0] && end.is_number()),
        "{ends:?}"
    );
    // Events lost earlier are reported, also to babeltrace2.
    let count: serde_json::Value =
        serde_json::from_str(&text(&["count", "--format", "json", &trace])).unwrap();
    let events = count["events"].as_u64().unwrap();
    assert!(events > 10_000, "{count:#}");
    if let Some(lines) = babeltrace2(&[&trace]) {
        assert_eq!(
            lines.iter().filter(|&&byte| byte == b'\n').count() as u64,
            events
        );
    }
}

/// Enters and leaves a function N times.
const CALLS: &str = r"
#include <stdlib.h>
__attribute__((noinline)) int leaf(int n) { return n + 1; }
int main(int count, char **words) {
    int sum = 0;
    for (int i = 0; i < atoi(words[1]); i++) sum = leaf(sum);
    return count < 2 || sum == 0;
}
";

/// The number before a word.
fn number(said: &str, behind: &str) -> u64 {
    let before = said.split(behind).next().unwrap_or_default();
    let digits = before.trim_end().rsplit(' ').next().unwrap_or_default();
    digits
        .replace(',', "")
        .parse()
        .unwrap_or_else(|_| panic!("{behind}: {said}"))
}

#[test]
fn a_full_disk_is_told_with_what_was_recorded_and_what_was_lost() {
    let directory = TempDir::new().unwrap();
    let options = ["-O0", "-finstrument-functions"];
    let program = compiled_with(directory.path(), "calls", CALLS, &options);
    // A small file system that disappears with the processes that see it.
    let script = r#"mount -t tmpfs -o size=1M none "$1" || exit 99; cd / && exec "$0" record --kernel none --syscalls none \
        --probes 'lttng_ust_cyg_profile:*' -o "$1/trace" -- "$2" 200000"#;
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mut record = Command::new("unshare");
    record
        .args([
            "--mount",
            "sh",
            "-c",
            script,
            env!("CARGO_BIN_EXE_tracebraid"),
        ])
        .args([&disk, &program])
        .env("TRACEBRAID_LIBRARIES", libraries());
    let Ok(output) = record.output() else {
        return skipped("there is no unshare");
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return skipped(format_args!("a disk cannot be mounted here: {said}"));
    }
    let (events, lost) = (number(&said, " events, "), number(&said, " lost, "));
    // Two events for each call; the others record the time and loaded libraries.
    let others = (events + lost).checked_sub(2 * 200_001);
    assert!(
        events > 10_000 && others.is_some_and(|others| others < 100),
        "{said}"
    );
    assert!(
        said.contains("events of probes were lost for lack of space: is the disk full?"),
        "{said}"
    );
    assert!(
        said.contains("could not be completed: No space left on device"),
        "{said}"
    );
    // With a limit, the limit is the reason.
    let trace = directory.path().join("limited");
    let mut record = tracebraid();
    record.args([
        "record",
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--max-size",
        "1M",
    ]);
    record
        .args(["--probes", "lttng_ust_cyg_profile:*", "-o"])
        .arg(&trace);
    let output = record
        .arg("--")
        .arg(&program)
        .arg("200000")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("were lost for lack of space: raise --max-size"),
        "{said}"
    );
}
