//! Traces without scheduling events: unknown values are reported with the reason, and no command is
//! suggested that cannot work.

use crate::support::{recorded, run, text};
use tempfile::TempDir;

/// A trace with events of a program and none of the kernel.
fn trace() -> String {
    let path = recorded("ust-counters").join("ust-counters/ust/uid/0/64-bit");
    path.to_str().expect("UTF-8").to_owned()
}

fn database(directory: &TempDir) -> String {
    let file = directory.path().join("requests.db").display().to_string();
    let period = r#"request : lttng_ust_tracef:event && msg =* "begin*" :
        lttng_ust_tracef:event && msg =* "end*" && vtid == $begin.vtid"#;
    text(&[
        "executions",
        "build",
        &trace(),
        "-o",
        &file,
        "--period",
        period,
    ]);
    file
}

#[test]
fn an_execution_whose_thread_is_unknown_has_no_command() {
    let directory = TempDir::new().expect("a temporary directory");
    let file = database(&directory);
    let shown = text(&["executions", "show", &file, "1"]);
    assert!(
        !shown.contains("--tid") && !shown.contains("show it in the trace"),
        "{shown}"
    );
    assert_eq!(shown.matches("sched_switch").count(), 2, "{shown}");
    let json = text(&["executions", "show", &file, "1", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(
        json["command"].is_null() && json["steps"] == serde_json::json!([]),
        "{json}"
    );
}

#[test]
fn a_comparison_says_that_contexts_are_unknown() {
    let directory = TempDir::new().expect("a temporary directory");
    let compared = text(&["compare", &database(&directory)]);
    assert!(
        compared.contains("unknown: the trace has no scheduling events (sched_switch)"),
        "{compared}"
    );
    assert!(!compared.contains("nowhere"), "{compared}");
    // Known values are compared.
    assert!(compared.contains("duration"), "{compared}");
}

#[test]
fn critical_paths_are_unknown_for_one_reason() {
    for asked in [
        ["--longest", "read"],
        ["--tid", "21563"],
        ["--process", "faults"],
    ] {
        let output = run(&[&["critical-path", &*trace()][..], &asked].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains("critical paths are unknown: enable sched_switch"),
            "{said}"
        );
        // The thread is in the trace, and no other command shows it either.
        assert_eq!(said.matches("warning").count(), 1, "{said}");
    }
}

/// Without switches, the state of a thread between two calls is unknown.
#[test]
fn calls_alone_show_no_path() {
    let trace = recorded("trace-cmd-files").join("trace-cmd-files/lost.dat");
    let trace = trace.to_str().expect("UTF-8");
    for asked in [["--longest", "*"], ["--tid", "26470"]] {
        let output = run(&["critical-path", trace, asked[0], asked[1]]);
        let (shown, said) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert!(
            output.status.success() && !shown.contains("running"),
            "{shown}"
        );
        assert!(
            said.contains("critical paths are unknown: enable sched_switch"),
            "{said}"
        );
    }
}

/// Threads are also listed if only the entries of their calls were recorded.
#[test]
fn processes_lists_callers_whose_calls_never_ended() {
    for (archive, file, callers) in [
        ("perf-files", "perf-files/lost.data", &["tid 26428"][..]),
        (
            "trace-cmd-files",
            "trace-cmd-files/lost.dat",
            &["tid 26459", "tid 26470"],
        ),
    ] {
        let trace = recorded(archive).join(file);
        let shown = text(&["processes", trace.to_str().expect("UTF-8")]);
        for caller in callers {
            assert!(shown.contains(caller), "{shown}");
        }
    }
}
