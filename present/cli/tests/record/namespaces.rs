//! Recording in PID namespaces, from inside and outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tracebraid_testkit::processes::until;

use crate::support::{
    can_record_kernel, compiled_with, libraries, recording_directory, skipped, text,
};
use crate::{fields, record};

/// Makes system calls until a file exists, whose name is the argument.
const BUSY: &str = r"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
    struct stat about;
    while (count > 1 && stat(words[1], &about)) {
        getppid();
        usleep(2000);
    }
    return 0;
}
";

/// The program and its directory; `None` where the kernel cannot be recorded.
struct Fixture {
    directory: TempDir,
    busy: PathBuf,
}

impl Fixture {
    fn new() -> Option<Fixture> {
        if !can_record_kernel() || !can_unshare() {
            return None;
        }
        // Some tests mount another /tmp.
        let directory = TempDir::new_in("/var/tmp").unwrap();
        let busy = compiled_with(directory.path(), "busy", BUSY, &["-static"]);
        Some(Fixture { directory, busy })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn can_unshare() -> bool {
    let tried = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "true"])
        .output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        skipped("there is no unshare, or it may not make a PID namespace");
    }
    can
}

/// A shell in its own namespaces, in which `$0` is the tested program.
fn inside(namespaces: &[&str], script: &str, arguments: &[&Path]) -> Command {
    let mut unshare = Command::new("unshare");
    unshare
        .args(namespaces)
        .args(["sh", "-c", script, env!("CARGO_BIN_EXE_tracebraid")])
        .args(arguments)
        .env("TZ", "UTC")
        .env("TRACEBRAID_LIBRARIES", libraries());
    unshare
}

/// Standard error of a command, which must succeed.
#[track_caller]
fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn events(trace: &Path, names: &str) -> Vec<String> {
    let printed = text(&["print", "--name", names, trace.to_str().unwrap()]);
    printed.lines().map(str::to_owned).collect()
}

/// Threads of the state dump with a name, as the fields of their events.
fn dumped(trace: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let states = events(trace, "lttng_statedump_process_state");
    let states = states.iter().map(|line| fields(line));
    states
        .filter(|state| state["name"] == format!("\"{name}\""))
        .collect()
}

/// Ids of a thread by depth: its own, its process's and its parent's.
fn numbers(trace: &Path, tid: &str) -> Vec<[String; 3]> {
    let all = events(trace, "lttng_statedump_process_pid_ns");
    let of_thread = all
        .iter()
        .map(|line| fields(line))
        .filter(|numbers| numbers["tid"] == tid);
    of_thread
        .map(|numbers| ["vtid", "vpid", "vppid"].map(|name| numbers[name].clone()))
        .collect()
}

#[test]
fn a_command_in_a_pid_namespace_is_recorded() {
    let Some(place) = Fixture::new() else {
        return;
    };
    for (name, namespaces) in [
        ("mounted", &["--pid", "--fork", "--mount-proc"][..]),
        ("outer", &["--pid", "--fork"]),
        (
            "container",
            &[
                "--pid",
                "--fork",
                "--mount-proc",
                "--net",
                "--uts",
                "--ipc",
                "--cgroup",
            ],
        ),
    ] {
        let trace = place.path(name);
        let script = r#""$0" record --syscalls exit_group -o "$1" -- "$2" /"#;
        let said = said(inside(namespaces, script, &[&trace, &place.busy]));
        assert!(!said.contains("warning"), "{name}: {said}");
        assert!(
            !events(&trace, "syscall_entry_exit_group").is_empty(),
            "{name}: {said}"
        );
        // The recorder and the launched command, by the ids that their events contain.
        let environment = text(&["info", "--format", "json", trace.to_str().unwrap()]);
        let environment: serde_json::Value = serde_json::from_str(&environment).unwrap();
        let own = &environment["traces"][0]["environment"]["tracebraid_pid"];
        let switches = events(&trace, "sched_switch");
        let to = |tid: &str| switches.iter().any(|line| fields(line)["next_tid"] == tid);
        let recorder = dumped(&trace, "tracebraid");
        let pid = &recorder[0]["pid"];
        assert_eq!(*pid, own.to_string().trim_matches('"'), "{name}");
        assert!(recorder.iter().any(|thread| to(&thread["tid"])), "{name}");
        let command = dumped(&trace, "busy");
        assert_eq!(command.len(), 1, "{name}");
        assert!(to(&command[0]["tid"]), "{name}");
        assert_eq!(command[0]["ppid"], *pid);
        let levels = numbers(&trace, &command[0]["tid"]);
        assert_eq!(levels.len(), 2, "{name}: {levels:?}");
        assert_eq!(levels[0][0], command[0]["tid"]);
        assert!(
            levels[1][0].parse::<u32>().unwrap() < 1000,
            "{name}: {levels:?}"
        );
    }
}

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_of_a_container_is_recorded_from_inside_and_from_outside() {
    let Some(place) = Fixture::new() else {
        return;
    };
    let (end, number) = (place.path("end"), place.path("number"));
    let (inner, outer) = (place.path("inner"), place.path("outer"));
    let script = r#""$3" "$1" & echo $! > "$2.part"; mv "$2.part" "$2"
        "$0" record --pid $! --duration 300ms -o "$4" 2> "$4.said"; echo $? >> "$4.said"; wait"#;
    let container = inside(
        &["--pid", "--fork", "--mount-proc", "--kill-child"],
        script,
        &[&end, &number, &place.busy, &inner],
    )
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let _container = Running(container);
    let said = place.path("inner.said");
    until("the inner recording has ended", || {
        fs::read_to_string(&said).is_ok_and(|said| said.ends_with("\n0\n"))
    });
    let told = fs::read_to_string(&said).unwrap();
    assert!(!told.contains("warning"), "{told}");
    assert!(
        !events(&inner, "syscall_entry_getppid").is_empty(),
        "{told}"
    );
    let process = &dumped(&inner, "busy")[0]["pid"].clone();
    let levels = numbers(&inner, process);
    let own = fs::read_to_string(&number).unwrap();
    assert_eq!(levels[1][0], own.trim());
    // Its open file is found by the same id.
    let files = events(&inner, "lttng_statedump_file_descriptor");
    let table = &dumped(&inner, "busy")[0]["file_table_address"].clone();
    assert!(
        files
            .iter()
            .any(|line| fields(line)["file_table_address"] == *table)
    );
    let mut record = crate::support::tracebraid();
    record.args(["record", "--pid", process, "--duration", "300ms", "-o"]);
    let output = record.arg(&outer).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && !told.contains("warning"),
        "{told}"
    );
    assert!(
        !events(&outer, "syscall_entry_getppid").is_empty(),
        "{told}"
    );
    assert_eq!(numbers(&outer, process), levels);
    fs::write(&end, "").unwrap();
}

