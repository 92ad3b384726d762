//! Call stacks of commands, of programs that run already, and of the whole system.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::support::{can_record_kernel, compiled_with, skipped, succeeds, text, tracebraid};
use serde_json::Value;
use tempfile::TempDir;
use tracebraid_testkit::processes::cpu_time;

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Records a command; gives what it said, and the trace.
fn record(directory: &Path, options: &[&str], command: &[&str]) -> (Output, String) {
    let trace = directory.join("trace").to_str().expect("UTF-8").to_owned();
    let mut record = tracebraid();
    // Commands leave files where they are.
    record
        .env("TRACEBRAID_LIBRARIES", crate::support::libraries())
        .current_dir(directory);
    record.arg("record").args(options).args(["-o", &trace, "--"]);
    (record.args(command).output().expect("the binary runs"), trace)
}

/// What `stacks` says of a trace.
fn profile(trace: &str) -> Value {
    serde_json::from_str(&text(&["stacks", "--format", "json", trace])).expect("JSON")
}

/// A number of a function.
fn of(profile: &Value, function: &str, which: &str, sum: &str) -> u64 {
    let functions = profile["functions"].as_array().expect("functions");
    let found = functions.iter().find(|row| row["name"] == function);
    found.and_then(|row| row[which][sum].as_u64()).unwrap_or(0)
}

/// Events of a class as text, a line each.
fn events(trace: &str, class: &str) -> Vec<String> {
    let printed = text(&["print", trace]);
    let lines = printed
        .lines()
        .filter(|line| line.contains(&format!(" {class}:")));
    lines.map(str::to_owned).collect()
}

/// The program with known chains of calls.
fn chains(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/chains.c");
    let source = fs::read_to_string(source).unwrap();
    compiled_with(
        directory,
        "chains",
        &source,
        &["-pthread", "-fomit-frame-pointer", "-ldl"],
    )
}

const ONLY_STACKS: [&str; 5] = ["--kernel", "none", "--syscalls", "none", "--stacks"];

/// Stacks of `chains` in a trace, as `print` shows them: but for those in the middle of becoming the program, which
/// have none of it.
fn stacks_of_chains(trace: &str) -> Vec<String> {
    let all = ["tracebraid_cpu_stack", "tracebraid_syscall_stack"].map(|class| events(trace, class));
    let is_it = |line: &String| line.contains("comm = \"chains\"") && !line.contains("syscall = 59,");
    all.concat().into_iter().filter(is_it).collect()
}

#[test]
fn stacks_are_whole_without_frame_pointers() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let program = chains(directory.path());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/plugin.c");
    let source = fs::read_to_string(source).unwrap();
    let plugin = compiled_with(directory.path(), "plugin.so", &source, &["-shared", "-fPIC"]);
    let begin = "_start;__libc_start_main_impl;__libc_start_call_main;main;";
    let deep = format!("{begin}{}leaf;burn", "recurse;".repeat(29));
    // The C library's functions differ between its versions.
    for (what, parts) in [
        ("deep", &[&*deep][..]),
        ("exec", &[&deep]),
        ("sort", &[begin, ";main;sorter;", ";compare;burn"]),
        ("signal", &[begin, ";main;interrupted;", ";handler;burn"]),
        ("altstack", &[begin, ";main;interrupted;", ";handler;burn"]),
        ("realigned", &[begin, ";main;realigned;burn_there;burn"]),
        ("plugin", &[begin, ";main;plugin;", ";inside;burn"]),
        ("threads", &["start_thread;thread;burn"]),
        ("fork", &[begin, ";recurse;recurse;recurse;"]),
    ] {
        let run = TempDir::new().unwrap();
        let command = [program.to_str().unwrap(), what, plugin.to_str().unwrap()];
        let (output, trace) = record(run.path(), &ONLY_STACKS, &command);
        assert!(output.status.success(), "{what}: {}", error(&output));
        let folded = text(&["stacks", "--format", "folded", &trace]);
        let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
        let samples = folded
            .lines()
            .filter(has_all)
            .filter_map(|line| line.rsplit_once(' '));
        let samples: u64 = samples.map(|(_, count)| count.parse::<u64>().unwrap()).sum();
        assert!(samples >= 20, "{what}: {samples} in {folded}");
        let stacks = stacks_of_chains(&trace);
        let broken: Vec<&String> = stacks
            .iter()
            .filter(|line| !line.contains("status = 0,"))
            .collect();
        // A stack that is taken while `execve` replaces the registers has no end.
        assert!(
            broken.len() <= 1 + stacks.len() / 100,
            "{what}: {} of {}: {broken:#?}",
            broken.len(),
            stacks.len()
        );
    }
}

