//! `--timings` of commands that read traces on several threads.

use std::path::Path;

use crate::memory_bound::REPORTS;
use crate::support::{failure, recorded, recorded_trace, text};
use serde_json::Value;

fn document(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the file was written");
    serde_json::from_str(&text).expect("JSON")
}

fn sum(fold: &Value, list: &str, key: &str) -> u64 {
    let list = fold[list].as_array().expect("a list");
    list.iter()
        .map(|of| of[key].as_u64().expect("a number"))
        .sum()
}

/// Builds a database of executions.
fn executions<'a>(trace: &'a str, database: &'a str) -> [&'a str; 7] {
    [
        "executions",
        "build",
        trace,
        "--call",
        "read",
        "-o",
        database,
    ]
}

#[test]
fn the_times_of_all_steps_add_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("timings.json");
    let (trace, to) = (
        recorded_trace("kernel-mix-small"),
        file.to_str().expect("UTF-8"),
    );
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
    let parallel =
        sum(fold, "chunks", "fold_ns") + sum(fold, "slices", "play_ns") + number("rows_ns");
    let cpu = (serial + parallel) as f64 / 1e9 + seconds("outside_s");
    assert!(seconds("cpu_s") <= cpu + 1e-6, "{found}");
    assert!(seconds("serial_share") > 0.0 && seconds("serial_share") < 1.0);
    assert!(found["partial_bytes"].as_u64() > Some(1000));
}

#[test]
fn both_passes_of_linear_buckets_are_timed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("timings.json");
    let (trace, to) = (
        recorded_trace("kernel-mix-small"),
        file.to_str().expect("UTF-8"),
    );
    for (buckets, passes) in [("log", 1), ("linear", 2)] {
        text(&[
            "syscalls",
            &trace,
            "--buckets",
            buckets,
            "--view",
            "freq",
            "--timings",
            to,
        ]);
        let folds = document(&file)["folds"].as_array().map(Vec::len);
        assert_eq!(folds, Some(passes));
    }
}

/// Every command that folds writes the same keys.
#[test]
fn all_commands_that_fold_are_timed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (trace, to) = (recorded_trace("kernel-mix-small"), path("timings.json"));
    let (history, database) = (path("history"), path("executions"));
    let mut commands: Vec<Vec<&str>> = REPORTS.map(|report| vec![report, &trace]).into();
    commands.push(vec!["info", &trace, "--counts"]);
    commands.push(vec![
        "periods",
        &trace,
        "--period",
        "sched_switch:sched_switch",
    ]);
    commands.push(vec!["critical-path", &trace, "--longest", "read"]);
    commands.push(vec!["history", "build", &trace, "-o", &history]);
    commands.push(executions(&trace, &database).to_vec());
    let stacks = recorded_trace("disk-contention");
    commands.push(vec!["stacks", &stacks]);
    let question = "SELECT count(*) FROM intervals";
    commands.push(vec!["executions", "sql", "--trace", &trace, question]);
    let hosts =
        ["client", "server"].map(|host| recorded("twohost").join(format!("twohost-{host}")));
    let hosts = hosts.each_ref().map(|host| host.to_str().expect("UTF-8"));
    commands.push(vec!["sync", hosts[0], hosts[1]]);
    for command in commands {
        text(&[&command[..], &["--timings", &to]].concat());
        let found = document(Path::new(&to));
        let seconds = ["cpu_s", "wall_s", "serial_s", "serial_share", "outside_s"];
        assert!(
            seconds.iter().all(|key| found[key].as_f64().is_some()),
            "{command:?}: {found}"
        );
        assert!(found["threads"].as_u64() > Some(0), "{command:?}");
        let folds = found["folds"].as_array().expect("folds");
        let chunks = |fold: &Value| {
            fold["chunks"]
                .as_array()
                .is_some_and(|chunks| !chunks.is_empty())
        };
        assert!(
            !folds.is_empty() && folds.iter().all(chunks),
            "{command:?}: {found}"
        );
        std::fs::remove_file(&to).expect("the file is there");
    }
}

