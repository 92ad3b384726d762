//! Why a device was idle, or late: the use cases of D. Couturier, M. Dagenais: LTTng CLUST, 2015,
//! sections 4.7 and 4.8, on a real implementation of OpenCL.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::counted::built;
use crate::support::{text, tracebraid};

fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| built("gpu-pipeline")).as_deref()
}

/// Records a command line of the shell, where `$0` is the program.
fn recorded(line: &str) -> Option<TempDir> {
    let program = program()?.to_str().expect("UTF-8");
    let directory = TempDir::new().expect("a temporary directory");
    let trace = directory.path().join("trace");
    let trace = trace.to_str().expect("UTF-8");
    let output = tracebraid()
        .args([
            "record", "--gpu", "-o", trace, "--", "sh", "-c", line, program,
        ])
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    Some(directory)
}

/// The output of a command as JSON.
fn json(command: &[&str], recording: &TempDir) -> Value {
    let trace = recording.path().join("trace");
    let options = ["--format", "json", trace.to_str().expect("UTF-8")];
    let output = text(&[command, &options].concat());
    serde_json::from_str(&output).expect("JSON")
}

/// The report of a recording. It is made with a file for Perfetto, which must contain all commands.
fn report(line: &str) -> Option<Value> {
    recorded(line).map(|recording| report_of(&recording))
}

fn report_of(recording: &TempDir) -> Value {
    let file = recording.path().join("gpu.perfetto-trace");
    let perfetto = [
        "gpu",
        "--top",
        "0",
        "--perfetto",
        file.to_str().expect("UTF-8"),
    ];
    let report = json(&perfetto, recording);
    let bytes = std::fs::read(file).expect("the file was written");
    // The field 23 of an event of a track is its name.
    let kernels = memchr::memmem::find_iter(&bytes, b"\xba\x01\x04work").count() as u64;
    let commands = rows(&report, "kernels").map(|row| number(row, "commands"));
    assert_eq!(kernels, commands.sum::<u64>(), "{report:#}");
    for name in [
        "GPU 0: ",
        "Kernels 1",
        "Transfers 1",
        "clEnqueueNDRangeKernel",
    ] {
        let is_there = memchr::memmem::find(&bytes, name.as_bytes()).is_some();
        assert!(is_there, "{name}");
    }
    report
}

/// Time of the program's calls by reason of waits.
fn waited(recording: &TempDir, reason: &str) -> u64 {
    let report = json(&["waits", "--procname", "gpu-pipeline"], recording);
    let of_reason = rows(&report, "reasons").filter(|row| row["why"] == reason);
    of_reason.map(|row| number(row, "total_ns")).sum()
}

fn rows<'r>(report: &'r Value, table: &str) -> impl Iterator<Item = &'r Value> {
    report[table].as_array().expect("rows").iter()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().expect("a number")
}

/// Idle time by cause.
fn idle(report: &Value, cause: &str) -> u64 {
    let of_cause = rows(report, "idle").filter(|row| row["cause"] == cause);
    of_cause.map(|row| number(row, "idle_ns")).sum()
}

fn all_idle(report: &Value) -> u64 {
    rows(report, "idle").map(|row| number(row, "idle_ns")).sum()
}

#[test]
fn a_thread_that_lost_its_cpu_is_named_with_the_thread_that_took_it() {
    let Some(report) = report("exec \"$0\" hog 12") else {
        return;
    };
    let late = idle(&report, "host late");
    assert!(late * 2 > all_idle(&report), "{report:#}");
    // The program needs the CPU for 10 ms between iterations, and shares it with one other.
    let hog = rows(&report, "host").filter(|row| {
        let detail = row["detail"].as_str().expect("text");
        detail.contains("cpu-hog")
            && matches!(row["reason"].as_str(), Some("preempted" | "runnable"))
    });
    let by_hog: u64 = hog.map(|row| number(row, "time_ns")).sum();
    assert!(by_hog > 30_000_000, "{by_hog}: {report:#}");
    let own = rows(&report, "host").filter(|row| row["reason"] == "running");
    let own: u64 = own.map(|row| number(row, "time_ns")).sum();
    assert!(own > 80_000_000, "{own}: {report:#}");
    // If the hog delays the device's own threads too, transfers become long enough to hide them.
    let advice = report["devices"][0]["advice"].as_str();
    assert!(
        matches!(advice, Some("enqueue-ahead" | "overlap")),
        "{report:#}"
    );
}

