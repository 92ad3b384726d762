//! Databases of executions and their comparison, as users call them, on a recorded trace whose slow
//! requests have known causes.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{failure, recorded, recorded_trace, run, text, tracebraid};

/// Definition of the requests of that trace.
const PERIOD: &str = "request : app:request_begin :
    app:request_end && id == $begin.id";

fn build(file: &Path, more: &[&str]) -> std::process::Output {
    let trace = recorded_trace("kernel-ust-requests");
    let file = file.to_str().expect("UTF-8");
    let options = [
        "executions",
        "build",
        &trace,
        "-o",
        file,
        "--period",
        PERIOD,
        "--captures",
        "request : id = id",
    ];
    run(&[&options[..], more].concat())
}

/// A database of all requests.
fn database() -> &'static Path {
    static DONE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = DONE.get_or_init(|| {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("requests.db");
        let output = build(&path, &[]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(said.contains("2,500 executions"), "{said}");
        (directory, path)
    });
    path
}

pub(crate) fn file() -> &'static str {
    database().to_str().expect("UTF-8")
}

/// Output in a terminal with 140 columns.
pub(crate) fn shown(arguments: &[&str]) -> String {
    let output = tracebraid()
        .env("TRACEBRAID_COLUMNS", "140")
        .args(arguments)
        .output()
        .expect("the binary runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(arguments)).expect("JSON")
}

#[test]
fn executions_are_told_as_they_were_found() {
    insta::assert_snapshot!(
        "executions-list",
        shown(&["executions", "list", file(), "--top", "5", "--gmt"])
    );
    insta::assert_snapshot!(
        "executions-compare",
        shown(&["compare", file(), "--top", "8"])
    );
    let info = json(&["executions", "info", file(), "--format", "json"]);
    assert_eq!(info["kinds"][0]["executions"], 2500);
    assert_eq!(info["sources"].as_array().map(Vec::len), Some(2));
    // The duration of an execution is the sum of its steps, and the duration of the path that its
    // command shows.
    let all = json(&[
        "executions",
        "list",
        file(),
        "--top",
        "0",
        "--format",
        "json",
    ]);
    let first = &all[0];
    let id = first["id"].to_string();
    let one = json(&["executions", "show", file(), &id, "--format", "json"]);
    let steps = one["steps"].as_array().expect("steps");
    let sum: u64 = steps
        .iter()
        .filter_map(|step| step["duration_ns"].as_u64())
        .sum();
    assert_eq!(Some(sum), first["duration_ns"].as_u64());
    let command = one["command"].as_str().expect("a command");
    let words: Vec<&str> = command
        .split(' ')
        .skip(1)
        .chain(["--format", "json"])
        .collect();
    let path = json(&words);
    assert_eq!(
        path["paths"][0]["duration_ns"].as_u64(),
        Some(sum),
        "{command}"
    );
}

/// A database with the definitions of the documentation.
fn documented() -> &'static str {
    static DONE: OnceLock<(TempDir, String)> = OnceLock::new();
    let (_, path) = DONE.get_or_init(|| {
        let docs = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/executions.md"
        );
        let docs = std::fs::read_to_string(docs).expect("the documentation");
        let (_, rest) = docs.split_once("<<'END'\n").expect("its definitions");
        let (definitions, _) = rest.split_once("END\n").expect("their end");
        let directory = TempDir::new().expect("a temporary directory");
        let file = directory.path().join("requests.definitions");
        std::fs::write(&file, definitions).expect("a file");
        let path = directory.path().join("documented.db");
        let path = path.to_str().expect("UTF-8").to_owned();
        let trace = recorded_trace("kernel-ust-requests");
        let file = file.to_str().expect("UTF-8");
        let output = run(&["executions", "build", &trace, "-o", &path, "--file", file]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
        (directory, path)
    });
    path
}

