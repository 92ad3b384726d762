//! Descendants of the processes of `--pid` that exist when the recording begins.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tracebraid_testkit::processes::until;

use crate::support::{compiled, recording_directory, text, tracebraid};

/// A server with two workers, which call `getppid` every 2 ms; one worker has a child that does the
/// same. All processes end with the server's standard input.
const SERVER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
static void works(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) { getppid(); usleep(2000); }
}
int main(void) {
    char byte;
    for (int i = 0; i < 2; i++)
        if (!fork()) {
            if (i == 0 && !fork()) works();
            puts("ready");
            fflush(stdout);
            works();
        }
    while (read(0, &byte, 1) > 0);
    return 0;
}
"#;

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The server and the ids of its three descendants.
fn server(directory: &Path) -> (Running, Vec<u32>) {
    let program = compiled(directory, "server", SERVER);
    let mut command = Command::new(program);
    let server = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let server = Running(server);
    let mut found = Vec::new();
    until("the server has its workers", || {
        found = children(server.0.id());
        found.extend(found.clone().into_iter().flat_map(children));
        found.len() == 3
    });
    (server, found)
}

fn recorded(server: &Running, options: &[&str], trace: &Path) -> Output {
    let mut record = tracebraid();
    record.args([
        "record",
        "--kernel",
        "none",
        "--syscalls",
        "getppid",
        "--no-state-dump",
    ]);
    record.args([
        "--context",
        "pid",
        "--duration",
        "500ms",
        "--pid",
        &server.0.id().to_string(),
    ]);
    record.args(options).arg("-o").arg(trace).output().unwrap()
}

/// The processes that made calls in the trace.
fn callers(trace: &Path, all: &[u32]) -> Vec<u32> {
    let printed = text(&[
        "print",
        "--name",
        "syscall_entry_getppid",
        trace.to_str().unwrap(),
    ]);
    let made = |pid: &u32| {
        printed.contains(&format!("pid = {pid} ")) || printed.contains(&format!("pid = {pid},"))
    };
    all.iter().copied().filter(made).collect()
}

#[test]
fn descendants_that_run_already_are_recorded_if_they_are_wanted() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (server, descendants) = server(directory.path());
    let trace = directory.path().join("without");
    let output = recorded(&server, &[], &trace);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let warning = "warning: 3 existing descendants of the processes of --pid are not recorded: add --descendants";
    assert!(said.contains(warning), "{said}");
    assert_eq!(callers(&trace, &descendants), [0; 0]);
    // The remedy works.
    let trace = directory.path().join("with");
    let output = recorded(&server, &["--descendants"], &trace);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && !said.contains("warning"),
        "{said}"
    );
    assert_eq!(callers(&trace, &descendants), descendants);
}

#[test]
fn descendants_without_processes_are_refused() {
    let output = tracebraid()
        .args(["record", "--descendants", "--", "true"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && said.contains("--pid"),
        "{said}"
    );
}
