//! `history` as users call it, on a recorded trace.
#![allow(missing_docs)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use support::{failure, recorded_trace, text, tracebraid};
use tempfile::TempDir;

/// The history of a trace, in a directory of its own.
struct Built {
    directory: TempDir,
    file: String,
}

fn built(trace: &str) -> Built {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history").display().to_string();
    let said = text(&["history", "build", &recorded_trace(trace), "-o", &file]);
    assert!(said.contains("% of"), "{said}");
    Built { directory, file }
}

fn query(built: &Built, arguments: &[&str]) -> String {
    text(&[&["history", "query", &built.file, "--gmt"], arguments].concat())
}

fn json(built: &Built, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--format", "json"]].concat();
    serde_json::from_str(&query(built, &arguments)).unwrap()
}

#[test]
fn tables() {
    let built = built("kernel-mix-small");
    let moment = query(&built, &["--at", "+1.2s", "cpu/*", "disk/*", "thread/1/*"]);
    insta::assert_snapshot!("history-at", moment);
    let changes = query(
        &built,
        &[
            "cpu/0/state",
            "cpu/0/thread",
            "--from",
            "+1.2s",
            "--to",
            "+1.2005s",
        ],
    );
    insta::assert_snapshot!("history-changes", changes);
    insta::assert_snapshot!(
        "history-first",
        query(&built, &["disk/*/depth", "--first", "> 1"])
    );
    insta::assert_snapshot!(
        "history-samples",
        query(&built, &["cpu/*/state", "--samples", "3", "--format", "csv"])
    );
    assert_eq!(
        query(&built, &["--at", "+1s", "thread/77777/*"]),
        "Nothing of that is known.\n"
    );
}

#[test]
fn each_way_to_ask_says_the_same() {
    let built = built("kernel-mix-small");
    let rows = json(&built, &["cpu/1/thread", "--from", "+1s", "--to", "+1.1s"]);
    let rows = rows["rows"].as_array().unwrap();
    assert!(rows.len() > 10);
    for pair in rows.windows(2) {
        let time = |row: &Value| format!("{}ns", row["time_ns"]);
        let next = json(&built, &["cpu/1/thread", "--next", &time(&pair[0])]);
        assert_eq!(next["rows"][0], pair[1]);
        let at = json(&built, &["cpu/1/thread", "--at", &time(&pair[1])]);
        assert_eq!(at["rows"][0]["value"], pair[1]["value"]);
        let condition = format!("== {}", pair[1]["value"]);
        let first = json(
            &built,
            &["cpu/1/thread", "--first", &condition, "--from", &time(&pair[1])],
        );
        assert_eq!(first["rows"][0], pair[1]);
    }
}

#[test]
fn machines_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history").display().to_string();
    let hosts = support::recorded("twohost");
    let hosts = ["twohost-client", "twohost-server"].map(|host| hosts.join(host).display().to_string());
    text(&["history", "build", &hosts[0], &hosts[1], "-o", &file]);
    let at = text(&["history", "query", &file, "--at", "+30s", "*/cpu/0/thread"]);
    assert!(
        at.contains("cli/cpu/0/thread") && at.contains("srv/cpu/0/thread"),
        "{at}"
    );
    let one = text(&["history", "query", &file, "--next", "+30s", "srv/cpu/1/thread"]);
    assert_eq!(one.matches("srv/cpu/1/thread").count(), 1, "{one}");
}

#[test]
fn failures_name_what_to_do() {
    let built = built("kernel-discarded");
    let path = |name: &str| built.directory.path().join(name).display().to_string();
    let is = |arguments: &[&str], code, what: &str| {
        let (found, said) = failure(arguments);
        assert!(
            found == code && said.contains(what),
            "{arguments:?}: {found}, {said}"
        );
    };
    is(
        &["history", "query", &built.file, "cpu/0/nothing"],
        2,
        "no attribute has that path",
    );
    is(&["history", "query", &built.file], 2, "which attributes?");
    is(
        &[
            "history",
            "query",
            &built.file,
            "cpu/0/state",
            "--first",
            "> idle",
        ],
        2,
        "for numbers",
    );
    is(
        &["history", "query", &path("nothing"), "--at", "+1s"],
        3,
        "No such file",
    );
    let ust = recorded_trace("ust-cyg-profile");
    is(
        &["history", "build", &ust, "-o", &path("none")],
        3,
        "sched_switch",
    );
    is(
        &[
            "history",
            "build",
            &recorded_trace("kernel-discarded"),
            "-o",
            &path("no/where"),
        ],
        1,
        "no/where",
    );

    let mut bytes = fs::read(&built.file).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    fs::write(&built.file, &bytes).unwrap();
    is(&["history", "info", "--verify", &built.file], 3, "build it again");
    bytes.truncate(middle);
    fs::write(&built.file, &bytes).unwrap();
    is(
        &["history", "query", &built.file, "--at", "+1s"],
        3,
        "build it again",
    );
    fs::write(
        &built.file,
        "something else, and much longer than the head of a history is, so that it is read",
    )
    .unwrap();
    is(
        &["history", "query", &built.file, "--at", "+1s"],
        3,
        "is no history",
    );
    text(&[
        "history",
        "build",
        &recorded_trace("kernel-discarded"),
        "-o",
        &built.file,
    ]);
    assert!(text(&["history", "info", "--verify", &built.file]).contains("whole"));
    let left: Vec<PathBuf> = fs::read_dir(built.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, [PathBuf::from(&built.file)]);
}

#[test]
fn interrupted_builds_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history");
    let mut command = tracebraid();
    command.args(["history", "build", "-j", "1", "--chunk-size", "4K"]);
    command
        .arg(recorded_trace("kernel-ust-requests"))
        .arg("-o")
        .arg(&file);
    let mut child = command.spawn().unwrap();
    let part = directory.path().join("history.part");
    while !part.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success() || file.exists());
    let status = child.wait().unwrap();
    if status.code() == Some(130) {
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    } else {
        assert!(status.success() && file.exists(), "{status}");
    }
}
