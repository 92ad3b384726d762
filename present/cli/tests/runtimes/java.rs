//! Virtual threads of Java 21 and later.

use std::collections::BTreeMap;
use std::process::Command;

use tempfile::TempDir;

use crate::recorded::{installed, record};
use crate::support::skipped;
use crate::truth::follow;

/// 100 threads that sleep, take a lock and yield five times; two that pass 2,000 numbers.
const PROGRAM: &str = include_str!("programs/Threads.java");

/// A compiled program; `None`, with a message, without a Java compiler of version 21 or later.
fn compiled() -> Option<TempDir> {
    let version = Command::new("javac").arg("-version").output();
    let version = version
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let major = version.and_then(|text| {
        text.strip_prefix("javac ")?
            .split('.')
            .next()?
            .trim()
            .parse::<u32>()
            .ok()
    });
    if major.is_none_or(|major| major < 21) {
        skipped("javac is not installed, or older than 21 (openjdk-21-jdk-headless)");
        return None;
    }
    let directory = TempDir::new().expect("a temporary directory");
    let source = directory.path().join("Threads.java");
    std::fs::write(&source, PROGRAM).expect("a file");
    let compiled = Command::new("javac")
        .arg("-d")
        .arg(directory.path())
        .arg(&source)
        .status();
    assert!(compiled.expect("javac runs").success());
    Some(directory)
}

/// A command with the agent and its options.
fn java(directory: &TempDir, options: &str) -> Option<Command> {
    let agent = installed()?
        .join("libtracebraid_java.so")
        .canonicalize()
        .expect("a library");
    let mut command = Command::new("java");
    command.arg(format!("-agentpath:{}{options}", agent.display()));
    command.arg("-cp").arg(directory.path()).arg("Threads");
    Some(command)
}

#[test]
fn virtual_threads_and_their_waits() {
    let Some(directory) = compiled() else { return };
    for options in ["", "=wakes"] {
        let Some(command) = java(&directory, options) else {
            return;
        };
        let run = record(&command, &[]).expect("libraries are built");
        assert_eq!(run.log(), "done\n");
        let events = run.events();
        let recorded = follow(&events);
        assert_eq!(recorded.names.len(), 102);
        assert!(
            recorded.names.values().any(|name| name == "worker-7"),
            "{:?}",
            recorded.names
        );
        let mut waits: BTreeMap<&str, usize> = BTreeMap::new();
        let mut woken = 0;
        for wait in &recorded.waits {
            *waits.entry(&wait.reason).or_default() += 1;
            woken += usize::from(wait.waker > 0);
        }
        assert_eq!(waits["sleep"], 500, "{waits:?}");
        assert!(waits["queue"] > 1000, "{waits:?}");
        // A timer is a thread of the runtime.
        let by_threads = waits.values().sum::<usize>() - waits["sleep"];
        assert_eq!(
            woken,
            if options.is_empty() { 0 } else { by_threads },
            "{waits:?}"
        );
    }
}

#[test]
fn without_a_session_the_program_runs_as_ever() {
    let Some(directory) = compiled() else { return };
    let Some(mut command) = java(&directory, "") else {
        return;
    };
    let output = command
        .env_remove("TRACEBRAID_SESSION")
        .output()
        .expect("java runs");
    let shown =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(shown, ["done\n", ""]);
}