#[test]
fn stacks_are_cut_where_asked_for() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let program = chains(directory.path());
    for (options, status) in [
        ("--stacks=depth=5", "status = 1,"),
        ("--stacks=stack_bytes=1K", "status = 3,"),
    ] {
        let run = TempDir::new().unwrap();
        let command = [program.to_str().unwrap(), "deep"];
        let (output, trace) = record(run.path(), &[&ONLY_STACKS[..4], &[options]].concat(), &command);
        assert!(output.status.success(), "{}", error(&output));
        let cut = stacks_of_chains(&trace)
            .iter()
            .filter(|line| line.contains(status))
            .count();
        assert!(cut >= 50, "{options}: {cut}");
    }
}

#[test]
fn stacks_by_frame_pointers_are_those_of_programs_that_have_them() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let program = plain(directory.path());
    let script = format!("{} | head -n 20 > /dev/null", program.display());
    let options = [&ONLY_STACKS[..4], &["--stacks=stack_bytes=0"]].concat();
    let (output, trace) = record(directory.path(), &options, &["sh", "-c", &script]);
    assert!(output.status.success(), "{}", error(&output));
    let folded = text(&["stacks", "--format", "folded", &trace]);
    assert!(samples_in(&folded, ";main;burn") >= 50, "{folded}");
}

#[test]
fn waits_have_whole_stacks_and_are_not_interrupted() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let program = chains(directory.path());
    let options = [&ONLY_STACKS[..4], &["--stacks=period_us=0"]].concat();
    // A wait is not seen where something else runs before the thread can leave its CPU and its timer is over by then: on a
    // busy machine that may be any of them, but none is always.
    let mut missing: BTreeSet<&str> = WAITS.map(|(name, _)| name).into();
    for _ in 0..10 {
        let run = TempDir::new().unwrap();
        let (output, trace) = record(run.path(), &options, &[program.to_str().unwrap(), "waits"]);
        // It names each call that was interrupted.
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "end\n", "{}", error(&output));
        let stacks = stacks_of_chains(&trace);
        let broken: Vec<&String> = stacks
            .iter()
            .filter(|line| !line.contains("status = 0,"))
            .collect();
        assert!(broken.is_empty(), "{broken:#?}");
        for (name, number) in WAITS {
            if stacks
                .iter()
                .any(|line| line.contains(&format!("syscall = {number},")))
            {
                missing.remove(name);
            }
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("{missing:?} have no stack in ten recordings");
}

/// System calls in which `chains` waits.
const WAITS: [(&str, u32); 8] = [
    ("poll", 7),
    ("clock_nanosleep", 230),
    ("read", 0),
    ("epoll_wait", 232),
    ("ppoll", 271),
    ("rt_sigtimedwait", 128),
    ("connect", 42),
    ("wait4", 61),
];

/// Uses the CPU in one function, and waits in another one that is not the last before the C library. Prints its CPU
/// time in microseconds after each round.
const PLAIN: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#define PLAIN __attribute__((noinline, optimize(0)))
PLAIN long burn(long n) { volatile long x = 0; for (long i = 0; i < n; i++) x += i; return x; }
PLAIN int doze(void) { struct timespec t = {0, 5000000}; return nanosleep(&t, 0) + 1; }
PLAIN int rest(void) { return doze() + 1; }
long used(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1000000L + t.tv_nsec / 1000; }
int main(int count, char **words) {
    long x = 0;
    while (count) {
        x += burn(10000000) + rest();
        printf("%ld\n", used());
        fflush(stdout);
    }
    return x == 42;
}
"#;

