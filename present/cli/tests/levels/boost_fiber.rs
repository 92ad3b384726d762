//! Fibers of Boost.Fiber: each logs who it is, where and when.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::recorded_schedule::{RecordedSchedule, at, record_options};
use crate::support::{compiled_by, skipped, succeeds, tracebraid};

const PROGRAM: &str = include_str!("programs/fibers.cpp");
const FIBERS: usize = 60;
const LIBRARIES: [&str; 2] = ["-lboost_fiber", "-lboost_context"];

/// The program; `None`, with a message, where the library is not installed.
fn compiled(directory: &Path) -> Option<PathBuf> {
    if !Path::new("/usr/include/boost/fiber/fiber.hpp").is_file() {
        skipped("Boost.Fiber is not installed: libboost-fiber-dev");
        return None;
    }
    let include = concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../../record/probe/include"
    );
    let options = [
        &["-std=c++14", "-Wall", "-Wextra", "-Werror", include],
        &LIBRARIES[..],
    ]
    .concat();
    Some(compiled_by(
        "g++",
        directory,
        "fibers.cpp",
        PROGRAM,
        &options,
    ))
}

fn check(program: &Path, algorithm: &str, threads: usize) {
    let directory = TempDir::new().expect("a temporary directory");
    let (trace, log) = (directory.path().join("trace"), directory.path().join("log"));
    let mut record = tracebraid();
    record.arg("record").args(record_options());
    record.arg("-o").arg(&trace).arg("--");
    record.arg(program).arg(&log);
    record.args([algorithm, &threads.to_string(), &FIBERS.to_string()]);
    succeeds(&record.output().expect("the binary runs"));
    let recorded = RecordedSchedule::of(trace.to_str().expect("UTF-8"));
    recorded.is_consistent();
    assert_eq!(recorded.lwps.len(), threads, "{algorithm}");
    let runs = recorded.runs();
    let log = fs::read_to_string(log).expect("the log");
    for line in log.lines() {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        let number = |index: usize| -> u64 { fields[index].parse().expect(line) };
        let ult = at(&runs[&number(0)], number(1));
        let name = recorded.names.get(&ult).map(String::as_str);
        assert_eq!(name, Some(fields[3]), "{algorithm}: {line}");
    }
    // Each step of each fiber logs twice.
    assert!(log.lines().count() > FIBERS * 40, "{}", log.lines().count());
    let ends = recorded.count("ult_exit");
    assert_eq!(ends, recorded.count("ult_create") + threads, "{algorithm}");
    assert!(ends > FIBERS * 2, "fibers start others: {ends}");
    for class in ["lwp_begin", "lwp_end", "ult_state"] {
        assert_eq!(recorded.count(class), threads, "{algorithm}: {class}");
    }
}

#[test]
fn fibers_are_recorded_where_they_run() {
    let directory = TempDir::new().expect("a temporary directory");
    let Some(program) = compiled(directory.path()) else {
        return;
    };
    check(&program, "round_robin", 1);
    check(&program, "round_robin", 3);
    check(&program, "shared_work", 3);
    check(&program, "work_stealing", 3);
}
