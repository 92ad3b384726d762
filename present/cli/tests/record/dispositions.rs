//! A recorded command ignores and blocks the signals that the recorder was started to ignore and
//! block.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{compiled, recording_directory, succeeds};

/// Ignores and blocks exactly the signals of two hexadecimal masks, then executes a command. The
/// system calls are used directly to include the signals that the C library reserves (32, 33),
/// which the test process may have inherited ignored.
const STARTER: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
struct action { void *handler; unsigned long flags; void *restorer; unsigned long mask; };
int main(int count, char **words) {
    unsigned long ignored = strtoul(words[1], 0, 16), blocked = strtoul(words[2], 0, 16);
    for (int i = 1; i <= 64; i++) {
        struct action action = { ignored >> (i - 1) & 1 ? (void *)1 : 0 };
        syscall(SYS_rt_sigaction, i, &action, 0, 8);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, 0, 8);
    execvp(words[3], words + 3);
    return 127;
}
"#;

/// Lines on signals in the command's `/proc/self/status`.
fn signals(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    succeeds(&output);
    let status = String::from_utf8(output.stdout).unwrap();
    // Without the length of a queue (SigQ), which all processes of a user share.
    let names = ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"];
    let lines = status
        .lines()
        .filter(|line| names.iter().any(|name| line.starts_with(name)));
    lines.map(str::to_owned).collect()
}

const CAT: [&str; 2] = ["cat", "/proc/self/status"];

/// Masks of ignored and of blocked signals.
const MASKS: [[&str; 2]; 8] = [
    ["0", "0"],
    // SIGHUP: nohup.
    ["1", "0"],
    // SIGINT and SIGQUIT: a background command of a shell without job control.
    ["6", "0"],
    // SIGPIPE, SIGBUS.
    ["1040", "0"],
    ["180000000", "0"],
    ["8000000200010000", "0"],
    ["0", "8200014202"],
    ["fffffffffffbfeff", "0"],
];

fn starter(directory: &Path) -> impl Fn([&str; 2]) -> Command {
    let program = compiled(directory, "starter", STARTER);
    move |[ignored, blocked]| {
        let mut command = Command::new(&program);
        command.args([ignored, blocked]);
        command
    }
}

#[test]
fn a_command_begins_with_the_signals_of_its_recorder() {
    let directory = TempDir::new().unwrap();
    let starter = starter(directory.path());
    for masks in MASKS {
        let plain = signals(starter(masks).args(CAT));
        let mut record = starter(masks);
        record.arg(env!("CARGO_BIN_EXE_tracebraid"));
        record.args([
            "record",
            "-q",
            "--kernel",
            "none",
            "--syscalls",
            "none",
            "-o",
        ]);
        record
            .arg(directory.path().join("trace"))
            .arg("--")
            .args(CAT);
        assert_eq!(signals(&mut record), plain, "{masks:?}");
    }
}

#[test]
fn stacks_and_probes_leave_its_signals_alone() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let starter = starter(directory.path());
    let plain = signals(starter(MASKS[3]).args(CAT));
    let mut record = starter(MASKS[3]);
    record.arg(env!("CARGO_BIN_EXE_tracebraid"));
    record.args(["record", "-q", "--stacks", "-o"]);
    record
        .arg(directory.path().join("trace"))
        .arg("--")
        .args(CAT);
    assert_eq!(signals(&mut record), plain);
}
