//! Call stacks of programs that know nothing of it, with both ways of finding waits.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tracebraid_kernel_recorder::{Options, Recording, Stacks, missing_privileges};
use tracebraid_testkit::skip::skipped;

/// Spends its time in one function, waits in another, 20 ms each, with frame pointers.
const PROGRAM: &str = r#"
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void waits_here(void) {
    struct timespec time = { 0, 20000000 };
    nanosleep(&time, 0);
}
__attribute__((noinline)) void computes_here(void) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000l + now.tv_nsec - begin.tv_nsec < 20000000);
}
int main(void) { for (;;) { waits_here(); computes_here(); } }
"#;

struct Running(Child);

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

/// Records for half a second; gives the text of the trace.
fn recorded(resumes: bool) -> Option<String> {
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
    let program = Running(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let options = Options {
        groups: Vec::new(),
        processes: Some(vec![program.0.id()]),
        stacks: Some(Stacks {
            takes_stacks: true,
            resumes,
            ..Stacks::default()
        }),
        state_dump: false,
        ..Options::default()
    };
    let trace = directory.path().join("trace");
    let recording = Recording::start(options, &trace).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let summary = recording.stop().unwrap();
    assert_eq!(summary.total.lost, 0);
    let text = Command::new("babeltrace2").arg(&trace).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&text.stderr), "");
    Some(String::from_utf8(text.stdout).unwrap())
}

fn check(text: &str) {
    let lines = |name: &str| {
        text.lines()
            .filter(|line| line.contains(name))
            .collect::<Vec<_>>()
    };
    let waits = lines(" tracebraid_syscall_stack:");
    // 20 ms of waiting, 20 ms of computing; other load makes both longer.
    assert!((4..=13).contains(&waits.len()), "{} waits", waits.len());
    let mut functions = Vec::new();
    for wait in &waits {
        let number = |name: &str| field(wait, name).parse::<u64>().unwrap();
        // It waits from when it leaves its CPU on; the timer runs before that, longer if something comes in between.
        assert!((10_000_000..500_000_000).contains(&number("wait_ns")), "{wait}");
        assert!(
            [35, 230].contains(&number("syscall")),
            "nanosleep or clock_nanosleep: {wait}"
        );
        assert!(number("_callstack_kernel_length") >= 4, "{wait}");
        functions.push(wait.split("callstack_user").nth(1));
    }
    // Always the same place.
    functions.dedup();
    assert_eq!(functions.len(), 1);
    let names = lines(" tracebraid_kernel_symbol:").join("\n");
    assert!(names.contains("nanosleep\""), "{names}");
    let samples = lines(" tracebraid_cpu_stack:").len();
    assert!((60..=600).contains(&samples), "{samples} samples");
    assert!(
        lines(" tracebraid_map_load:")
            .iter()
            .any(|line| line.contains("/sleeper\""))
    );
}

/// The text behind `name = ` up to a comma.
fn field<'t>(line: &'t str, name: &str) -> &'t str {
    let (_, rest) = line.split_once(&format!(" {name} = ")).unwrap_or_default();
    rest.split([',', ' ']).next().unwrap_or_default()
}

#[test]
fn waits_are_found_where_a_thread_resumes() {
    if let Some(text) = recorded(true) {
        check(&text);
    }
}

#[test]
fn waits_are_found_by_kernels_that_cannot_resume() {
    if let Some(text) = recorded(false) {
        check(&text);
    }
}