/// A program that runs until it is dropped.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn new(program: &Path) -> Running {
        let mut command = Command::new(program);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Running { child, lines }
    }

    /// CPU time in microseconds at the end of the next round.
    fn round(&mut self) -> u64 {
        let line = self.lines.next().expect("it goes on").unwrap();
        line.parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn plain(directory: &Path) -> PathBuf {
    compiled_with(directory, "plain", PLAIN, &["-fno-omit-frame-pointer"])
}

/// Rounds of the program that are recorded whole, at least.
const ROUNDS: u64 = 12;

/// Functions of the program and of the kernel stand in what was recorded with these options during some of its rounds,
/// however long those take.
fn sees_plain(options: impl Fn(u32) -> Vec<String>) {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let mut running = Running::new(&plain(directory.path()));
    let process = running.child.id();
    let trace = directory.path().join("trace").to_str().unwrap().to_owned();
    let session = |arguments: &[&str], more: &[String]| {
        let mut command = tracebraid();
        command.args(arguments).args(more);
        command.env("XDG_RUNTIME_DIR", directory.path());
        succeeds(&command.output().expect("the binary runs"))
    };
    let only_stacks = ["--kernel", "none", "--syscalls", "none", "--stacks", "-o", &trace];
    // When that has ended recording has begun.
    session(
        &[&["start", "stacks"][..], &only_stacks].concat(),
        &options(process),
    );
    // Rounds that ended earlier are in the pipe, too.
    let since = cpu_time(process).expect("it runs").as_micros() as u64;
    let first = std::iter::repeat_with(|| running.round()).find(|&used| used > since);
    let last = (0..ROUNDS).map(|_| running.round()).last();
    session(&["stop", "stacks"], &[]);
    let used_ms = (last.expect("a round") - first.expect("a round")) / 1000;
    // Other tests run programs with functions of the same names.
    let ask = [
        "stacks",
        "--format",
        "json",
        "--pid",
        &process.to_string(),
        &trace,
    ];
    let profile: Value = serde_json::from_str(&text(&ask)).expect("JSON");
    let burnt = of(&profile, "burn", "own", "cpu_samples");
    // One sample for each millisecond of CPU time.
    assert!(burnt >= used_ms / 2, "{burnt} of {used_ms}: {profile:#}");
    // But for a few that are broken.
    let below_main = of(&profile, "main", "total", "cpu_samples");
    assert!(
        below_main * 100 >= burnt * 98,
        "{below_main} of {burnt}: {profile:#}"
    );
    // Except where something else ran before the program could wait, and its timer was over then.
    assert!(
        of(&profile, "rest", "total", "waits") >= ROUNDS - 2,
        "{profile:#}"
    );
    let functions = profile["functions"].as_array().unwrap();
    let in_kernel = |row: &&Value| row["name"].as_str().unwrap().ends_with("nanosleep_[k]");
    let slept = functions.iter().filter(in_kernel).map(|row| &row["total"]);
    let slept = slept.max_by_key(|total| total["wait_ns"].as_u64());
    // As long as it sleeps once, at least.
    let slept = slept.expect("the kernel's function")["wait_ns"].as_u64();
    assert!(slept.unwrap() >= 5_000_000, "{profile:#}");
    let name = |row: &Value| row["name"] == "plain" && row["pid"] == process;
    assert!(
        profile["processes"].as_array().unwrap().iter().any(name),
        "{profile:#}"
    );
}

#[test]
fn stacks_of_a_process_that_runs_already() {
    sees_plain(|pid| vec!["--pid".to_owned(), pid.to_string()]);
}

#[test]
fn stacks_of_the_whole_system() {
    sees_plain(|_| vec!["--system".to_owned()]);
}

#[test]
fn stacks_of_the_newest_only() {
    // What was mapped long ago is told again.
    sees_plain(|_| {
        ["--system", "--snapshot", "--max-size", "32M"]
            .map(str::to_owned)
            .to_vec()
    });
}

#[test]
fn what_was_compiled_while_a_program_ran_has_its_names() {
    let directory = TempDir::new().unwrap();
    let script = "
function burntAway(n) { let x = 0; for (let i = 0; i < n; i++) x += Math.sqrt(i ^ x); return x; }
const end = process.cpuUsage().user + 500000;
let x = 0; while (process.cpuUsage().user < end) x += burntAway(100000);";
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|output| output.status.success()) {
        return skipped("there is no node: names of compiled functions are not tried");
    }
    let command = ["node", "--perf-basic-prof", "-e", script];
    let options = ["--kernel", "none", "--syscalls", "none", "--stacks"];
    let (output, trace) = record(directory.path(), &options, &command);
    assert!(output.status.success(), "{}", error(&output));
    let all = profile(&trace)["cpu_samples"].as_u64().unwrap();
    if all == 0 {
        return skipped("perf events are refused here: no stacks");
    }
    // The program itself counts 500 ms of CPU time, whatever is compiled into the function.
    let folded = text(&["stacks", "--format", "folded", &trace]);
    let samples = samples_in(&folded, "burntAway");
    assert!(samples >= 250, "{samples} of {all}: {folded}");
}