/// The CPU time of the thread that processes stacks counts as serial.
#[test]
fn processing_call_stacks_is_serial() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (trace, to) = (recorded_trace("disk-contention"), path("timings.json"));
    let database = path("executions");
    for command in [
        &["stacks", &trace][..],
        &["report", &trace],
        &executions(&trace, &database),
    ] {
        text(
            &[
                command,
                &["--chunk-size", "100K", "-j", "2", "--timings", &to],
            ]
            .concat(),
        );
        let found = document(Path::new(&to));
        let folds = found["folds"].as_array().expect("folds");
        let number = |fold: &Value, key: &str| fold[key].as_u64().expect("a number");
        let serial = |fold: &Value| {
            number(fold, "plan_ns")
                + sum(fold, "chunks", "merge_ns")
                + sum(fold, "slices", "compose_ns")
                + number(fold, "finish_ns")
        };
        let parallel = |fold: &Value| {
            sum(fold, "chunks", "fold_ns")
                + sum(fold, "slices", "play_ns")
                + number(fold, "rows_ns")
        };
        let works = found["serial_work"].as_array().expect("work");
        let stacks: Vec<&Value> = works
            .iter()
            .filter(|work| work["name"] == "call stacks")
            .collect();
        assert!(
            matches!(&stacks[..], [only] if number(only, "cpu_ns") > 0),
            "{command:?}: {works:?}"
        );
        let serial = folds.iter().map(serial).sum::<u64>() + sum(&found, "serial_work", "cpu_ns");
        let seconds = |key: &str| found[key].as_f64().expect("a number");
        assert!(
            (seconds("serial_s") - serial as f64 / 1e9).abs() < 1e-6,
            "{command:?}"
        );
        // No time is counted twice.
        let all = serial + folds.iter().map(parallel).sum::<u64>();
        assert!(
            all as f64 / 1e9 < seconds("cpu_s") + 1e-6,
            "{command:?}: {found}"
        );
    }
}

/// The state of a chunk contains the stacks that were found but not yet processed.
#[test]
fn partial_states_of_stacks_are_measured() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("timings.json");
    let (trace, to) = (
        recorded_trace("disk-contention"),
        file.to_str().expect("UTF-8"),
    );
    text(&["stacks", &trace, "--timings", to]);
    assert!(document(&file)["partial_bytes"].as_u64() > Some(10_000));
}

#[test]
fn making_executions_follows_from_what_was_composed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (trace, to, database) = (
        recorded_trace("kernel-mix-small"),
        path("timings.json"),
        path("executions"),
    );
    text(&[&executions(&trace, &database)[..], &["--timings", &to]].concat());
    let found = document(Path::new(&to));
    let slices = found["folds"][0]["slices"].as_array().expect("slices");
    let followers: Vec<(usize, usize)> = (slices.iter().enumerate())
        .filter_map(|(at, slice)| Some((at, slice["after_slice"].as_u64()? as usize)))
        .collect();
    assert!(!followers.is_empty() && followers.iter().all(|(at, before)| before < at));
    assert!(followers.len() < slices.len());
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let trace = recorded_trace("kernel-mix-small");
    let (code, message) = failure(&["cpu", &trace, "--timings", "/nowhere/timings.json"]);
    assert_eq!(code, 2);
    assert!(message.contains("/nowhere/timings.json"), "{message}");
}

#[test]
fn other_files_are_not_written_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = recorded_trace("kernel-mix-small");
    let other = directory.path().join("other");
    let to = other.to_str().expect("UTF-8");
    std::fs::write(&other, "precious").expect("a file");
    let (code, message) = failure(&["cpu", &trace, "--timings", to]);
    assert_eq!(code, 2);
    assert!(message.contains("choose another name"), "{message}");
    assert_eq!(
        std::fs::read_to_string(&other).expect("the file"),
        "precious"
    );
    // A file that is also the output of the command.
    std::fs::remove_file(&other).expect("the file is there");
    let (code, message) = failure(&[&executions(&trace, to)[..], &["--timings", to]].concat());
    assert_eq!(code, 1);
    assert!(message.contains("choose another name"), "{message}");
    text(&["executions", "info", to]);
    // An earlier file of `--timings`, and a device.
    let again = directory.path().join("timings.json");
    for _ in 0..2 {
        text(&["cpu", &trace, "--timings", again.to_str().expect("UTF-8")]);
    }
    text(&["cpu", &trace, "--timings", "/dev/null"]);
    let (code, message) = failure(&["info", &trace, "--timings", "/dev/null"]);
    assert_eq!(code, 2);
    assert!(message.contains("--counts"), "{message}");
}
