//! Traces where an index entry in the middle contradicts its stream file.

use std::collections::BTreeSet;
use std::path::Path;

use tracebraid_testkit::partial::PartialTrace;
use tracebraid_testkit::wrong_index::{WAYS, WRONG, WrongEntry};

use crate::support::{run, text};

/// Options that cut a trace into different chunks.
const CUTS: [&[&str]; 5] = [
    &[],
    &["-j", "1", "--chunk-size", "1"],
    &["-j", "2", "--chunk-size", "64K"],
    &["-j", "1", "--chunk-size", "1M"],
    &["-j", "2"],
];

const REPORTS: [&[&str]; 4] = [
    &["waits", "--format", "json"],
    &["report", "--format", "json"],
    &[
        "critical-path",
        "--longest",
        "*",
        "--top",
        "20",
        "--format",
        "json",
    ],
    &["files", "--format", "json"],
];

fn path(trace: &PartialTrace) -> &str {
    trace.path().to_str().expect("UTF-8")
}

fn without_index() -> PartialTrace {
    PartialTrace::of(&[0, 1, 2, 3], false)
}

/// Asserts that a command warns of the index once and repeats no line.
fn warns_once(what: &str, errors: &[u8]) {
    let errors = String::from_utf8_lossy(errors);
    let message = format!(
        "kchan_3: byte {}: its index is not used: the entry contradicts the packet's head",
        WRONG << 18
    );
    assert_eq!(errors.matches(&message).count(), 1, "{what}: {errors}");
    let lines = errors.lines().collect::<BTreeSet<_>>();
    assert_eq!(lines.len(), errors.lines().count(), "{what}: {errors}");
}

/// Runs a command on a trace with a wrong index, asserts that it warns, and returns its standard
/// output.
fn warned(arguments: &[&str]) -> String {
    let output = run(arguments);
    let what = arguments.join(" ");
    warns_once(&what, &output.stderr);
    assert_eq!(output.status.code(), Some(0), "{what}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    unnamed(&text, arguments)
}

/// Output without the path of the trace, which the summary's commands contain.
fn unnamed(text: &str, arguments: &[&str]) -> String {
    match arguments.iter().find(|one| Path::new(one).is_dir()) {
        Some(trace) => text.replace(trace, "TRACE"),
        None => text.to_owned(),
    }
}

fn with<'a>(command: &[&'a str], more: &[&'a str], trace: &'a str) -> Vec<&'a str> {
    [command, more, &[trace]].concat()
}

fn way(name: &str) -> &'static WrongEntry {
    WAYS.iter()
        .find(|way| way.name == name)
        .expect("a known name")
}

#[test]
fn reports_do_not_depend_on_chunks() {
    let bare = without_index();
    let expected = REPORTS.map(|report| {
        let arguments = with(report, &[], path(&bare));
        unnamed(&text(&arguments), &arguments)
    });
    for name in ["later-begin", "earlier-begin"] {
        let trace = PartialTrace::with_changed_index(name, way(name).change);
        for (report, expected) in REPORTS.iter().zip(&expected) {
            for cut in CUTS {
                let found = warned(&with(report, cut, path(&trace)));
                assert!(found == *expected, "{name}, {report:?}, {cut:?}");
            }
        }
    }
}

#[test]
fn no_wrong_entry_changes_a_report() {
    let bare = without_index();
    let expected = text(&with(REPORTS[0], &[], path(&bare)));
    for way in &WAYS {
        let trace = PartialTrace::with_changed_index(way.name, way.change);
        let found = warned(&with(REPORTS[0], CUTS[2], path(&trace)));
        assert!(found == expected, "{}", way.name);
    }
}

#[test]
fn strict_is_not_content_with_it() {
    let name = "later-begin";
    let trace = PartialTrace::with_changed_index(name, way(name).change);
    for report in REPORTS {
        let output = run(&with(report, &["--strict"], path(&trace)));
        assert_eq!(output.status.code(), Some(1), "{report:?}");
        warns_once(report[0], &output.stderr);
    }
    let output = run(&["count", "--strict", path(&trace)]);
    assert_eq!(output.status.code(), Some(1));
    warns_once("count", &output.stderr);
}

