//! `history` as users call it, on a recorded trace.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::{failure, recorded, recorded_trace, run, text, tracebraid};
use serde_json::Value;
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
            "+500us",
        ],
    );
    insta::assert_snapshot!("history-changes", changes);
    insta::assert_snapshot!(
        "history-first",
        query(&built, &["disk/*/depth", "--first", "> 1"])
    );
    insta::assert_snapshot!(
        "history-samples",
        query(
            &built,
            &["cpu/*/state", "--samples", "3", "--format", "csv"]
        )
    );
    assert_eq!(
        query(&built, &["--at", "+1s", "thread/77777/*"]),
        "No values at this time.\n"
    );
    let never = run(&[
        "history",
        "query",
        &built.file,
        "disk/*/depth",
        "--first",
        "> 100000",
    ]);
    let [text, said] = [never.stdout, never.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(text, "The condition never holds in this time range.\n");
    assert!(
        said.contains("--first > 100000 never holds in the range: disk/"),
        "{said}"
    );
}

#[test]
fn each_way_to_ask_says_the_same() {
    let built = built("kernel-mix-small");
    let rows = json(&built, &["cpu/1/thread", "--from", "+1s", "--to", "+100ms"]);
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
            &[
                "cpu/1/thread",
                "--first",
                &condition,
                "--from",
                &time(&pair[1]),
            ],
        );
        assert_eq!(first["rows"][0], pair[1]);
    }
}

#[test]
fn machines_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history").display().to_string();
    let hosts = recorded("twohost");
    let hosts =
        ["twohost-client", "twohost-server"].map(|host| hosts.join(host).display().to_string());
    text(&["history", "build", &hosts[0], &hosts[1], "-o", &file]);
    let at = text(&["history", "query", &file, "--at", "+30s", "*/cpu/0/thread"]);
    assert!(
        at.contains("cli/cpu/0/thread") && at.contains("srv/cpu/0/thread"),
        "{at}"
    );
    let one = text(&[
        "history",
        "query",
        &file,
        "--next",
        "+30s",
        "srv/cpu/1/thread",
    ]);
    assert_eq!(one.matches("srv/cpu/1/thread").count(), 1, "{one}");
}

