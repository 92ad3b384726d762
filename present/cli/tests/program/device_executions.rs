//! Executions delimited by kernels and frames, as users build and compare them, on a recorded
//! program of OpenCL whose thread shares its CPU with another program.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{recorded_trace, run, text};

/// Builds a database; returns it with the messages.
fn build(trace: &str, options: &[&str]) -> (TempDir, PathBuf, String) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("gpu.db");
    let trace = recorded_trace(trace);
    let first = [
        "executions",
        "build",
        &trace,
        "-o",
        path.to_str().expect("UTF-8"),
    ];
    let output = run(&[&first[..], options].concat());
    let messages = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{messages}");
    (directory, path, messages)
}

fn json(arguments: &[&str]) -> Value {
    let output = text(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&output).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn kernels_and_frames_are_built_listed_and_compared() {
    let options = ["--frame", "frame : work", "--kernel", "work"];
    let (_directory, path, messages) = build("gpu-pipeline", &options);
    let path = path.to_str().expect("UTF-8");
    assert!(
        messages.contains("frame: 1 execution does not end"),
        "{messages}"
    );
    let kernels = text(&[
        "executions",
        "list",
        path,
        "--kind",
        "work",
        "--format",
        "csv",
    ]);
    assert_eq!(kernels.lines().count(), 9, "{kernels}");
    for column in ["device_ns", "kernel_name", "device_name", "queue"] {
        assert!(
            kernels.lines().next().expect("a head").contains(column),
            "{kernels}"
        );
    }
    for id in ["1", "2"] {
        let shown = json(&["executions", "show", path, id]);
        let steps = shown["steps"].as_array().expect("steps");
        let times: u64 = steps.iter().map(|step| number(&step["duration_ns"])).sum();
        let end = shown["end_ns"].as_i64().zip(shown["begin_ns"].as_i64());
        assert_eq!(end.map(|(end, begin)| end.abs_diff(begin)), Some(times));
    }
    // The slow frames lost their CPU to the other program.
    let groups = ["--a", "duration < 21ms", "--b", "duration > 21ms"];
    let of_frames = ["compare", path, "--kind", "frame"];
    let compared = text(&[&of_frames[..], &groups].concat());
    assert!(compared.contains("[preempted] > <cpu-hog>"), "{compared}");
    assert!(compared.contains("[device] > [read"), "{compared}");
    let information = text(&["executions", "info", path]);
    assert!(information.contains("frame frame : work"), "{information}");
    let query = "SELECT count(*) AS n FROM executions WHERE device_ns > 0";
    let counted = text(&["sql", path, query, "--format", "csv"]);
    assert_eq!(counted, "n\n15\n");
}

#[test]
fn empty_results_show_why() {
    let (_directory, _, messages) = build("gpu-pipeline", &["--kernel", "wrok"]);
    assert!(messages.contains("did you mean 'work'?"), "{messages}");
    let (_directory, _, messages) = build("kernel-mix-small", &["--frame", "work"]);
    assert!(messages.contains("record --gpu"), "{messages}");
    let late = ["--kernel", "work", "--from", "+222ms"];
    let (_directory, _, messages) = build("gpu-pipeline", &late);
    assert!(
        messages.contains("time range has no complete kernels"),
        "{messages}"
    );
}

#[test]
fn without_scheduling_events_kernels_have_their_time_on_the_device() {
    let (_directory, path, _) = build("opencl-calls", &["--kernel", "*"]);
    let path = path.to_str().expect("UTF-8");
    let shown = text(&["executions", "show", path, "1"]);
    assert!(
        shown.contains("[device] > [fill, in device queue]"),
        "{shown}"
    );
    assert!(
        shown.contains("its critical path in threads is unknown"),
        "{shown}"
    );
}