/// Builds a database of a trace and returns its executions, as listed.
fn executions(trace: &str, database: &Path, cut: &[&str], builds: fn(&[&str]) -> String) -> String {
    let database = database.to_str().expect("UTF-8");
    let build = ["executions", "build", trace, "-o", database, "--call", "*"];
    let said = builds(&[&build[..], &["--label", "one"], cut].concat());
    assert!(said.contains("executions,"), "{said}");
    let list = text(&[
        "executions",
        "list",
        database,
        "--top",
        "0",
        "--format",
        "csv",
    ]);
    let longest = text(&["executions", "show", database, "1", "--format", "json"]);
    (list + &longest).replace(trace, "TRACE")
}

#[test]
fn databases_and_histories_do_not_depend_on_chunks() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let bare = without_index();
    let name = "later-begin";
    let trace = PartialTrace::with_changed_index(name, way(name).change);
    let expected = executions(path(&bare), &file("bare.db"), &[], |build| text(build));
    for (cut, number) in CUTS.iter().zip(0..) {
        let database = file(&format!("{number}.db"));
        let found = executions(path(&trace), &database, cut, warned);
        assert!(found == expected, "{cut:?}");
    }
    let history = |trace: &str, name: &str, build: fn(&[&str]) -> String| {
        let to = file(name);
        let to = to.to_str().expect("UTF-8");
        build(&["history", "build", trace, "-o", to, "--chunk-size", "64K"]);
        text(&["history", "query", to, "cpu/*/state", "--format", "csv"])
    };
    let expected = history(path(&bare), "bare.history", |build| text(build));
    assert!(history(path(&trace), "history", warned) == expected);
    let appended = warned(&[
        "history",
        "append",
        file("history").to_str().expect("UTF-8"),
    ]);
    assert!(appended.contains("nothing is new"), "{appended}");
    // No other file is left.
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .expect("files")
        .collect();
    names.retain(|name| {
        let name = name.as_ref().expect("a file").file_name();
        !name.to_string_lossy().ends_with(".db") && !name.to_string_lossy().ends_with("history")
    });
    assert!(names.is_empty(), "{names:?}");
}

/// SQL statements about traces continue without the wrong index.
#[test]
fn answers_do_not_depend_on_chunks() {
    let bare = without_index();
    let name = "later-begin";
    let trace = PartialTrace::with_changed_index(name, way(name).change);
    let ask = |trace: &str, more: &[&str], run: fn(&[&str]) -> String| {
        let question = "SELECT tid, state, count(*), sum(duration_ns) FROM intervals GROUP BY tid, state ORDER BY 1, 2";
        let ask = [
            "executions",
            "sql",
            "--trace",
            trace,
            question,
            "--format",
            "csv",
        ];
        run(&[&ask[..], more].concat())
    };
    let expected = ask(path(&bare), &[], |ask| text(ask));
    assert!(expected.lines().count() > 50);
    for cut in CUTS {
        assert!(ask(path(&trace), cut, warned) == expected, "{cut:?}");
    }
}

/// `--timings` does not contain the passes before the restart.
#[test]
fn only_the_second_beginning_is_timed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("timings.json");
    let name = "later-begin";
    let trace = PartialTrace::with_changed_index(name, way(name).change);
    let to = file.to_str().expect("UTF-8");
    warned(&["waits", path(&trace), "--timings", to]);
    let found: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).expect("the file")).expect("JSON");
    assert_eq!(found["folds"].as_array().map(Vec::len), Some(1));
}

/// The restart does not repeat lines of `--output-progress`.
#[test]
fn progress_is_told_once() {
    let name = "later-begin";
    let trace = PartialTrace::with_changed_index(name, way(name).change);
    let found = warned(&["cpu", "--output-progress", path(&trace)]);
    assert_eq!(found.matches("0 reading").count(), 1);
}