/// Two recordings of one host are distinguished by names with a slash. One ends minutes before the
/// other.
#[test]
fn machines_of_one_name_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history").display().to_string();
    let [one, other] = ["kernel-mix-small", "kernel-ust-requests"].map(recorded_trace);
    text(&["history", "build", &one, &other, "-o", &file]);
    let path = "vm1/kernel-ust-requests/cpu/0/thread";
    let query = |more: &[&str]| text(&[&["history", "query", &file, path], more].concat());
    assert!(query(&["--first", "== 0"]).contains(path));
    let end = query(&["--previous", "+525s"]);
    assert!(end.contains(" -"), "nothing is known after its end: {end}");
    let report = text(&["history", "report", &file, path, "--format", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let values = report["attributes"][0]["values"].as_array().unwrap();
    let known: u64 = values
        .iter()
        .map(|value| value["total_ns"].as_u64().unwrap())
        .sum();
    let cpu: Value = serde_json::from_str(&text(&["cpu", &other, "--format", "json"])).unwrap();
    let length = cpu["duration_ns"].as_u64().unwrap();
    assert!(known > 0 && known <= length, "{known} of {length}");
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
    is(&["history", "query", &built.file], 2, "no attributes given");
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
        "compare numbers",
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
    is(
        &["history", "info", "--verify", &built.file],
        3,
        "rebuild it",
    );
    // Without its description, the trace of the history is unknown.
    bytes.truncate(100);
    fs::write(&built.file, &bytes).unwrap();
    is(
        &["history", "query", &built.file, "--at", "+1s"],
        3,
        "rebuild it",
    );
    fs::write(
        &built.file,
        "another file, and much longer than the header of a history, so that it is read",
    )
    .unwrap();
    is(
        &["history", "query", &built.file, "--at", "+1s"],
        3,
        "is not a history",
    );
    is(
        &[
            "history",
            "build",
            &recorded_trace("kernel-discarded"),
            "-o",
            &built.file,
        ],
        2,
        "refusing to overwrite a text file with a history: choose another name",
    );
    fs::write(&built.file, bytes).unwrap();
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
    let has_begun = || fs::read_dir(directory.path()).unwrap().next().is_some();
    while !has_begun() && child.try_wait().unwrap().is_none() {
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

#[test]
fn answers_are_written_for_other_tools() {
    let built = built("kernel-mix-small");
    let file = built.directory.path().join("states.arrow");
    let arguments = [
        "thread/*/state",
        "--format",
        "arrow",
        "-o",
        file.to_str().unwrap(),
    ];
    assert_eq!(query(&built, &arguments), "");
    let bytes = fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"ARROW1") && bytes.ends_with(b"ARROW1"));
    // The output is the same through a pipe.
    let output = tracebraid()
        .args([
            "history",
            "query",
            &built.file,
            "thread/*/state",
            "--format",
            "arrow",
        ])
        .output()
        .unwrap();
    assert_eq!(output.stdout, bytes);
    let (code, said) = failure(&[
        "history",
        "query",
        &built.file,
        "--at",
        "+1s",
        "-o",
        "/nowhere/at/all",
    ]);
    assert!(
        code == 1 && said.contains("/nowhere/at/all"),
        "{code}: {said}"
    );
    let left = fs::read_dir(built.directory.path()).unwrap().count();
    assert_eq!(left, 2, "the history and the answer");
}

#[test]
fn descriptors_are_followed_if_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history").display().to_string();
    text(&[
        "history",
        "build",
        "--files",
        &recorded_trace("kernel-mix-small"),
        "-o",
        &file,
    ]);
    let ask = |attribute: &str| {
        let arguments = [
            "history", "query", &file, "--at", "+1.5s", "--format", "json", attribute,
        ];
        let answer: Value = serde_json::from_str(&text(&arguments)).unwrap();
        answer["rows"].as_array().unwrap().clone()
    };
    let names = ask("file/*/name");
    assert!(
        names
            .iter()
            .any(|row| row["value"].as_str().unwrap().starts_with('/')),
        "{names:?}"
    );
    assert!(
        ask("file/*/read")
            .iter()
            .any(|row| row["value"].as_u64().unwrap() > 0)
    );
    assert!(text(&["history", "append", &file]).contains("nothing is new"));
}