/// The recorder's process group was created outside the namespace, so it has no id inside.
#[test]
fn a_signal_in_a_pid_namespace_goes_on_to_the_command() {
    let Some(directory) = recording_directory() else {
        return;
    };
    if !can_unshare() {
        return;
    }
    let (trace, ready) = (
        directory.path().join("trace"),
        directory.path().join("ready"),
    );
    let script = r#"
        "$0" record -q -o "$1" -- sh -c ': > "$0"; exec sleep 30 > /dev/null 2>&1' "$2" & recorder=$!
        while [ ! -e "$2" ]; do sleep 0.01; done
        kill -TERM $recorder; wait $recorder; echo $? >&2"#;
    let command = inside(&["-fpm", "--mount-proc"], script, &[&trace, &ready]);
    assert_eq!(said(command).trim(), "143");
}

#[test]
fn a_command_that_makes_a_container_is_recorded_with_both_numbers() {
    let Some(place) = Fixture::new() else {
        return;
    };
    let end = place.path("end");
    fs::write(&end, "").unwrap();
    let command = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        place.busy.to_str().unwrap(),
        end.to_str().unwrap(),
    ];
    let (output, trace) = record(&place.path("outer"), &[], &command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && !said.contains("warning"),
        "{said}"
    );
    let forks = events(Path::new(&trace), "sched_process_fork");
    let is_first =
        |line: &&String| line.contains("vtids = [ [0] = ") && line.contains(", [1] = 1 ]");
    assert!(forks.iter().find(is_first).is_some(), "{forks:?}");
}

#[test]
fn a_chroot_without_proc_is_recorded() {
    let Some(place) = Fixture::new() else {
        return;
    };
    let root = place.path("root");
    // All files that the dynamically linked program needs, and no `/proc`.
    let script = r#"set -e
        mkdir -p "$1"/work "$1"/sys "$1"/proc "$1"/tmp
        for from in /bin /usr /lib /lib64 /etc; do
            [ -e $from ] || continue
            mkdir -p "$1$from"; mount --rbind $from "$1$from"
        done
        mkdir -p "$1/tested"; mount --bind "${0%/*}" "$1/tested"
        mount -t sysfs sysfs "$1/sys"; mount -t tmpfs none "$1/tmp"; mount --bind "$2" "$1/work"
        exec chroot "$1" /tested/tracebraid record --syscalls getppid,exit_group -o /work/inner -- /work/busy /"#;
    let said = said(inside(
        &["--pid", "--fork", "--mount"],
        script,
        &[&root, place.directory.path()],
    ));
    assert!(said.contains("/proc is not mounted"), "{said}");
    let trace = place.path("inner");
    assert!(
        !events(&trace, "syscall_entry_exit_group").is_empty(),
        "{said}"
    );
    let command = dumped(&trace, "busy");
    assert_eq!(numbers(&trace, &command[0]["tid"]).len(), 2, "{said}");
}

