//! The makefile and its scripts find the binaries of cargo in any target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{skipped, succeeds};
use tempfile::TempDir;

fn repository() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    path.canonicalize().expect("the repository")
}

/// A command in the repository; builds go to `target` if it is given.
fn command(program: &str, target: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repository());
    // Variables set by the cargo that runs this test, and by the make that may run cargo.
    for name in [
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET_DIR",
        "MAKEFLAGS",
        "MAKELEVEL",
        "CARGO",
    ] {
        command.env_remove(name);
    }
    command.envs(target.map(|target| ("CARGO_TARGET_DIR", target)));
    command
}

#[test]
fn the_directory_of_builds_is_cargo_s() {
    let told = |target: Option<&Path>| {
        let output = command("scripts/target", target)
            .output()
            .expect("bash runs");
        PathBuf::from(succeeds(&output).trim_end())
    };
    assert_eq!(
        told(Some(Path::new("/some/where"))),
        Path::new("/some/where")
    );
    assert_eq!(told(Some(Path::new("built"))), repository().join("built"));
    assert!(told(None).is_absolute());
    // A setting that only cargo knows.
    let mut configured = command("scripts/target", None);
    configured.env("CARGO_BUILD_TARGET_DIR", "/some/place");
    let output = configured.output().expect("bash runs");
    assert_eq!(succeeds(&output), "/some/place\n");
}

#[test]
fn make_uses_the_directory_of_builds() {
    let directory = TempDir::new().expect("a temporary directory");
    for (goal, expected) in [
        ("demo", "scripts/demo TARGET/release/tracebraid"),
        ("install", "scripts/install TARGET/release"),
        ("screenshots", "take.py TARGET/release/tracebraid"),
    ] {
        let make = command("make", Some(directory.path()))
            .args(["-n", goal])
            .output();
        let Ok(output) = make else {
            return skipped("there is no make");
        };
        let said = succeeds(&output);
        let expected = expected.replace("TARGET", directory.path().to_str().expect("UTF-8"));
        assert!(said.contains(&expected), "{goal}: {said}");
        assert!(!said.contains(" target/"), "{goal}: {said}");
    }
}

#[test]
fn what_is_not_there_is_not_installed() {
    let directory = TempDir::new().expect("a temporary directory");
    let [built, prefix] = ["built", "prefix"].map(|name| directory.path().join(name));
    let mut install = command("scripts/install", None);
    let output = install
        .arg(&built)
        .arg(&prefix)
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("make install BUILT=DIR"), "{said}");
    assert!(!prefix.exists());
}