#[test]
fn the_example_of_the_documentation_is_one() {
    let info = json(&["executions", "info", documented(), "--format", "json"]);
    let kinds = info["kinds"].as_array().expect("kinds").iter();
    let kinds: Vec<(&str, u64)> = kinds
        .map(|of| {
            (
                of["name"].as_str().expect("a name"),
                of["executions"].as_u64().expect("a number"),
            )
        })
        .collect();
    assert_eq!(kinds, [("request", 2500), ("backend", 895), ("sync", 871)]);
    let slow = [
        "executions",
        "list",
        documented(),
        "--kind",
        "request",
        "--top",
        "1",
        "--format",
        "json",
    ];
    let slow = &json(&slow)[0];
    assert_eq!(
        (&slow["op"], &slow["phases"], &slow["worker"]),
        (&"STORE".into(), &4.into(), &2.into())
    );
}

/// Texts are columns and sort keys, just as figures are.
#[test]
fn executions_are_listed_and_sorted_by_texts() {
    fn listed<'m>(more: &[&'m str]) -> Vec<&'m str> {
        let list = ["executions", "list", documented(), "--kind", "request"];
        [&list[..], more].concat()
    }
    let columns = ["--columns", "thread,op,duration,ctx.[timer],host,trace"];
    let sorted = [&columns[..], &["--sort", "op", "--top", "0"]].concat();
    let rows = text(&listed(&[&sorted[..], &["--format", "csv"]].concat()));
    let mut lines = rows.lines();
    assert_eq!(
        lines.next(),
        Some("id,begin_ns,label,host,thread,tid,op,duration_ns,ctx.[timer],trace")
    );
    let ops: Vec<&str> = lines
        .map(|line| line.split(',').nth(6).expect("a text"))
        .collect();
    assert!(
        ops.is_sorted() && ops.contains(&"RPC") && ops.contains(&"STORE"),
        "{ops:?}"
    );
    let first = &json(&listed(&[&sorted[..], &["--format", "json"]].concat()))[0];
    assert_eq!(
        (&first["op"], &first["host"]),
        (&"LOOKUP".into(), &"vm1".into())
    );
    assert!(
        first["trace"]
            .as_str()
            .is_some_and(|path| path.ends_with("64-bit") || path.ends_with("kernel"))
    );
    assert!(
        first["running_ns"].is_null() && first["duration_ns"].is_u64(),
        "{first}"
    );
    let table = shown(&listed(&[
        "--columns",
        "op,thread",
        "--sort",
        "thread",
        "--top",
        "1",
        "--gmt",
    ]));
    let head: Vec<&str> = table
        .lines()
        .next()
        .expect("a head")
        .split_whitespace()
        .collect();
    // All executions have one label.
    assert_eq!(head, ["id", "begin", "op", "thread"]);
    assert!(table.contains("worker-0\n"), "{table}");
    for option in ["--columns", "--sort"] {
        let (code, said) = failure(&listed(&[option, "speed"]));
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains(option) && said.contains("duration_ns") && said.contains("host"),
            "{said}"
        );
    }
}

/// A condition on a value that no execution of the kind has matches nothing.
#[test]
fn what_is_known_of_no_execution_can_be_asked_for() {
    let listed = |condition: &'static str| {
        let list = ["executions", "list", documented(), "--kind", "backend"];
        let more = ["--where", condition, "--columns", "op", "--sort", "op"];
        json(&[&list[..], &more, &["--top", "0", "--format", "json"]].concat())
    };
    assert_eq!(
        listed("op == STORE || op > 3 || op =~ *"),
        Value::Array(Vec::new())
    );
    assert_eq!(listed("!has(op)").as_array().map(Vec::len), Some(895));
    let (code, said) = failure(&[
        "executions",
        "list",
        documented(),
        "--kind",
        "backend",
        "--where",
        "oq == 1",
    ]);
    assert!(
        code == 2 && said.contains("executions have no `oq`"),
        "{said}"
    );
}

