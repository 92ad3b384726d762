//! `--timings` of commands that read traces on several threads.

use std::path::Path;

use crate::support::{failure, recorded_trace, text};
use serde_json::Value;

fn document(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the file was written");
    serde_json::from_str(&text).expect("JSON")
}

fn sum(fold: &Value, list: &str, key: &str) -> u64 {
    let list = fold[list].as_array().expect("a list");
    list.iter().map(|of| of[key].as_u64().expect("a number")).sum()
}

#[test]
fn the_times_of_all_steps_add_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("timings.json");
    let (trace, to) = (recorded_trace("kernel-mix-small"), file.to_str().expect("UTF-8"));
    let plain = text(&["sched", &trace]);
    let timed = text(&[
        "sched",
        &trace,
        "-j",
        "2",
        "--chunk-size",
        "500K",
        "--timings",
        to,
    ]);
    assert_eq!(plain, timed);
    let found = document(&file);
    assert_eq!(found["threads"], 2);
    let [fold] = &found["folds"].as_array().expect("folds")[..] else {
        panic!("one pass: {found}");
    };
    assert!(fold["chunks"].as_array().expect("chunks").len() > 5);
    assert!(!fold["slices"].as_array().expect("slices").is_empty());
    let number = |key: &str| fold[key].as_u64().expect("a number");
    let serial = number("plan_ns")
        + sum(fold, "chunks", "merge_ns")
        + sum(fold, "slices", "compose_ns")
        + number("finish_ns");
    let seconds = |key: &str| found[key].as_f64().expect("a number");
    assert!((seconds("serial_s") - serial as f64 / 1e9).abs() < 1e-6);
    let parallel = sum(fold, "chunks", "fold_ns") + sum(fold, "slices", "play_ns") + number("rows_ns");
    let cpu = (serial + parallel) as f64 / 1e9 + seconds("outside_s");
    assert!(seconds("cpu_s") <= cpu + 1e-6, "{found}");
    assert!(seconds("serial_share") > 0.0 && seconds("serial_share") < 1.0);
    assert!(found["partial_bytes"].as_u64() > Some(1000));
}

#[test]
fn both_passes_of_a_view_are_timed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("timings.json");
    let (trace, to) = (recorded_trace("kernel-mix-small"), file.to_str().expect("UTF-8"));
    text(&["syscalls", &trace, "--view", "freq", "--timings", to]);
    assert_eq!(document(&file)["folds"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let trace = recorded_trace("kernel-mix-small");
    let (code, message) = failure(&["cpu", &trace, "--timings", "/nowhere/timings.json"]);
    assert_eq!(code, 1);
    assert!(message.contains("/nowhere/timings.json"), "{message}");
}