/// Interpreters of which functions can be seen.
const PYTHONS: [&str; 4] = ["python3", "python3.11", "python3.12", "python3.13"];

#[test]
fn functions_of_python_are_seen() {
    if !can_record_kernel() {
        return;
    }
    let script = "
import sys, threading, time
def inner(n):
    return sum(i * i for i in range(n))
class Shop:
    def serve(self):
        return inner(20000)
def naïve(n):
    return sorted(range(n), key=lambda value: inner(20))
def doze():
    time.sleep(0.005)
def work():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        Shop().serve(); naïve(500); doze()
thread = threading.Thread(target=work)
thread.start(); work(); thread.join()
print(sys.version_info[1])";
    let mut tried = 0;
    for python in PYTHONS {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("shop.py");
        fs::write(&file, script).unwrap();
        let command = [python, file.to_str().unwrap()];
        let runs = Command::new(python)
            .arg("-c")
            .arg("import sys; print(sys.version_info[1])")
            .output();
        let minor = runs
            .ok()
            .and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse::<u32>().ok());
        if !minor.is_some_and(|minor| (11..=13).contains(&minor)) {
            continue;
        }
        tried += 1;
        let (output, trace) = record(directory.path(), &ONLY_STACKS, &command);
        assert!(output.status.success(), "{python}: {}", error(&output));
        let folded = text(&["stacks", "--format", "folded", &trace]);
        let serves = |begin: &str| {
            let parts = [
                begin,
                "work (shop.py:12);Shop.serve (shop.py:6);",
                "inner (shop.py:3)",
            ];
            let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
            let counts = folded
                .lines()
                .filter(has_all)
                .filter_map(|line| line.rsplit_once(' '));
            counts
                .map(|(_, count)| count.parse::<u64>().unwrap())
                .sum::<u64>()
        };
        // In the main thread and in the other one.
        assert!(serves("<module> (shop.py:") >= 30, "{python}: {folded}");
        assert!(serves("Thread.run (threading.py:") >= 30, "{python}: {folded}");
        assert!(folded.contains("naïve (shop.py:8);"), "{python}: {folded}");
        let waits = text(&["stacks", "--waits", "--format", "folded", &trace]);
        assert!(
            waits.contains("work (shop.py:12);doze (shop.py:10)"),
            "{python}: {waits}"
        );
        let all = events(&trace, "tracebraid_cpu_stack").len();
        let broken = events(&trace, "tracebraid_cpu_stack")
            .iter()
            .filter(|line| line.contains("status = 2,"))
            .count();
        assert!(broken * 100 <= all, "{python}: {broken} of {all}");
    }
    if tried == 0 {
        skipped("there is no Python 3.11 to 3.13: its functions are not tried");
    }
}

