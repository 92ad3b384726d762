//! Call stacks of commands, of running programs, and of the whole system.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::recorded_stacks::{ONLY_STACKS, error, events, of, profile, record, samples_in};
use crate::support::{can_record_kernel, compiled_with, skipped, succeeds, text, tracebraid};
use serde_json::Value;
use tempfile::TempDir;
use tracebraid_testkit::processes::cpu_time;

/// The program with known call chains.
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

/// Stacks of `chains` in a trace, as `print` shows them, without those taken before the process has
/// become the program.
fn stacks_of_chains(trace: &str) -> Vec<String> {
    let all =
        ["tracebraid_cpu_stack", "tracebraid_syscall_stack"].map(|class| events(trace, class));
    let is_it =
        |line: &String| line.contains("comm = \"chains\"") && !line.contains("syscall = 59,");
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
    let plugin = compiled_with(
        directory.path(),
        "plugin.so",
        &source,
        &["-shared", "-fPIC"],
    );
    let begin = "_start;__libc_start_main_impl;__libc_start_call_main;main;";
    let deep = format!("{begin}{}leaf;burn", "recurse;".repeat(29));
    // Functions of the C library differ between its versions.
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
        let samples: u64 = samples
            .map(|(_, count)| count.parse::<u64>().unwrap())
            .sum();
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
        let (output, trace) = record(
            run.path(),
            &[&ONLY_STACKS[..4], &[options]].concat(),
            &command,
        );
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
    // No wait occurs if another thread runs before this one can leave its CPU, and the timer
    // expires in the meantime. On a busy machine any wait may be missed, but none is missed every
    // time.
    let mut missing: BTreeSet<&str> = WAITS.map(|(name, _)| name).into();
    for _ in 0..10 {
        let run = TempDir::new().unwrap();
        let (output, trace) = record(run.path(), &options, &[program.to_str().unwrap(), "waits"]);
        // The output contains each call that was interrupted.
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

/// Uses the CPU in one function, and waits in another one that is not the last before the C
/// library. Prints its CPU time in microseconds after each round.
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

/// A program that is killed on drop.
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
        let line = self
            .lines
            .next()
            .expect("the program prints lines")
            .unwrap();
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

/// Minimum number of rounds that are recorded completely.
const ROUNDS: u64 = 12;

/// A recording with these options contains the program's functions and the kernel's, for several
/// rounds of the program, however long these take.
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
    let only_stacks = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--stacks",
        "-o",
        &trace,
    ];
    // When `start` returns, recording has begun.
    session(
        &[&["start", "stacks"][..], &only_stacks].concat(),
        &options(process),
    );
    // The pipe also contains rounds that ended earlier.
    let since = cpu_time(process).expect("the process runs").as_micros() as u64;
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
    // One sample per millisecond of CPU time.
    assert!(burnt >= used_ms / 2, "{burnt} of {used_ms}: {profile:#}");
    // A few stacks are broken.
    let below_main = of(&profile, "main", "total", "cpu_samples");
    assert!(
        below_main * 100 >= burnt * 98,
        "{below_main} of {burnt}: {profile:#}"
    );
    // Except where another thread ran before the program could wait, and its timer expired then.
    assert!(
        of(&profile, "rest", "total", "waits") >= ROUNDS - 2,
        "{profile:#}"
    );
    let functions = profile["functions"].as_array().unwrap();
    let in_kernel = |row: &&Value| row["name"].as_str().unwrap().ends_with("nanosleep_[k]");
    let slept = functions.iter().filter(in_kernel).map(|row| &row["total"]);
    let slept = slept.max_by_key(|total| total["wait_ns"].as_u64());
    // At least as long as it sleeps once.
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
    // Old mappings are recorded again.
    sees_plain(|_| {
        ["--system", "--snapshot", "--max-size", "32M"]
            .map(str::to_owned)
            .to_vec()
    });
}

/// A server that starts as root, with workers of another user.
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
        skipped("only root can become another user");
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
    let ours = processes
        .iter()
        .filter(|process| process["name"] == "drops");
    assert_eq!(ours.count(), 2, "{profile:#}");
    // Milliseconds of CPU time that each worker has used in its function and the functions that it
    // calls. Which part of that is spent in the vDSO depends on the processor. There is one sample
    // per millisecond, except for some that fall into signal handlers. More samples are possible,
    // because the clock of samples goes on while the host takes the CPU from a virtual machine.
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
fn tables_state_which_waits_are_left_out() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let recordings = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let source = "#include <unistd.h>\nint main(void) { for (int i = 0; i < 9; i++) usleep(2000 << i % 3); }";
    let program = compiled_with(directory.path(), "short-waits", source, &["-O0"]);
    let with = |recording: &TempDir, threshold: &str| {
        let options = format!("--stacks=threshold_us={threshold}");
        let program = program.to_str().unwrap();
        let (output, trace) = record(recording.path(), &[&options], &[program]);
        assert!(output.status.success(), "{}", error(&output));
        let selection = ["stacks", "--procname", "short-waits", &trace];
        let found = text(&[&selection[..], &["--format", "json"]].concat());
        let found: Value = serde_json::from_str(&found).unwrap();
        (text(&selection), found)
    };
    let sleeps = |found: &Value| {
        let stacks = found["stacks"].as_array().unwrap().iter();
        let sleeps = stacks.filter(|stack| stack["functions"].to_string().contains("nanosleep"));
        sleeps
            .map(|stack| stack["waits"].as_u64().unwrap())
            .sum::<u64>()
    };
    // Three waits each of 2, 4 and 8 ms.
    let (tables, found) = with(&recordings[0], "7000");
    assert!(
        tables.contains("waits shorter than 7.000 ms have no stack"),
        "{tables}"
    );
    assert_eq!(found["threshold_ns"], 7_000_000);
    assert!((3..9).contains(&sleeps(&found)), "{found:#}");
    let (tables, found) = with(&recordings[1], "0");
    assert!(!tables.contains("have no stack"), "{tables}");
    assert_eq!(sleeps(&found), 9, "{found:#}");
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
    // Kernel events alone are no call stacks either.
    if can_record_kernel() {
        let directory = TempDir::new().unwrap();
        let (_, trace) = record(directory.path(), &[], &["true"]);
        let (code, said) = crate::support::failure(&["stacks", &trace]);
        assert!(
            code == 3 && said.contains("record them with"),
            "{code}: {said}"
        );
    }
}
