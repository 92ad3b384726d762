//! The library in all programs of a machine: `/etc/ld.so.preload`, in a mount namespace.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::counted::{built, directory, run};
use crate::support::{libraries, skipped, text};

/// A command in a namespace whose `/etc` is another directory. Nothing is written to that of the
/// machine.
fn with_etc(etc: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.args(["mount --bind \"$0\" /etc && exec \"$@\""]);
    command.arg(etc).args(words);
    command.env("POCL_CACHE_DIR", directory().expect("OpenCL is installed"));
    command
}

/// A copy of `/etc` that preloads the library; `None`, with a message, where this is impossible.
fn etc() -> Option<TempDir> {
    let copy = TempDir::new().expect("a temporary directory");
    let copied = Command::new("cp")
        .args(["-a", "/etc/.", "."])
        .current_dir(copy.path())
        .output();
    let is_copied = copied.is_ok_and(|output| output.status.success());
    let library = libraries().join("libtracebraid_gpu.so");
    fs::write(
        copy.path().join("ld.so.preload"),
        library.to_str().expect("UTF-8"),
    )
    .expect("a file");
    let mounted = with_etc(
        copy.path(),
        &["grep", "-q", "tracebraid_gpu", "/proc/self/maps"],
    )
    .output();
    if !is_copied || !mounted.is_ok_and(|output| output.status.success()) {
        skipped(format_args!("/etc cannot be mounted here: needs root"));
        return None;
    }
    Some(copy)
}

#[test]
fn programs_of_a_whole_machine_are_recorded_from_when_a_session_wants_it() {
    let Some(program) = built("lives") else {
        return;
    };
    let Some(etc) = etc() else { return };
    let path = program.to_str().expect("UTF-8");
    // Without a session.
    let counts = etc.path().join("counts");
    let words = [path, "threads", counts.to_str().expect("UTF-8")];
    let output = with_etc(etc.path(), &words)
        .output()
        .expect("the program runs");
    let plain = run(&program, &["threads"], None, &[]);
    assert_eq!(output.stdout, plain.output.stdout, "{output:?}");
    // With one that switches classes on later.
    let session = TempDir::new().expect("a temporary directory");
    fs::write(session.path().join("probe.conf"), "disable = *\n").expect("a file");
    let mut command = with_etc(etc.path(), &[path, "until", "/dev/null"]);
    command.env("TRACEBRAID_SESSION", session.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.spawn().expect("the program runs");
    sleep(Duration::from_millis(300));
    let session = session.path().to_str().expect("UTF-8");
    let classes = [
        "--enable",
        "lttng_ust_opencl*",
        "--enable",
        "tracebraid_opencl:*",
    ];
    text(&[&["probes", session], &classes[..]].concat());
    sleep(Duration::from_millis(300));
    drop(program.stdin.take());
    let output = program.wait_with_output().expect("the program ends");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let commands: usize = said.trim().parse().expect("a number of commands");
    let printed = text(&["print", session]);
    let count = |name: &str| printed.lines().filter(|line| line.contains(name)).count();
    let calls = count("clEnqueueMarkerWithWaitList_exit:");
    assert!(calls > 0 && calls < commands, "{calls} of {commands}");
    let results = count("event_profiling_results:");
    assert!(results.abs_diff(calls) <= 1, "{results} of {calls}");
}