/// Samples of those folded stacks that have a function whose name has that in it.
fn samples_in(folded: &str, name: &str) -> u64 {
    let stacks = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let stacks = stacks.filter(|(stack, _)| stack.contains(name));
    stacks.map(|(_, samples)| samples.parse::<u64>().unwrap()).sum()
}

#[test]
fn the_library_that_is_no_file_has_names() {
    let directory = TempDir::new().unwrap();
    let source = "#include <time.h>
int main(void) { struct timespec t; for (int i = 0; i < 10000000; i++) clock_gettime(CLOCK_MONOTONIC, &t); return 0; }";
    let program = compiled_with(directory.path(), "clock", source, &[]);
    let options = ["--kernel", "none", "--syscalls", "none", "--stacks"];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    assert!(output.status.success(), "{}", error(&output));
    let profile = profile(&trace);
    let all = profile["cpu_samples"].as_u64().unwrap();
    if all == 0 {
        return skipped("perf events are refused here: no stacks");
    }
    let functions = profile["functions"].as_array().unwrap();
    let named = |row: &&Value| row["name"].as_str().unwrap().contains("vdso.so");
    assert_eq!(functions.iter().find(named), None, "{profile:#}");
    // The program does nothing else. How its time is divided between it, the C library, the kernel's and, where that
    // cannot read the clock, the kernel itself is the machine's; but whatever is called from `main` has a name.
    let folded = text(&["stacks", "--format", "folded", &trace]);
    let below = folded.lines().filter(|line| line.contains(";main"));
    let unnamed: Vec<&str> = below
        .filter(|line| line.contains("0x") || line.contains("[unknown]"))
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let (main, clock) = (samples_in(&folded, ";main"), samples_in(&folded, "clock_gettime"));
    assert!(
        main * 10 >= all * 8 && clock * 2 >= main,
        "{clock} of {main} of {all}: {folded}"
    );
}

