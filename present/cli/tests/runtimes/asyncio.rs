//! asyncio of python3.

use std::collections::BTreeSet;
use std::process::Command;

use crate::recorded::{Run, record};
use crate::support::skipped;
use crate::truth::{agree, follow, segments};

/// Tasks that wait for all that asyncio offers, and log their segments.
const PROGRAM: &str = include_str!("programs/tasks.py");

/// A command that runs a program in an installed version of Python.
pub(crate) fn python(version: &str, program: &str) -> Option<Command> {
    let mut command = Command::new(version);
    command
        .args(["-c", program])
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command.env_remove("PYTHONPATH");
    let works = Command::new(version)
        .args(["-c", "import asyncio"])
        .output();
    works
        .is_ok_and(|output| output.status.success())
        .then_some(command)
}

const VERSIONS: [&str; 7] = [
    "python3",
    "python3.9",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "python3.14",
];

fn check(run: &Run) -> BTreeSet<String> {
    let segments = segments(&run.log());
    let events = run.events();
    let recorded = follow(&events);
    let ult_of = agree(&recorded, &segments);
    assert!(
        recorded.names[&ult_of["w0"]].starts_with("w0 worker"),
        "{:?}",
        recorded.names
    );
    for name in [
        "tracebraid:lwp_begin",
        "tracebraid:lwp_end",
        "tracebraid_asyncio:cancelled",
    ] {
        assert!(events.iter().any(|event| event.name == name), "{name}");
    }
    for wait in recorded.waits.iter().filter(|wait| wait.reason == "lock") {
        assert!(wait.waker > 0, "a task releases the lock: {wait:?}");
    }
    recorded
        .waits
        .iter()
        .map(|wait| wait.reason.clone())
        .collect()
}

#[test]
fn tasks_and_what_they_wait_for() {
    let mut versions = 0;
    for version in VERSIONS {
        let Some(command) = python(version, PROGRAM) else {
            continue;
        };
        let Some(run) = record(&command, &[]) else {
            return;
        };
        let expected = [
            "event",
            "future",
            "lock",
            "network",
            "queue",
            "semaphore",
            "sleep",
            "task",
        ];
        let expected = expected.map(str::to_owned).into();
        assert_eq!(check(&run), expected, "{version}");
        versions += 1;
    }
    if versions == 0 {
        skipped("python3 does not run");
    }
}

#[test]
fn tasks_of_uvloop() {
    let has_uvloop = Command::new("python3")
        .args(["-c", "import uvloop"])
        .output();
    if !has_uvloop.is_ok_and(|output| output.status.success()) {
        return skipped("uvloop is not installed (pip install uvloop)");
    }
    let program = format!("UVLOOP = True\n{PROGRAM}");
    let Some(run) = python("python3", &program).and_then(|command| record(&command, &[])) else {
        return;
    };
    assert!(check(&run).contains("lock"));
}