#[test]
fn what_cannot_be_known_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history").display().to_string();
    text(&[
        "history",
        "build",
        &recorded_trace("kernel-mix-small"),
        "-o",
        &file,
    ]);
    let (code, said) = failure(&["history", "query", &file, "cpu/0/state", "--at", "+99s"]);
    assert_eq!(code, 2);
    assert!(said.contains("after the end of the trace"), "{said}");
    let (code, _) = failure(&["history", "report", &file, "cpu/0/state", "--from", "+5s"]);
    assert_eq!(code, 2);
    // Changes up to the end, and none after it.
    let up_to = |to: &str| {
        text(&[
            "history",
            "report",
            &file,
            "cpu/0/state",
            "--from",
            "+1s",
            "--to",
            to,
        ])
    };
    assert_eq!(up_to("+50s"), up_to("+90s"));
    for unknown in ["cpu/9/state", "nosuch/*", "cpu/0/stat*x"] {
        let output = run(&["history", "query", &file, unknown]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains(&format!(
                "{unknown}: the history contains no such attribute"
            )),
            "{said}"
        );
    }
    let output = run(&["history", "report", &file, "cpu/?/stat"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let hint = "cpu/?/stat: the history contains no such attribute; did you mean 'cpu/0/state'";
    assert!(said.contains(hint), "{said}");
    let (code, said) = failure(&["history", "query", &file, "*", "--samples", "1000000"]);
    assert_eq!(code, 2);
    assert!(said.contains("request at most"), "{said}");
}

#[test]
fn doubtful_histories_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let said_of = |arguments: &[&str]| {
        let output = run(&[&["history", "build", "-o", &at("history")], arguments].concat());
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = said_of(&[&recorded_trace("perf-memory")]);
    assert!(said.contains("no system calls were recorded"), "{said}");
    let trace = recorded_trace("kernel-mix-small");
    assert_eq!(said_of(&[&trace]), "");
    let rules =
        "[[on]]\nwhen = \"sched_switch && $evt.prev_tid == 3\"\nchange = [{ add = \"n\" }]\n";
    fs::write(at("old.toml"), rules).unwrap();
    let said = said_of(&["--analysis", &at("old.toml"), &trace]);
    assert!(
        said.contains("old.toml: old syntax: write `prev_tid` for `$evt.prev_tid`"),
        "{said}"
    );
    let rules = "name = \"shadow\"\n[[on]]\nevent = \"sched_switch\"\nchange = [{ set = \"cpu/0/state\", to = \"mine\" }]\n";
    fs::write(at("shadow.toml"), rules).unwrap();
    let said = said_of(&["--analysis", &at("shadow.toml"), &trace]);
    assert!(
        said.contains("this attribute already exists without the analysis"),
        "{said}"
    );
}

/// Options that would be ignored, or that can never hold, are refused.
#[test]
fn questions_that_make_no_sense_are_refused() {
    let built = built("kernel-discarded");
    for (attribute, condition, what) in [
        (
            "cpu/0/thread",
            "foo",
            "a condition is an operator (==, !=, <, <=, > or >=) and a value",
        ),
        ("cpu/0/thread", "4", "a condition is"),
        ("cpu/0/thread", "=> 4", "a condition is"),
        (
            "cpu/0/thread",
            "== foo",
            "==, !=, <, <=, >, >= and a number",
        ),
        (
            "cpu/*/state",
            "== busy",
            "one of idle, user, system, irq, softirq, -",
        ),
        (
            "thread/1/state",
            "== runing",
            "one of running, woken, preempted",
        ),
        ("thread/1/state", "> 4", "== or != and one of"),
        ("thread/1/syscall", "< 4", "== or != and a text"),
    ] {
        let (code, said) = failure(&[
            "history",
            "query",
            &built.file,
            attribute,
            "--first",
            condition,
        ]);
        assert!(
            code == 2 && said.contains(what),
            "{attribute} {condition}: {code}, {said}"
        );
    }
    let said = |condition: &str| {
        let output = run(&[
            "history",
            "query",
            &built.file,
            "thread/*/syscall",
            "--first",
            condition,
        ]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said("== raed").contains("the value `raed` never occurs in the history"));
    assert_eq!(said("== futex"), "");
    // A pattern is accepted if the condition makes sense for some of its attributes.
    let some = query(&built, &["cpu/*", "--first", "== idle"]);
    assert!(
        some.contains("cpu/0/state") && !some.contains("cpu/0/thread"),
        "{some}"
    );
    for (moment, range) in [
        ("--at", "--from"),
        ("--at", "--to"),
        ("--next", "--from"),
        ("--previous", "--to"),
    ] {
        let ask = [
            "history",
            "query",
            &built.file,
            "cpu/0/state",
            moment,
            "+0.1s",
            range,
            "+0.2s",
        ];
        let (code, said) = failure(&ask);
        assert!(
            code == 2 && said.contains("cannot be used with"),
            "{moment} {range}: {code}, {said}"
        );
    }
}

/// Threads are reported by value, also those of all CPUs together.
#[test]
fn threads_are_not_averaged() {
    let built = built("kernel-mix-small");
    let report = |more: &[&str]| {
        let arguments = [
            "history",
            "report",
            &built.file,
            "cpu/*/thread",
            "--format",
            "json",
        ];
        let text = text(&[&arguments[..], more].concat());
        let report: Value = serde_json::from_str(&text).unwrap();
        report["attributes"].as_array().unwrap().clone()
    };
    let sums = |rows: &[Value]| {
        let mut sums: std::collections::BTreeMap<i64, u64> = Default::default();
        for row in rows {
            assert_eq!(row["numbers"], Value::Null, "{row}");
            for value in row["values"].as_array().unwrap() {
                let thread = value["value"].as_i64().unwrap();
                *sums.entry(thread).or_default() += value["total_ns"].as_u64().unwrap();
            }
        }
        sums
    };
    let (apart, together) = (report(&[]), report(&["--together"]));
    assert_eq!((apart.len(), together.len()), (4, 1));
    assert_eq!(sums(&apart), sums(&together));
    assert!(sums(&together).len() > 16);
}