/// A server's way: it begins as root, and its workers are somebody else.
const DROPS: &str = "
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) static void spin(long ms)
{
	struct timespec now;
	do {
		for (int i = 0; i < 1000; i++)
			sum += i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
	dprintf(1, \"%d %ld\\n\", getpid(), ms);
}
int main(void)
{
	pid_t worker = fork();
	if (worker == 0) {
		if (setgroups(0, 0) || setgid(65534) || setuid(65534))
			abort();
		spin(100);
		usleep(2000);
		_exit(0);
	}
	spin(50);
	int status;
	waitpid(worker, &status, 0);
	return status != 0;
}
";

#[test]
fn workers_that_give_up_root_have_stacks() {
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    if user != b"0\n" {
        skipped("only root can become somebody else");
        return;
    }
    let directory = TempDir::new().unwrap();
    let program = compiled_with(directory.path(), "drops", DROPS, &[]);
    let begun = std::time::Instant::now();
    let (output, trace) = record(directory.path(), &ONLY_STACKS, &[program.to_str().unwrap()]);
    let passed = begun.elapsed().as_millis() as u64;
    assert!(output.status.success(), "{}", error(&output));
    let profile = profile(&trace);
    let processes = profile["processes"].as_array().unwrap();
    let ours = processes.iter().filter(|process| process["name"] == "drops");
    assert_eq!(ours.count(), 2, "{profile:#}");
    // Milliseconds of CPU time that each has used in its function, with all that this calls: which part of it is spent in
    // the kernel's library is the processor's. One sample for each, but for some that fall into signal handlers. More are
    // possible, since the clock of samples goes on while a host takes the CPU from a virtual machine.
    let told = String::from_utf8(output.stdout).unwrap();
    let told = told.lines().filter_map(|line| line.split_once(' '));
    let mut all = 0;
    for (pid, used) in told {
        let used: u64 = used.parse().unwrap();
        let process = processes
            .iter()
            .find(|process| process["pid"].as_u64() == pid.parse().ok());
        let samples = process
            .and_then(|process| process["cpu_samples"].as_u64())
            .unwrap();
        assert!(
            (used * 8 / 10..=passed + 2).contains(&samples),
            "{samples} of {used} ms in {passed} ms"
        );
        all += used;
    }
    assert_eq!(all, 150, "{profile:#}");
    let spun = of(&profile, "spin", "total", "cpu_samples");
    assert!(spun >= all * 7 / 10, "{spun} of {all}: {profile:#}");
}

#[test]
fn a_recording_with_stacks_that_has_none_is_not_told_to_have_them_recorded() {
    for (options, expected) in [
        (
            &["--stacks=period_us=10000000,waits=off"][..],
            "the recording of call stacks was enabled, but is empty",
        ),
        (
            &[],
            "record them with `tracebraid record --stacks` or `perf record -g`",
        ),
    ] {
        let directory = TempDir::new().unwrap();
        let source = "int main(void) { return 0; }";
        let program = compiled_with(
            directory.path(),
            "program",
            source,
            &["-O0", "-finstrument-functions"],
        );
        let alone = [
            "--kernel",
            "none",
            "--syscalls",
            "none",
            "--probes",
            "lttng_ust_cyg_profile:*",
        ];
        let (output, trace) = record(
            directory.path(),
            &[&alone, options].concat(),
            &[program.to_str().unwrap()],
        );
        assert!(output.status.success(), "{}", error(&output));
        let (code, said) = crate::support::failure(&["stacks", &trace]);
        assert!(code == 3 && said.contains(expected), "{code}: {said}");
    }
    // Nor are kernel events alone any.
    if can_record_kernel() {
        let directory = TempDir::new().unwrap();
        let (_, trace) = record(directory.path(), &[], &["true"]);
        let (code, said) = crate::support::failure(&["stacks", &trace]);
        assert!(code == 3 && said.contains("record them with"), "{code}: {said}");
    }
}

#[test]
fn names_are_kept_for_the_next_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_with(directory.path(), "spins", SPINS, &["-g", "-O1"]);
    let (said, trace) = record(directory.path(), &["--stacks"], &[&program.to_string_lossy()]);
    if !can_record_kernel() {
        return;
    }
    assert!(said.status.success(), "{}", error(&said));
    let kept = directory.path().join("kept");
    let stacks = || {
        let mut stacks = tracebraid();
        stacks.env("TRACEBRAID_CACHE", &kept);
        crate::support::succeeds(&stacks.args(["stacks", &trace]).output().expect("the binary runs"))
    };
    let without = text(&["stacks", &trace]);
    assert!(without.contains("spins_inside"), "{without}");
    assert_eq!(stacks(), without);
    // What is kept is what is shown.
    let mut files = fs::read_dir(&kept)
        .expect("names are kept")
        .map(|entry| entry.expect("a file").path());
    let is_ours = |file: &PathBuf| fs::read_to_string(file).expect("text").contains("spins_inside");
    let file = files.find(is_ours).expect("those of the program too");
    let names = fs::read_to_string(&file)
        .expect("text")
        .replace("spins_inside", "spins_within");
    fs::write(&file, names).expect("written");
    assert_eq!(stacks(), without.replace("spins_inside", "spins_within"));
}

/// Uses CPU time in a function that is put into another one.
const SPINS: &str = "
    #include <time.h>
    __attribute__((always_inline)) static inline void spins_inside(volatile long *sum)
    {
        for (long at = 0; at < 1000000; at++)
            *sum += at;
    }
    int main(void)
    {
        volatile long sum = 0;
        while (clock() < CLOCKS_PER_SEC / 5)
            spins_inside(&sum);
        return 0;
    }
";

#[test]
fn a_program_that_was_replaced_has_no_names() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let source = |name: &str| {
        format!(
            "__attribute__((noinline)) long {name}(long n) {{ volatile long sum = 0; while (n--) sum += n; return sum; }}\n\
             int main(void) {{ return {name}(100000000) == 7; }}"
        )
    };
    let options = ["-O1", "-fno-omit-frame-pointer", "-Wl,--build-id=none"];
    let compile = |name: &str| compiled_with(directory.path(), name, &source(name), &options);
    let (program, other) = (compile("first"), compile("second"));
    let recorded = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--stacks=waits=off",
        "--snapshot",
    ];
    let (output, trace) = record(directory.path(), &recorded, &[program.to_str().unwrap()]);
    succeeds(&output);
    let profile_before = profile(&trace);
    assert!(
        of(&profile_before, "first", "own", "cpu_ns") > 0,
        "{profile_before:#}"
    );
    fs::copy(other, &program).unwrap();
    let profile = profile(&trace);
    assert_eq!(of(&profile, "first", "own", "cpu_ns"), 0);
    assert_eq!(of(&profile, "second", "own", "cpu_ns"), 0);
    let changed = &profile["changed_files"][0];
    assert!(changed["path"].as_str().unwrap().ends_with("/first"), "{changed}");
    assert!(changed["frames"].as_u64().unwrap() > 0);
}

