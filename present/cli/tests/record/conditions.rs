//! `--where`: system calls that are recorded only if a condition holds.

use std::collections::BTreeMap;

use crate::support::{compiled, reads_alike, recording_directory, run, succeeds, text};
use crate::{fields, record};

/// Makes many short calls and some long ones: sleeps of 3 ms, a read that computes as long as
/// writing 400 MB takes, a sleep of 2.5 s in another thread, and a read that lasts until the
/// process ends.
const NAPS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int pipes[2];
static void nap(long ns) {
    struct timespec time = { ns / 1000000000, ns % 1000000000 };
    nanosleep(&time, NULL);
}
static void *blocked(void *unused) {
    char byte;
    return read(pipes[0], &byte, 1) == 1 ? unused : NULL;
}
static void *sleeper(void *unused) {
    nap(2500000000);
    return unused;
}
int main(void) {
    pthread_t one, two;
    char *large = malloc(400 << 20);
    int zero = open("/dev/zero", O_RDONLY);
    if (pipe(pipes) || pthread_create(&one, NULL, blocked, NULL) || pthread_create(&two, NULL, sleeper, NULL))
        return 1;
    for (int i = 0; i < 20; i++) {
        for (int j = 0; j < 500; j++)
            syscall(SYS_getppid);
        nap(3000000);
        nap(1000);
        open("/no/such/file", O_RDONLY);
    }
    if (read(zero, large, 400 << 20) != 400 << 20)
        return 1;
    pthread_join(two, NULL);
    return 0;
}
"#;

/// A recorded system call.
#[derive(Debug)]
struct Call {
    name: String,
    entry: BTreeMap<String, String>,
    /// `None` if the call has not ended.
    exit: Option<(u64, BTreeMap<String, String>)>,
}

/// The time of day of a line in nanoseconds.
fn time(line: &str) -> u64 {
    let text = line.trim_start_matches('[').split(']').next().unwrap();
    let parts = text
        .split([':', '.'])
        .map(|part| part.parse::<u64>().unwrap());
    let parts: Vec<u64> = parts.collect();
    ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1_000_000_000 + parts[3]
}

/// The calls of a trace with the context `tid`, by entry; each exit must follow its entry.
fn calls(trace: &str) -> Vec<Call> {
    let printed = text(&["print", "--name", "syscall_*", trace]);
    let mut calls: Vec<Call> = Vec::new();
    let mut open: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for line in printed.lines() {
        let tid = line.split(" tid = ").nth(1).unwrap();
        let tid = tid.split([',', ' ']).next().unwrap().to_owned();
        let event = line
            .split(": {")
            .next()
            .unwrap()
            .rsplit(' ')
            .next()
            .unwrap();
        if let Some(name) = event.strip_prefix("syscall_entry_") {
            let before = open.insert(tid, (calls.len(), time(line)));
            assert!(before.is_none(), "two entries: {line}");
            calls.push(Call {
                name: name.to_owned(),
                entry: fields(line),
                exit: None,
            });
        } else {
            let (place, entered) = open
                .remove(&tid)
                .unwrap_or_else(|| panic!("no entry: {line}"));
            let name = event.strip_prefix("syscall_exit_").unwrap();
            assert_eq!(calls[place].name, name, "{line}");
            calls[place].exit = Some((time(line) - entered, fields(line)));
        }
    }
    calls
}