#[test]
fn what_is_no_database_of_executions_is_not_written_over() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("browser.db");
    let trace = recorded_trace("kernel-mix-small");
    let name = path.to_str().expect("UTF-8");
    let built = || {
        let output = run(&["executions", "build", &trace, "-o", name, "--call", "read"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    // The header of an SQLite database without an application id.
    let mut other = b"SQLite format 3\0".to_vec();
    other.resize(4096, 0);
    std::fs::write(&path, &other).expect("a file");
    let (code, said) = built();
    assert!(
        code == Some(2) && said.contains("refusing to overwrite") && said.contains("another name"),
        "{said}"
    );
    assert_eq!(std::fs::read(&path).expect("the file"), other);
    // An empty file, as `mktemp` creates it, and a database of executions are overwritten.
    std::fs::write(&path, b"").expect("a file");
    assert_eq!(built().0, Some(0));
    assert_eq!(built().0, Some(0));
}

/// Messages on missing executions contain a remedy.
#[test]
fn what_is_not_in_the_traces_is_told_with_a_remedy() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("empty.db");
    let name = path.to_str().expect("UTF-8");
    let trace = recorded_trace("kernel-mix-small");
    let said = |more: &[&str]| {
        let output = run(&[&["executions", "build", &trace, "-o", name], more].concat());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = said(&[
        "--call",
        "read",
        "--from",
        "2020-01-01",
        "--to",
        "2020-01-02",
        "--clock-gmt",
    ]);
    assert!(
        text.contains(
            "no event record is selected: the range is outside the trace, which lasts from 2026-"
        ) && text.contains(" to 2026-"),
        "{text}"
    );
    assert!(!text.contains("the traces contain none"), "{text}");
    for (option, pattern, remedy) in [
        ("--span", "*", "tb_span_begin"),
        ("--process", "nosuch", "tracebraid processes"),
        (
            "--process",
            "stress-ng-cqu",
            "; did you mean 'stress-ng-cpu'?",
        ),
        ("--call", "readahead", "tracebraid syscalls"),
        ("--period", "p : zz", "tracebraid count"),
    ] {
        let text = said(&[option, pattern]);
        assert!(text.contains(remedy), "{option}: {text}");
    }
    // A trace that has begun, but has no packets yet.
    let begun = directory.path().join("begun");
    std::fs::create_dir(&begun).expect("a directory");
    let metadata = recorded("kernel-ust-requests").join("kernel-ust-requests/kernel/metadata");
    std::fs::copy(metadata, begun.join("metadata")).expect("a file");
    let output = run(&[
        "executions",
        "build",
        begun.to_str().expect("UTF-8"),
        "-o",
        name,
        "--call",
        "read",
    ]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("have no packets") && !text.contains("the traces contain none"),
        "{text}"
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains('%'));
    let text = said(&["--span", "*", "--process", "*"]);
    assert!(
        text.contains("`*` is already defined") && text.contains("`other : *`"),
        "{text}"
    );
    assert!(said(&["--span", "*", "--process", "other : *"]).contains("tb_span_begin"));
    let text = said(&["--call", "read", "--rename", "operator===equals"]);
    assert!(text.contains("'operator== = equals'"), "{text}");
}

/// Traces of one host remain distinguishable where there is no room for their paths.
#[test]
fn traces_of_one_machine_are_told_apart() {
    let output = tracebraid()
        .env("TRACEBRAID_COLUMNS", "60")
        .args(["executions", "info", file()])
        .output()
        .expect("the binary runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        text.contains("vm1/kernel") && text.contains("vm1/ust"),
        "{text}"
    );
    let info = json(&["executions", "info", file(), "--format", "json"]);
    assert_eq!(info["sources"][0]["host"], "vm1");
}

#[test]
fn databases_grow_and_stay_whole() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("grown.db");
    let said = |output: std::process::Output| {
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    // Without a database, one is made.
    let first = build(&path, &["--append", "--label", "one"]);
    assert_eq!(said(first).0, Some(0));
    assert_eq!(
        said(build(
            &path,
            &["--label", "two", "--append", "--rename", "f=g"]
        ))
        .0,
        Some(0)
    );
    let name = path.to_str().expect("UTF-8");
    let listed = json(&[
        "executions",
        "list",
        name,
        "--top",
        "0",
        "--where",
        "label == two",
        "--format",
        "json",
    ]);
    assert_eq!(listed.as_array().map(Vec::len), Some(2500));
    let (code, wrong) = failure(&["executions", "list", name, "--where", "speed > 1"]);
    assert_eq!(code, 2);
    assert!(
        wrong.contains("duration_ns") && wrong.contains("label"),
        "{wrong}"
    );
    // The trace itself is not overwritten, and a file that is no database is not appended to.
    let metadata = recorded("kernel-ust-requests").join("kernel-ust-requests/kernel/metadata");
    assert_eq!(said(build(&metadata, &[])).0, Some(2));
    let other = directory.path().join("other");
    std::fs::write(&other, "text").expect("a file");
    assert_eq!(said(build(&other, &["--append"])).0, Some(3));
    assert_eq!(std::fs::read_to_string(&other).expect("the file"), "text");
    let left = std::fs::read_dir(directory.path())
        .expect("a directory")
        .count();
    assert_eq!(left, 2, "no half files are left");
}

#[test]
fn renames_that_contradict_each_other_are_refused() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("renamed.db");
    let names = directory.path().join("names");
    std::fs::write(&names, "# renamed\n\nold = new\nolder=old\n").expect("a file");
    let names = names.to_str().expect("UTF-8");
    let said = |more: &[&str]| {
        let output = build(&path, more);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = said(&["--rename", "old=other", "--rename-file", names]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains(&format!(
            "{names}:3 (old=new) contradicts --rename (old=other)"
        )),
        "{text}"
    );
    let (code, text) = said(&["--rename", "new=older", "--rename-file", names]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("contradicts --rename (new=older)") && text.contains("form a circle"),
        "{text}"
    );
    assert!(!path.exists());
    // Renames in the database count, too.
    assert_eq!(said(&["--rename-file", names]).0, Some(0));
    let (code, text) = said(&["--append", "--label", "two", "--rename", "new=old"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("--rename (new=old)") && text.contains("renamed.db (old=new)"),
        "{text}"
    );
    assert_eq!(
        said(&["--append", "--label", "two", "--rename", "new=newest"]).0,
        Some(0)
    );
}

#[test]
fn definitions_are_shown_and_others_of_the_same_name_warned_of() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("defined.db");
    let name = path.to_str().expect("UTF-8");
    let appended = |label: &str, end: &str| {
        let trace = recorded_trace("kernel-ust-requests");
        let begin = "request : app:request_begin";
        let period = format!("{begin} :{end} && id == $begin.id");
        let options = [
            "executions",
            "build",
            &trace,
            "-o",
            name,
            "--label",
            label,
            "--period",
            &period,
            "--call",
            "fsync",
        ];
        let more: &[&str] = if label == "one" { &[] } else { &["--append"] };
        let output = run(&[&options[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let end = "app:request_end";
    assert!(!appended("one", end).contains("a different definition"));
    // The same condition in another spelling.
    assert!(!appended("two", &format!("  ({end})")).contains("a different definition"));
    let said = appended("three", "app:response");
    assert!(
        said.contains("warning: request: executions of this name")
            && said.contains("a different definition"),
        "{said}"
    );
    assert!(!said.contains("fsync: executions"), "{said}");
    let info = text(&["executions", "info", name]);
    let definition =
        format!("\nrequest, fsync, as defined:\n  period request : app:request_begin :{end} &&");
    assert!(
        info.contains(&definition) && info.contains("\n  call fsync\n"),
        "{info}"
    );
    let info = json(&["executions", "info", name, "--format", "json"]);
    let definition = info["kinds"][0]["definition"]
        .as_str()
        .expect("a definition");
    assert!(definition.starts_with("period request : "), "{definition}");
    assert!(!definition.contains("app:response"), "{definition}");
    // The other definition is shown, too, with the label of its recording.
    let others = info["kinds"][0]["defined_otherwise"]
        .as_array()
        .expect("definitions");
    assert_eq!((others.len(), &others[0]["label"]), (1, &"three".into()));
    let other = others[0]["definition"].as_str().expect("a definition");
    assert!(
        other.contains("app:response") && other.contains("call fsync"),
        "{other}"
    );
    assert_eq!(
        info["kinds"][1]["defined_otherwise"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
    let info = text(&["executions", "info", name]);
    assert!(
        info.contains("\nrequest of three, defined differently:\n  period request : "),
        "{info}"
    );
    // Later recordings are compared with the first definition.
    assert!(!appended("four", end).contains("a different definition"));
}

/// The client's clock is 3.7 s ahead: without correction, requests that reach the server make no
/// sense.
#[test]
fn machines_whose_clocks_may_differ_are_warned_of() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("hosts.db");
    let path = path.to_str().expect("UTF-8");
    let [client, server] = ["twohost-client", "twohost-server"].map(|name| {
        recorded("twohost")
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    });
    let said = |options: &[&str]| {
        let output = run(options);
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let built = |more: &[&str]| {
        let options = ["executions", "build", "-o", path, "--call", "accept4"];
        said(&[&options[..], more].concat())
    };
    let text = built(&[&client, &server]);
    assert!(
        text.contains("several hosts (cli, srv)") && text.contains("--sync auto"),
        "{text}"
    );
    assert!(!built(&[&client, &server, "--sync", "auto"]).contains("several hosts"));
    assert!(!built(&[&client]).contains("several hosts"));
    let text = said(&["critical-path", "--process", "reqapp", &client, &server]);
    assert!(text.contains("several hosts"), "{text}");
    // The kernel trace and the program traces of one host share a clock.
    let one = recorded_trace("kernel-ust-requests");
    assert!(!built(&[&one]).contains("several hosts"));
}

/// The steps of a path are readable in 40 columns.
#[test]
fn executions_are_shown_in_narrow_terminals() {
    let at = |width: &str| {
        let command = ["executions", "show", file(), "17", "--gmt", "--top", "6"];
        let output = tracebraid()
            .env("TRACEBRAID_COLUMNS", width)
            .args(command)
            .output()
            .expect("the binary runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        // The command for the trace is not wrapped, so that it can be copied.
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("show it in the trace:"));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let narrow = at("40");
    insta::assert_snapshot!("executions-show-narrow", narrow);
    for line in narrow.lines() {
        assert!(line.chars().count() <= 40, "{line}");
    }
    insta::assert_snapshot!("executions-show", at("100"));
}

/// Captured values of slow requests, and the threads in which they end.
#[test]
fn texts_tell_groups_apart() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("texts.db");
    let trace = recorded_trace("kernel-ust-requests");
    let name = path.to_str().expect("UTF-8");
    let captures = "call : what = name : op = $begin.op_enum";
    let period = "call : syscall_entry_f* || syscall_entry_epoll_ctl :
        syscall_exit_* && tid == $begin.tid";
    let output = run(&[
        "executions",
        "build",
        &trace,
        "-o",
        name,
        "--period",
        period,
        "--captures",
        captures,
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let groups = [
        "--a",
        "what == syscall_entry_futex",
        "--b",
        "what == syscall_entry_fdatasync",
    ];
    let shown = shown(&[&["compare", name][..], &groups, &["--top", "5"]].concat());
    let texts = shown.split("Metrics that differ").nth(1).expect("a part");
    let (_, texts) = texts.trim().split_once("\n\n").expect("two tables");
    insta::assert_snapshot!("executions-compare-texts", texts);
    let compared = json(&[&["compare", name][..], &groups, &["--format", "json"]].concat());
    let what = &compared["texts"][0];
    assert_eq!(what["text"], "what");
    assert!(
        what["cramers_v"].as_f64().expect("a number") > 0.999,
        "{what}"
    );
    assert!(what["p"].as_f64().expect("a number") < 1e-6);
    assert_eq!(
        what["groups"][0]["share"].as_f64().expect("a number")
            + what["groups"][1]["share"].as_f64().expect("a number"),
        1.0
    );
    let host = compared["texts"]
        .as_array()
        .expect("texts")
        .iter()
        .find(|of| of["text"] == "host")
        .expect("a host");
    assert_eq!(
        (host["cramers_v"].as_f64(), host["p"].as_f64()),
        (Some(0.0), Some(1.0))
    );
    let rows = text(
        &[
            &["compare", name][..],
            &groups,
            &["--format", "csv", "--table", "texts", "--top", "0"],
        ]
        .concat(),
    );
    let lines: Vec<&str> = rows
        .lines()
        .filter(|line| line.starts_with("what,"))
        .collect();
    assert_eq!(lines.len(), 1, "{rows}");
    assert_eq!(
        lines[0].split(',').count(),
        rows.lines().next().expect("a head").split(',').count()
    );
    assert!(lines[0].contains("syscall_entry_f"), "{}", lines[0]);
}

#[test]
fn flame_graphs_of_slow_executions_can_be_drawn() {
    let folded = text(&["executions", "export", file(), "--where", "duration > 30ms"]);
    let sum = |text: &str| -> u64 {
        text.lines()
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum()
    };
    let slow = json(&[
        "executions",
        "list",
        file(),
        "--top",
        "0",
        "--where",
        "duration > 30ms",
        "--format",
        "json",
    ]);
    let slow: Vec<u64> = slow
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["duration_ns"].as_u64())
        .collect();
    let mean = slow.iter().sum::<u64>() / slow.len() as u64;
    // Each line is rounded down.
    assert!(
        sum(&folded).abs_diff(mean) < 1000,
        "{} {mean}",
        sum(&folded)
    );
    let running = ["--where", "duration > 30ms", "--running"];
    let running = text(&[&["executions", "export", file()][..], &running].concat());
    let (code, said) = crate::support::failure(&[
        "executions",
        "export",
        file(),
        "--running",
        "--format",
        "json",
    ]);
    assert!(
        code == 2 && said.contains("--running applies to"),
        "{code}: {said}"
    );
    // Reasons of waits and other threads are in brackets.
    let is_of_wait = |line: &&str| line.replace("[running]", "").contains(['[', '<']);
    let without_waits = folded.lines().filter(|line| !is_of_wait(line));
    assert!(sum(&running) > 1000, "{running}");
    assert!(running.lines().eq(without_waits), "{running}\n{folded}");
    assert!(
        folded
            .lines()
            .any(|line| line.starts_with("[preempted];<cpuhog> ")),
        "{folded}"
    );
}

/// A record that cannot be decoded hides where a CPU's packet continues. Call stacks from that time
/// are assigned when the graph has reached the same time for every chunk size.
#[test]
fn call_stacks_beside_damage_do_not_depend_on_chunks() {
    let directory = recorded("disk-contention");
    let stream = "disk-contention/kernel/channel0_1";
    let place = TempDir::new().expect("a temporary directory");
    let from = directory.join("disk-contention");
    let copied = std::process::Command::new("cp")
        .args(["-r"])
        .args([&from, &place.path().join("disk-contention")])
        .status();
    assert!(copied.expect("cp is there").success());
    let stream = place.path().join(stream);
    let mut bytes = std::fs::read(&stream).expect("the stream");
    // The id of an event record.
    bytes[825_170] ^= 1;
    std::fs::write(&stream, bytes).expect("the stream is written");
    let folded = |chunk_size: &str| {
        let (trace, file) = (
            place.path().join("disk-contention"),
            place.path().join(chunk_size),
        );
        let (trace, file) = (
            trace.to_str().expect("UTF-8"),
            file.to_str().expect("UTF-8"),
        );
        let output = run(&[
            "executions",
            "build",
            trace,
            "-o",
            file,
            "--process",
            "*",
            "--chunk-size",
            chunk_size,
        ]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && errors.contains("cannot be decoded"),
            "{errors}"
        );
        text(&["executions", "export", file, "--format", "folded"])
    };
    let whole = folded("64M");
    for chunk_size in ["1", "64K", "256K"] {
        assert!(folded(chunk_size) == whole, "{chunk_size}");
    }
}