#[test]
fn frames_of_files_that_do_not_exist_are_counted_with_a_remedy() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let options = ["-O1", "-fno-omit-frame-pointer", "-Wl,--build-id"];
    let program = compiled_with(directory.path(), "gone", SPINS, &options);
    let copy = directory.path().join("copy");
    fs::copy(&program, &copy).unwrap();
    let recorded = ["--kernel", "none", "--syscalls", "none", "--stacks=waits=off"];
    let (output, trace) = record(directory.path(), &recorded, &[program.to_str().unwrap()]);
    succeeds(&output);
    assert!(profile(&trace)["missing_files"].is_null());
    fs::remove_file(&program).unwrap();
    let profile = profile(&trace);
    let missing = &profile["missing_files"][0];
    assert_eq!(missing["path"].as_str(), program.to_str(), "{missing}");
    assert!(missing["frames"].as_u64().unwrap() > 0);
    assert!(profile["changed_files"].is_null(), "{profile:#}");
    let shown = one_line(&text(&["stacks", &trace]));
    assert!(
        shown.contains("have no names: the file does not exist or cannot be read: restore it there (cp -p), or copy it to"),
        "{shown}"
    );
    // The remedy: the file by its build id.
    let (first, rest) = missing["build_id"].as_str().unwrap().split_at(2);
    let advice = format!("DIR/.build-id/{first}/{rest}.debug");
    assert!(shown.contains(&advice), "{shown}");
    let by_id = directory.path().join(advice.replacen("DIR", "debug", 1));
    fs::create_dir_all(by_id.parent().unwrap()).unwrap();
    fs::copy(&copy, &by_id).unwrap();
    let debug = directory.path().join("debug");
    let again = text(&["stacks", "--debug-dir", debug.to_str().unwrap(), &trace]);
    assert!(
        !again.contains("does not exist") && again.contains("main"),
        "{again}"
    );
}

/// A program that runs itself from memory.
const IN_MEMORY: &str = "
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <sys/mman.h>
    #include <sys/sendfile.h>
    #include <time.h>
    #include <unistd.h>
    extern char **environ;
    int main(int count, char **words)
    {
        volatile long sum = 0;
        if (count > 1) {
            int from = open(words[0], O_RDONLY), to = memfd_create(\"hidden\", 0);
            while (sendfile(to, from, 0, 1 << 20) > 0)
                ;
            char *again[] = {words[0], 0};
            return fexecve(to, again, environ);
        }
        while (clock() < CLOCKS_PER_SEC / 5)
            sum++;
        return 0;
    }
";

#[test]
fn frames_of_programs_in_memory_are_counted_with_a_remedy() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let options = ["-O1", "-static", "-Wl,--build-id"];
    let program = compiled_with(directory.path(), "program", IN_MEMORY, &options);
    let recorded = ["--kernel", "none", "--syscalls", "none", "--stacks=waits=off"];
    let (output, trace) = record(directory.path(), &recorded, &[program.to_str().unwrap(), "again"]);
    succeeds(&output);
    let shown = one_line(&text(&["stacks", &trace]));
    assert!(
        shown.contains(" in /memfd:hidden")
            && shown.contains(": a file in memory (memfd): copy it to DIR/.build-id/"),
        "{shown}"
    );
}

/// Paragraphs are broken between words.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
