//! Call stacks of programs without instrumentation, with both methods of finding waits.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use tracebraid_kernel_recorder::{Options, Recording, Stacks, missing_privileges};
use tracebraid_testkit::processes::cpu_time;
use tracebraid_testkit::skip::skipped;

/// Spends CPU time in one function and waits in another, 20 ms each, with frame pointers. Prints
/// its CPU time in microseconds after each round.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void waits_here(void) {
    struct timespec time = { 0, 20000000 };
    nanosleep(&time, 0);
}
static long used(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000000l + now.tv_nsec / 1000;
}
__attribute__((noinline)) void computes_here(void) {
    long begin = used();
    while (used() - begin < 20000) for (volatile int i = 0; i < 10000; i++);
}
int main(void) {
    for (;;) {
        waits_here();
        computes_here();
        printf("%ld\n", used());
        fflush(stdout);
    }
}
"#;

struct Running(Child);

impl Running {
    fn lines(&mut self) -> Lines<BufReader<ChildStdout>> {
        BufReader::new(self.0.stdout.take().expect("a pipe")).lines()
    }
}

/// CPU time of the program in microseconds at the end of its next round.
fn round(lines: &mut Lines<BufReader<ChildStdout>>) -> u64 {
    let line = lines.next().expect("the program continues").unwrap();
    line.parse().unwrap()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn build(directory: &Path) -> std::path::PathBuf {
    let (source, program) = (directory.join("p.c"), directory.join("sleeper"));
    std::fs::write(&source, PROGRAM).unwrap();
    let status = Command::new("cc")
        .args(["-O1", "-fno-omit-frame-pointer", "-o"])
        .args([&program, &source])
        .status();
    assert!(status.unwrap().success());
    program
}

/// Minimum number of complete rounds that are recorded.
const ROUNDS: usize = 12;

struct Recorded {
    /// The trace as printed text.
    text: String,
    /// CPU time of the program's complete rounds, in milliseconds.
    used_ms: usize,
    /// Duration of the recording, in milliseconds.
    passed_ms: usize,
}

/// Records some rounds of the program, however long they take.
fn recorded(resumes: bool) -> Option<Recorded> {
    let missing = missing_privileges();
    if !missing.is_empty() {
        skipped(format_args!(
            "recording the kernel needs {}",
            missing.join(" and ")
        ));
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(build(directory.path()));
    let mut program = Running(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let options = Options {
        groups: Vec::new(),
        processes: Some(vec![program.0.id()]),
        stacks: Some(Stacks {
            resumes,
            ..Stacks::default()
        }),
        state_dump: false,
        ..Options::default()
    };
    let trace = directory.path().join("trace");
    let mut lines = program.lines();
    let begun = Instant::now();
    let recording = Recording::start(options, &trace).unwrap();
    // Rounds that ended earlier are in the pipe, too.
    let since = cpu_time(program.0.id())
        .expect("the program runs")
        .as_micros() as u64;
    let first = std::iter::repeat_with(|| round(&mut lines)).find(|&used| used > since);
    let first = first.expect("the program continues");
    let last = (0..ROUNDS).map(|_| round(&mut lines)).last();
    let summary = recording.stop().unwrap();
    let passed_ms = begun.elapsed().as_millis() as usize;
    assert_eq!(summary.total.lost, 0);
    let text = Command::new("babeltrace2").arg(&trace).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&text.stderr), "");
    Some(Recorded {
        text: String::from_utf8(text.stdout).unwrap(),
        used_ms: (last.expect("a round") - first) as usize / 1000,
        passed_ms,
    })
}

fn check(recorded: &Recorded) {
    let text = &recorded.text;
    let lines = |name: &str| {
        text.lines()
            .filter(|line| line.contains(name))
            .collect::<Vec<_>>()
    };
    let waits = lines(" tracebraid_syscall_stack:");
    // One wait in each round, except rounds whose timer expired before the program could wait
    // because another process ran. A round has at least 20 ms of waiting.
    let most = recorded.passed_ms / 20 + 1;
    assert!(
        (ROUNDS - 2..=most).contains(&waits.len()),
        "{} waits",
        waits.len()
    );
    let mut functions = Vec::new();
    for wait in &waits {
        let number = |name: &str| field(wait, name).parse::<u64>().unwrap();
        // The wait begins when the program leaves its CPU; the timer starts earlier, so the wait
        // can be shorter than 20 ms.
        let most = recorded.passed_ms as u64 * 1_000_000;
        assert!((100_000..most).contains(&number("wait_ns")), "{wait}");
        assert!(
            [35, 230].contains(&number("syscall")),
            "nanosleep or clock_nanosleep: {wait}"
        );
        assert!(number("_callstack_kernel_length") >= 4, "{wait}");
        functions.push(wait.split("callstack_user").nth(1));
    }
    // The call sites are always the same, up to the first function.
    functions.dedup();
    assert_eq!(functions.len(), 1);
    let stacks = [waits, lines(" tracebraid_cpu_stack:")].concat();
    let broken: Vec<&&str> = stacks
        .iter()
        .filter(|line| field(line, "status") != "0")
        .collect();
    assert!(
        broken.is_empty(),
        "{} of {}: {broken:#?}",
        broken.len(),
        stacks.len()
    );
    let names = lines(" tracebraid_kernel_symbol:").join("\n");
    assert!(names.contains("nanosleep\""), "{names}");
    let samples = lines(" tracebraid_cpu_stack:").len();
    // One sample for each millisecond of CPU time; a CPU has no more samples than elapsed
    // milliseconds.
    let expected = recorded.used_ms / 2..=recorded.passed_ms + 2;
    assert!(
        expected.contains(&samples),
        "{samples} samples, not {expected:?}"
    );
    assert!(
        lines(" tracebraid_map_load:")
            .iter()
            .any(|line| line.contains("/sleeper\""))
    );
}

/// The text after `name = ` up to a comma.
fn field<'t>(line: &'t str, name: &str) -> &'t str {
    let (_, rest) = line.split_once(&format!(" {name} = ")).unwrap_or_default();
    rest.split([',', ' ']).next().unwrap_or_default()
}

#[test]
fn waits_are_found_where_a_thread_resumes() {
    if let Some(recorded) = recorded(true) {
        check(&recorded);
    }
}

#[test]
fn waits_are_found_by_kernels_that_cannot_resume() {
    if let Some(recorded) = recorded(false) {
        check(&recorded);
    }
}