#[test]
fn a_user_namespace_is_named_where_it_is_the_reason() {
    let Some(place) = Fixture::new() else {
        return;
    };
    let trace = place.path("trace");
    let namespaces = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ];
    let script = r#""$0" record -o "$1" --pid 1 --duration 100ms"#;
    let output = inside(&namespaces, script, &[&trace]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("unshare") {
        return skipped(format_args!("no user namespace can be made here: {said}"));
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("initial user namespace") && said.contains("--pid"),
        "{said}"
    );
    let script = r#""$0" record -o "$1" -- true"#;
    let output = inside(&namespaces, script, &[&trace]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("initial user namespace"), "{said}");
}

#[test]
fn names_in_a_user_namespace_are_those_of_the_kernel() {
    let Some(place) = Fixture::new() else {
        return;
    };
    let busy = compiled_with(place.directory.path(), "computes", COMPUTES, &[]);
    // In the second case, /proc belongs to the outer namespace, where the same ids are other
    // processes.
    for (name, options) in [
        (
            "inner",
            &[
                "--user",
                "--map-root-user",
                "--pid",
                "--fork",
                "--mount-proc",
            ][..],
        ),
        ("outer", &["--user", "--map-root-user", "--pid", "--fork"]),
    ] {
        let trace = place.path(name);
        let script = r#""$0" record --stacks -o "$1" -- "$2""#;
        let output = inside(options, script, &[&trace, &busy]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return skipped(format_args!(
                "no stacks can be sampled in a user namespace here: {said}"
            ));
        }
        let profile = text(&["stacks", "--format", "json", trace.to_str().unwrap()]);
        let profile: serde_json::Value = serde_json::from_str(&profile).unwrap();
        let processes = profile["processes"].as_array().unwrap();
        let names: Vec<&str> = processes
            .iter()
            .filter_map(|process| process["name"].as_str())
            .collect();
        // The child has renamed itself.
        assert!(names.contains(&"child"), "{names:?} {said}");
        let known = ["computes", "child", "true", "sh"];
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    }
}

/// Computes in a child that renames itself, and then in its parent.
const COMPUTES: &str = r#"
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void computes(void) {
    struct timespec now;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); while (now.tv_sec == 0 && now.tv_nsec < 100000000);
}
int main(void) {
    if (!fork()) {
        prctl(PR_SET_NAME, "child");
        computes();
        _exit(0);
    }
    wait(0);
    computes();
    return 0;
}
"#;

#[test]
fn a_target_without_events_is_told_of() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let sleep = Running(sleep);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut record = crate::support::tracebraid();
    record.args([
        "record",
        "--pid",
        &sleep.0.id().to_string(),
        "--duration",
        "200ms",
        "-o",
    ]);
    let output = record.arg(directory.path().join("trace")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("the processes of --pid made none in that time"),
        "{said}"
    );
    let (output, _) = crate::record(
        &directory.path().join("other"),
        &["--syscalls", "getppid"],
        &["true"],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("none of the calls of --syscalls was made"),
        "{said}"
    );
}

#[test]
fn a_map_of_compiled_code_is_kept_by_the_number_of_event_records() {
    let Some(place) = Fixture::new() else {
        return;
    };
    if env!("CARGO_BIN_EXE_tracebraid").starts_with("/tmp/") {
        return skipped("the program is below /tmp, which this test hides by a mount");
    }
    // Like a runtime: the name of the map contains the id that the process itself knows, and the
    // map outlives the process.
    let program = r#"echo "1000 10 compiled" > /tmp/perf-$$.map; exec "$0" /"#;
    let script = r#"mount -t tmpfs none /tmp; "$0" record --stacks -o "$1" -- sh -c "$3" "$2""#;
    let said_ = said({
        let mut command = inside(
            &["--pid", "--fork", "--mount-proc"],
            script,
            &[&place.path("trace"), &place.busy],
        );
        command.arg(program);
        command
    });
    let names = fs::read_dir(place.path("trace/symbols"))
        .into_iter()
        .flatten()
        .flatten();
    let names: Vec<String> = names
        .map(|name| name.file_name().to_string_lossy().into_owned())
        .collect();
    let command = dumped(&place.path("trace"), "sh");
    let own = command
        .iter()
        .find(|state| names.contains(&format!("perf-{}.map", state["pid"])));
    assert!(own.is_some(), "{names:?} {command:?} {said_}");
}

#[test]
fn a_namespace_for_children_only_is_named() {
    let Some(place) = Fixture::new() else {
        return;
    };
    let trace = place.path("trace");
    let mut unshare = Command::new("unshare");
    unshare.args([
        "--pid",
        env!("CARGO_BIN_EXE_tracebraid"),
        "record",
        "--system",
        "-o",
    ]);
    let output = unshare.arg(&trace).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--fork"), "{said}");
    assert!(!trace.exists());
}
