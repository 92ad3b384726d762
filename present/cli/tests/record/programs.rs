//! Events that programs record themselves: probes and call stacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::record;
use crate::support::{
    self, can_record_kernel, compiled, compiled_with, recording_directory, succeeds, text,
    tracebraid,
};

/// Fires a probe between two system calls, a thousand times.
const PROBED: &str = r#"
#include <sys/syscall.h>
#include <tracebraid/probe.h>
#include <unistd.h>
TB_EVENT(test, between, TB_INT32(number), TB_STRING(text));
int main(void) {
    for (int i = 0; i < 1000; i++) {
        syscall(SYS_getppid);
        tb_trace(test, between, i, "here");
        syscall(SYS_getuid);
    }
    return 0;
}
"#;

/// A program with probes, linked with the library that was built together with the tested program.
fn probed_program(directory: &Path) -> PathBuf {
    let built = support::libraries();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/probe/include");
    let include = format!("-I{}", include.display());
    let library = built.join("libtracebraid_probe.a").display().to_string();
    compiled_with(
        directory,
        "probed",
        PROBED,
        &[&include, &library, "-lpthread", "-ldl", "-lm"],
    )
}

/// Maximum difference between the clocks of probes and kernel in the first millisecond of a
/// process, in nanoseconds (docs/reference/probe.md). Near the end of that millisecond, 4 of 140
/// runs showed a probe 4 to 16 ns before the end of the call that it follows.
const CLOCK_ERROR: i64 = 500;

#[test]
fn probes_and_kernel_are_one_recording_in_the_order_of_time() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = probed_program(directory.path());
    let (output, trace) = record(
        directory.path(),
        &["--syscalls", "getppid,getuid"],
        &[program.to_str().unwrap()],
    );
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("Probes of 1 process as well: 1,001 events, 0 lost"),
        "{said}"
    );
    let names = ["syscall_entry_get*", "syscall_exit_get*", "test:between"];
    let filter: Vec<&str> = names.iter().flat_map(|name| ["--name", name]).collect();
    let printed = text(&[&["print", "--format", "json"][..], &filter, &[&trace]].concat());
    let events: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let time = |event: &serde_json::Value| event["timestamp"].as_i64().unwrap();
    assert!(events.is_sorted_by_key(time));
    let named = |name: &'static str| events.iter().filter(move |event| event["name"] == name);
    let numbers = named("test:between").map(|event| event["payload"]["number"].as_i64().unwrap());
    assert!(numbers.eq(0..1000));
    let round = [
        "syscall_entry_getppid",
        "syscall_exit_getppid",
        "test:between",
        "syscall_entry_getuid",
        "syscall_exit_getuid",
    ];
    let times = round.map(|name| named(name).map(time).collect::<Vec<i64>>());
    assert_eq!(times.each_ref().map(Vec::len), [1000; 5]);
    assert_eq!(events.len(), 5000);
    for number in 0..1000 {
        let [entry, exit, between, next_entry, next_exit] =
            times.each_ref().map(|times| times[number]);
        let probe_is_between = exit - CLOCK_ERROR <= between && between <= next_entry + CLOCK_ERROR;
        assert!(
            entry <= exit && exit <= next_entry && next_entry <= next_exit && probe_is_between,
            "{entry} {exit} {between} {next_entry} {next_exit} in round {number}"
        );
    }
    let peer = Command::new("babeltrace2")
        .env("TZ", "UTC")
        .arg(&trace)
        .output();
    let Ok(peer) = peer else {
        return support::skipped("babeltrace2 does not run");
    };
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let count = String::from_utf8(peer.stdout).unwrap().lines().count();
    assert_eq!(count, text(&["print", &trace]).lines().count());
}

#[test]
fn without_privileges_the_probes_of_a_program_are_recorded() {
    let directory = TempDir::new().unwrap();
    let program = probed_program(directory.path());
    let trace = directory.path().join("trace");
    fs::set_permissions(
        directory.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    let mut command = unprivileged();
    command
        .args(["record", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(&program);
    let output = command.output().expect("setpriv runs");
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("CAP_PERFMON and CAP_BPF"), "{said}");
    let printed = text(&["print", "--name", "test:between", trace.to_str().unwrap()]);
    assert_eq!(printed.lines().count(), 1000);
}

/// The tested program without any privilege.
pub(crate) fn unprivileged() -> Command {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        return tracebraid();
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
        "--reuid",
        "65534",
        "--clear-groups",
    ]);
    command
        .arg(env!("CARGO_BIN_EXE_tracebraid"))
        .env("TZ", "UTC");
    command
}

#[test]
fn without_privileges_it_says_which_are_missing() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut drop = unprivileged();
    drop.args(["record", "--system", "-o"]).arg(&trace);
    fs::set_permissions(
        directory.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    let output = drop.output().expect("setpriv runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("CAP_PERFMON and CAP_BPF"), "{said}");
    assert!(!trace.exists());
}

/// Uses the CPU in one function, and waits in another one.
const STACKED: &str = r"
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) long burn(long n) { volatile long x = 0; for (long i = 0; i < n; i++) x += i; return x; }
__attribute__((noinline)) long work(void) { return burn(20000000) + 1; }
__attribute__((noinline)) int rest(void) { struct timespec t = {0, 5000000}; return nanosleep(&t, 0) + 1; }
int main(void) { long x = 0; for (int i = 0; i < 10; i++) x += work() + rest(); return x == 42; }
";

#[test]
fn stacks_of_a_command_are_recorded_and_named() {
    let directory = TempDir::new().unwrap();
    let stacked = compiled(directory.path(), "stacked", STACKED);
    let (output, trace) = record(
        directory.path(),
        &["--stacks"],
        &[stacked.to_str().unwrap()],
    );
    succeeds(&output);
    let report: serde_json::Value =
        serde_json::from_str(&text(&["stacks", "--format", "json", &trace])).unwrap();
    let samples = report["cpu_samples"].as_u64().unwrap();
    if samples == 0 {
        return support::skipped("perf events are refused here: no stacks");
    }
    let of = |name: &str| {
        let functions = report["functions"].as_array().unwrap();
        functions
            .iter()
            .find(|row| row["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    let burned = of("burn")["own"]["cpu_samples"].as_u64().unwrap_or(0);
    assert!(burned * 10 > samples * 8, "{burned} of {samples}");
    assert!(of("work")["total"]["cpu_samples"].as_u64().unwrap_or(0) >= burned);
    let folded = text(&["stacks", "--format", "folded", &trace]);
    let line = folded.lines().find(|line| line.contains("work;burn "));
    assert!(
        line.is_some_and(|line| line.starts_with("stacked;")),
        "{folded}"
    );
    let waited = of("rest")["total"]["waits"].as_u64().unwrap_or(0);
    // Waits need a privilege, or a kernel that exposes switches to unprivileged users. At most ten
    // are recorded: pending signals merge, and some kernels omit switches.
    if can_record_kernel() {
        assert!((1..=10).contains(&waited), "{waited}");
    }
}