/// The number of calls that the summary reports as left out.
fn left_out(output: &std::process::Output) -> u64 {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said
        .lines()
        .find(|line| line.starts_with("Left out by --where"));
    let digits = line
        .unwrap_or_else(|| panic!("{said}"))
        .chars()
        .filter(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap()
}

#[test]
fn calls_that_take_long_are_recorded_with_their_entries() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "naps", NAPS);
    // Other threads switch in the meantime, so that packets of each CPU are written during the long
    // calls.
    let options = ["--context", "tid,procname", "--where", "duration > 1ms"];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    succeeds(&output);
    let calls = calls(&trace);
    for call in &calls {
        if let Some((duration, _)) = &call.exit {
            assert!(*duration > 1_000_000, "{call:?}");
        }
    }
    let of = |name: &str| {
        calls
            .iter()
            .filter(|call| call.name == name)
            .collect::<Vec<_>>()
    };
    let lengths: Vec<u64> = calls
        .iter()
        .filter(|call| call.name.ends_with("nanosleep"))
        .filter_map(|call| call.exit.as_ref().map(|(duration, _)| *duration))
        .collect();
    assert!(
        lengths
            .iter()
            .filter(|&&length| length >= 3_000_000)
            .count()
            >= 21,
        "{lengths:?}"
    );
    // Longer than events are kept in memory.
    assert!(
        lengths.iter().any(|&length| length >= 2_500_000_000),
        "{lengths:?}"
    );
    let read = of("read");
    let large = read.iter().find(|call| call.entry["count"] == "419430400");
    let (_, exit) = large.expect("a call that computes").exit.as_ref().unwrap();
    assert_eq!(exit["ret"], "419430400");
    let blocked = read.iter().filter(|call| call.entry["count"] == "1");
    assert_eq!(
        blocked.count(),
        1,
        "a call that the end of the process interrupts"
    );
    assert!(left_out(&output) >= 20 * 502, "{output:?}");
    let unfinished = calls.iter().filter(|call| call.exit.is_none()).count();
    assert!(unfinished <= 2, "{calls:?}");
    reads_alike(&trace);
    // Reports match entries and exits in the same way.
    let report = text(&["syscalls", "--format", "csv", &trace]);
    assert!(report.contains("nanosleep"), "{report}");
}

#[test]
fn calls_that_fail_are_recorded_with_their_entries() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "naps", NAPS);
    let options = [
        "--context",
        "tid,procname",
        "--where",
        "ret < 0 && procname == \"naps\"",
    ];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    succeeds(&output);
    let calls = calls(&trace);
    let missing = |call: &&Call| {
        call.entry
            .get("filename")
            .is_some_and(|path| path == "\"/no/such/file\"")
    };
    let failed: Vec<&Call> = calls.iter().filter(missing).collect();
    assert_eq!(failed.len(), 20, "{calls:?}");
    for call in &calls {
        // A call that has not ended after a second is recorded, because its result is still
        // unknown.
        match &call.exit {
            Some((duration, exit)) => {
                assert!(exit["ret"].starts_with('-') || *duration >= 1_000_000_000)
            }
            None => assert_eq!(call.entry["count"], "1", "{call:?}"),
        }
    }
    assert!(left_out(&output) >= 20 * 500);
}

#[test]
fn short_calls_can_be_chosen_as_well() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "naps", NAPS);
    let options = ["--context", "tid", "--where", "duration < 1ms && ret >= 0"];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    succeeds(&output);
    let calls = calls(&trace);
    assert!(calls.iter().filter(|call| call.name == "getppid").count() > 9900);
    // The exit is recorded shortly after the decision on the call.
    let slack = 2_000_000;
    assert!(calls.iter().all(|call| {
        call.exit
            .as_ref()
            .is_some_and(|(length, _)| *length < slack)
    }));
}

#[test]
fn conditions_on_threads_choose_calls_but_not_switches() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let script = "ls / > /dev/null; cat /etc/passwd > /dev/null";
    let options = [
        "--context",
        "tid,procname",
        "--where",
        "procname == \"ca*\"",
        "--kernel",
        "all",
    ];
    let (output, trace) = record(directory.path(), &options, &["sh", "-c", script]);
    succeeds(&output);
    let printed = text(&["print", "--name", "syscall_*", &trace]);
    assert!(printed.contains("/etc/passwd"));
    let entries = printed
        .lines()
        .filter(|line| line.contains("syscall_entry_"));
    entries.for_each(|line| assert!(line.contains("procname = \"cat\""), "{line}"));
    let faults = text(&["print", "--name", "x86_exceptions_page_fault_*", &trace]);
    assert!(
        faults
            .lines()
            .all(|line| line.contains("procname = \"cat\""))
    );
    let others = text(&["print", "--name", "sched_switch", &trace]);
    assert!(others.contains("procname = \"ls\""));
    assert!(left_out(&output) > 50);
}

#[test]
fn what_cannot_be_compared_is_named() {
    for (condition, part) in [
        ("filename == \"x\"", "`filename` cannot be compared"),
        ("ret < 0 || tid == 1", "`||`"),
        ("duration > 1h", "10 s"),
    ] {
        let output = run(&["record", "--where", condition, "--", "true"]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(part), "{said}");
    }
}
