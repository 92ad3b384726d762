//! `--context`: values of threads and counters on each kernel event.

use std::collections::BTreeMap;

use crate::record;
use crate::support::{compiled, reads_alike, recording_directory, run, succeeds, text};

/// Context values in a line of `print`, by name.
fn contexts(line: &str) -> BTreeMap<&str, &str> {
    let context = line.split("}, { ").nth(1).unwrap_or_default();
    let fields = context
        .split(", ")
        .filter_map(|field| field.split_once(" = "));
    fields
        .map(|(name, value)| (name, value.trim_end_matches(['}', ' '])))
        .collect()
}

/// Makes a system call and prints its ids, from a thread other than the first.
const NUMBERS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *second(void *unused) {
    prctl(PR_SET_NAME, "second");
    setpriority(PRIO_PROCESS, syscall(SYS_gettid), 7);
    printf("vpid=%d vtid=%ld vppid=%d uid=%d\n", getpid(), syscall(SYS_gettid), getppid(), getuid());
    fflush(stdout);
    syscall(SYS_getpgid, 0);
    return unused;
}
int main(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, second, NULL) || pthread_join(thread, NULL);
}
"#;

#[test]
fn contexts_are_the_values_of_the_thread() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "numbers", NUMBERS);
    let names = "vpid,vtid,vppid,pid,tid,procname,prio,nice,pid_ns,uid";
    let script = format!("readlink /proc/self/ns/pid; {}; true", program.display());
    let command = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-c",
        &script,
    ];
    let (output, trace) = record(directory.path(), &["--context", names], &command);
    succeeds(&output);
    let said = String::from_utf8(output.stdout).unwrap();
    let printed = text(&["print", "--name", "syscall_entry_getpgid", &trace]);
    let line = printed
        .lines()
        .find(|line| line.contains("\"second\""))
        .expect("the thread's call");
    let values = contexts(line);
    let truth = said.lines().last().unwrap();
    for pair in truth.split(' ') {
        let (name, value) = pair.split_once('=').unwrap();
        assert_eq!(values[name], value, "{line}");
    }
    assert_eq!((values["nice"], values["prio"]), ("7", "27"));
    let namespace = said.lines().next().unwrap();
    assert_eq!(namespace, format!("pid:[{}]", values["pid_ns"]));
    // In the initial namespace, the thread has other ids, which also occur in its other events.
    assert_ne!(values["tid"], values["vtid"]);
    let by_tid = text(&[
        "print",
        "--filter",
        &format!("ctx.tid == {}", values["tid"]),
        &trace,
    ]);
    assert!(by_tid.contains("syscall_entry_getpgid"));
    let filter = format!(
        "ctx.vtid == {} && ctx.procname == \"second\"",
        values["vtid"]
    );
    let filtered = text(&["print", "--filter", &filter, &trace]);
    assert!(
        filtered
            .lines()
            .all(|line| contexts(line)["vtid"] == values["vtid"])
    );
    assert!(filtered.contains("syscall_exit_getpgid"));
    // Events of the initial state belong to the recorder.
    let info: serde_json::Value =
        serde_json::from_str(&text(&["info", "--format", "json", &trace])).unwrap();
    let recorder = info["traces"][0]["environment"]["tracebraid_pid"].to_string();
    let states = text(&["print", "--name", "lttng_statedump_process_state", &trace]);
    assert!(states.lines().count() > 5);
    assert!(states.lines().all(|line| contexts(line)["pid"] == recorder));
    reads_alike(&trace);
    assert!(text(&["report", &trace]).contains("numbers"));
}

#[test]
fn counters_never_decrease_on_a_cpu() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let counters = "perf:cpu:page-faults,perf:cpu:context-switches,perf:cpu:cpu-clock";
    let script = "for i in 1 2 3 4 5; do ls / > /dev/null; done";
    let options = [
        "--context",
        counters,
        "--kernel",
        "all",
        "--stacks",
        "--ctf2",
    ];
    let (output, trace) = record(directory.path(), &options, &["sh", "-c", script]);
    succeeds(&output);
    let printed = text(&["print", &trace]);
    let mut last: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut switches = BTreeMap::<String, u64>::new();
    let mut decreases = 0;
    for line in printed.lines() {
        let cpu = line
            .split("cpu_id = ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let values = contexts(line);
        assert_eq!(values.len(), 3, "{line}");
        for (name, value) in values {
            let value: u64 = value.parse().unwrap();
            let before = last
                .insert((cpu.to_owned(), name.to_owned()), value)
                .unwrap_or(0);
            decreases += usize::from(before > value);
        }
        *switches.entry(cpu.to_owned()).or_default() += u64::from(line.contains(" sched_switch: "));
    }
    // An interrupt between reading the counter and the clock reads both later, but is recorded
    // first.
    let count = printed.lines().count();
    assert!(decreases * 200 < count, "{decreases} of {count}");
    // The counter includes all switches, from before the first event on.
    for (cpu, switches) in switches {
        let counted = last[&(cpu.clone(), "perf_cpu_context_switches".to_owned())];
        assert!(counted + 1 >= switches, "{cpu}: {counted} for {switches}");
    }
    assert!(text(&["stacks", &trace]).contains("ls"));
}

#[test]
fn contexts_are_kept_in_memory_too() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let options = ["--snapshot", "--context", "procname,perf:cpu:cpu-clock"];
    let (output, trace) = record(directory.path(), &options, &["ls", "/"]);
    succeeds(&output);
    if let Some(printed) = reads_alike(&trace) {
        assert!(
            printed
                .lines()
                .all(|line| line.contains("perf_cpu_cpu_clock = "))
        );
        assert!(printed.lines().last().unwrap().contains("tracebraid_end"));
    }
}

#[test]
fn unknown_contexts_and_missing_counters_are_named() {
    let of = |context: &str| {
        let output = run(&["record", "--context", context, "--", "true"]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(of("vpidd").contains("vpid, vtid"));
    assert!(of("perf:cpu:page").contains("perf:cpu:page-faults"));
    let Some(directory) = recording_directory() else {
        return;
    };
    let (output, trace) = record(
        directory.path(),
        &["--context", "perf:cpu:cycles"],
        &["true"],
    );
    let said = String::from_utf8(output.stderr).unwrap();
    // Virtual machines often have no hardware counters.
    match output.status.success() {
        true => assert!(text(&["print", &trace]).contains("perf_cpu_cycles")),
        false => assert!(
            said.contains("perf:cpu:cycles: this machine has no such"),
            "{said}"
        ),
    }
}
