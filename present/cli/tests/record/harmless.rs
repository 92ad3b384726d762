//! Recorded programs behave as without the recorder: same exit, same output, and no unexpected
//! signals.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::record;
use crate::support::{can_record_kernel, compiled_with, skipped};

/// Number of children of each kind; there are eleven kinds.
const ROUNDS: &str = "910";

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    user == b"0\n"
}

#[test]
fn ten_thousand_delicate_programs_end_as_ever() {
    if !can_record_kernel() {
        return;
    }
    if !is_root() {
        return skipped("only root can change the root and the user");
    }
    let directory = TempDir::new().unwrap();
    // Children that drop root privileges must be able to read it.
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/delicate.c");
    let source = fs::read_to_string(source).unwrap();
    let program = compiled_with(directory.path(), "delicate", &source, &[]);
    // Another root directory that contains only the program and none of the recorder's libraries.
    let root = directory.path().join("root");
    fs::create_dir(&root).unwrap();
    let inside = compiled_with(directory.path(), "static", &source, &["-static"]);
    fs::copy(&inside, root.join("delicate")).unwrap();
    let command = [
        program.to_str().unwrap(),
        program.to_str().unwrap(),
        root.to_str().unwrap(),
    ];
    let alone = Command::new(command[0])
        .args(&command[1..])
        .arg("5")
        .output()
        .unwrap();
    let expected = String::from_utf8(alone.stdout)
        .unwrap()
        .replace(" x 5", &format!(" x {ROUNDS}"));
    assert_eq!(
        (alone.status.code(), expected.lines().count()),
        (Some(7), 11),
        "{expected}"
    );
    let options = [
        "--quiet",
        "--stacks=period_us=100,threshold_us=0",
        "--kernel",
        "sched",
        "--syscalls",
        "none",
    ];
    let (output, _) = record(
        directory.path(),
        &options,
        &[&command[..], &[ROUNDS]].concat(),
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(7));
}

/// The recorder's mapping events must not change the records that perf receives: perf aborted at
/// records that were marked as having build ids.
#[test]
fn perf_records_beside_stacks() {
    if !can_record_kernel() {
        return;
    }
    if Command::new("perf").arg("version").output().is_err() {
        return skipped("perf is not installed (Debian: linux-perf)");
    }
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("perf.data").display().to_string();
    let perf = [
        "perf",
        "record",
        "-q",
        "-e",
        "task-clock",
        "-o",
        &data,
        "--",
    ];
    let shell = ["sh", "-c", "/bin/true; exit 3"];
    let (output, _) = record(
        directory.path(),
        &["--quiet", "--stacks"],
        &[&perf[..], &shell].concat(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(!said.contains("assertion"), "{said}");
}