#[test]
fn a_command_that_waits_for_an_event_of_the_program_is_a_dependency() {
    let Some(report) = report("exec \"$0\" event 10") else {
        return;
    };
    let row = rows(&report, "idle").find(|row| row["cause"] == "dependency");
    let row = row.unwrap_or_else(|| panic!("no dependency: {report:#}"));
    assert_eq!(row["parts"], 10, "{report:#}");
    // The program sleeps 10 ms before it completes each event, and longer on a busy machine.
    let time = number(row, "idle_ns");
    assert!(time >= 90_000_000, "{report:#}");
    assert!(time * 2 > all_idle(&report), "{report:#}");
}

#[test]
fn two_processes_on_one_device_wait_for_each_other() {
    let Some(recording) = recorded("\"$0\" serial 300 & \"$0\" serial 300; wait") else {
        return;
    };
    let report = report_of(&recording);
    assert_eq!(rows(&report, "devices").count(), 1, "{report:#}");
    assert_eq!(report["devices"][0]["processes"], 2, "{report:#}");
    let shared: Vec<&Value> = rows(&report, "shared").collect();
    assert!(!shared.is_empty(), "{report:#}");
    for row in shared {
        assert_ne!(row["pid"], row["other"]["pid"], "{report:#}");
    }
    // A thread that waits for the device waits for the commands of the other process, too.
    assert!(waited(&recording, "device") > 0);
    let paths = json(&["critical-path", "--process", "gpu-pipeline"], &recording);
    let reasons = rows(&paths, "paths").flat_map(|path| rows(path, "reasons"));
    let of_other = reasons.filter(|sum| {
        let detail = sum["detail"].as_str().expect("text");
        sum["reason"] == "device" && detail.contains(" of gpu-pipeline (")
    });
    assert!(of_other.count() > 0, "{paths:#}");
    // So do kernels, whose contexts have no number of a process.
    let [trace, database] = ["trace", "kernels.db"].map(|name| recording.path().join(name));
    let [trace, database] = [&trace, &database].map(|path| path.to_str().expect("UTF-8"));
    let of_kernels = ["--kernel", "work"];
    text(
        &[
            &["executions", "build", trace, "-o", database][..],
            &of_kernels,
        ]
        .concat(),
    );
    let contexts = text(&["executions", "export", database]);
    assert!(contexts.contains(" of gpu-pipeline]"), "{contexts}");
}

#[test]
fn transfers_and_kernels_overlap_with_several_queues_only() {
    let Some(serial) = report("exec \"$0\" serial 40") else {
        return;
    };
    let device = &serial["devices"][0];
    assert_eq!(device["overlap_ns"], 0, "{serial:#}");
    assert!(number(device, "kernels_ns") > 0 && number(device, "transfers_ns") > 0);
    // A busy machine may leave the device without work for most of the time.
    let span = number(device, "span_ns");
    let is_part = |key| number(device, key) * 10 >= span;
    if is_part("kernels_ns") && is_part("transfers_ns") {
        assert_eq!(device["advice"], "overlap", "{serial:#}");
    }
    let queues = report("exec \"$0\" queues 40").expect("as before");
    let device = &queues["devices"][0];
    assert!(number(device, "overlap_ns") > 0, "{queues:#}");
    assert_eq!(rows(&queues, "queues").count(), 4, "{queues:#}");
}
