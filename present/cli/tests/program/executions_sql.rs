//! `executions sql` as users call it, on a recorded trace.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use crate::support::{self, failure, recorded_trace, run, text, tracebraid};
use serde_json::Value;
use tempfile::TempDir;

/// A database of the requests of a recorded trace.
fn database() -> &'static str {
    static BUILT: OnceLock<(TempDir, String)> = OnceLock::new();
    let (_, file) = BUILT.get_or_init(|| {
        let directory = TempDir::new().expect("a directory");
        let file = directory.path().join("requests.db").display().to_string();
        let period = "request : app:request_begin :
            app:request_end && id == $begin.id";
        let trace = recorded_trace("kernel-ust-requests");
        let captures = "request : id = id";
        text(&[
            "executions",
            "build",
            &trace,
            "-o",
            &file,
            "--period",
            period,
            "--captures",
            captures,
        ]);
        (directory, file)
    });
    file
}

fn sql(arguments: &[&str]) -> String {
    text(&[&["executions", "sql"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&sql(&[arguments, &["--format", "json"]].concat())).expect("JSON")
}

#[test]
fn answers_in_each_form() {
    let question = "SELECT id, duration_ns, 'a,b' AS text FROM executions ORDER BY id LIMIT 3";
    let rows = json(&[database(), question]);
    let listed: Value = serde_json::from_str(&text(&[
        "executions",
        "list",
        database(),
        "--format",
        "json",
        "--top",
        "0",
    ]))
    .expect("JSON");
    for row in rows.as_array().expect("rows") {
        let listed = listed["executions"]
            .as_array()
            .or(listed.as_array())
            .expect("executions");
        let same = listed
            .iter()
            .find(|of| of["id"] == row["id"])
            .expect("the execution is listed");
        assert_eq!(same["duration_ns"], row["duration_ns"]);
    }
    let csv = sql(&[database(), question, "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("id,duration_ns,text", 4));
    assert_eq!(lines[1], format!("1,{},\"a,b\"", rows[0]["duration_ns"]));
    let table = sql(&[database(), question]);
    assert!(
        table.contains("duration_ns") && table.lines().count() == 5,
        "{table}"
    );
    let cut = sql(&[database(), "SELECT id FROM executions", "--limit", "7"]);
    assert!(
        cut.contains("the first 7 rows") && cut.lines().count() == 10,
        "{cut}"
    );
    assert!(sql(&[database(), "SELECT 1 WHERE 0"]).contains("(no rows)"));
    assert_eq!(
        json(&[database(), "SELECT 1 AS a, 2 AS a, NULL AS b"])[0],
        serde_json::json!({"a": 1, "a:1": 2, "b": null})
    );
    assert_eq!(
        sql(&[
            database(),
            "SELECT 1 AS a; SELECT 2 AS b",
            "--format",
            "csv"
        ]),
        "a\n1\n\nb\n2\n"
    );
    // Tables fit, and names cannot send commands to the terminal.
    let long =
        "SELECT text, state, thread_name, char(27) || '[2J' AS hostile FROM segments LIMIT 50";
    let narrow = tracebraid()
        .env("TRACEBRAID_COLUMNS", "50")
        .args(["executions", "sql", database(), long])
        .output()
        .expect("the binary runs");
    let narrow = support::succeeds(&narrow);
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 50) && !narrow.contains('\x1b'),
        "{narrow}"
    );
}

#[test]
fn traces_of_a_database_and_traces_alone_are_asked_about() {
    let sums = "SELECT count(*) AS n FROM executions WHERE duration_ns !=
        (SELECT sum(duration_ns) FROM segments WHERE execution = executions.id)";
    assert_eq!(json(&[database(), sums])[0]["n"], 0);
    let trace = recorded_trace("kernel-ust-requests");
    let counted: Value =
        serde_json::from_str(&text(&["count", &trace, "--format", "json"])).expect("JSON");
    let rows = json(&[
        "--trace",
        &trace,
        "SELECT name, count(*) AS n FROM events GROUP BY name",
    ]);
    let of = |name: &str| {
        let rows = rows.as_array().expect("rows");
        rows.iter()
            .find(|row| row["name"] == name)
            .map(|row| row["n"].clone())
    };
    let total: i64 = rows
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["n"].as_i64())
        .sum();
    assert_eq!(Value::from(total), counted["events"], "{counted}");
    assert!(of("sched_switch").is_some());
    let one = "SELECT count(*) AS n FROM events JOIN executions AS e ON time_ns = e.begin_ns
        WHERE e.id = 17 AND name = 'app:request_begin' AND json_extract(fields, '$.id') = e.id_value";
    // The value is named id_value, because executions have an id of their own.
    assert_eq!(json(&[database(), one])[0]["n"], 1);
    // Waits of executions are states of their threads.
    let same = "SELECT count(*) AS n FROM executions AS one JOIN intervals AS i ON i.tid = one.tid
        WHERE one.id = 17 AND i.begin_ns < one.begin_ns + one.duration_ns AND i.end_ns > one.begin_ns";
    assert!(json(&[database(), same])[0]["n"].as_i64() > Some(0));
}

/// The examples of the documentation, in their order.
fn examples() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sql.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let blocks = page.split("```sql\n").skip(1);
    blocks
        .filter_map(|block| Some(block.split_once("```")?.0.to_owned()))
        .collect()
}

/// Each example runs, and its result is that of the page.
#[test]
fn examples_of_the_documentation_show_what_they_say() {
    let examples = examples();
    let answers: Vec<Vec<Value>> = examples
        .iter()
        .map(|example| {
            json(&[database(), example])
                .as_array()
                .expect("rows")
                .clone()
        })
        .collect();
    for (example, rows) in examples.iter().zip(&answers) {
        assert!(!rows.is_empty(), "{example}");
    }
    let [slow, waited, during, meanwhile, preempted, wakers, reads] = answers.as_slice() else {
        panic!("another example: {}", examples.len());
    };
    let texts = |rows: &[Value], key: &str| -> Vec<String> {
        let text = |row: &Value| row[key].as_str().map(str::to_owned);
        rows.iter().filter_map(text).collect()
    };
    let states = texts(slow, "state");
    for state in ["running", "preempted", "runnable"] {
        let row = slow.iter().find(|row| row["state"] == state);
        let time = row.and_then(|row| row["all_ms"].as_f64());
        assert!(time > Some(0.0), "{state}: {states:?}");
    }
    assert_eq!(texts(waited, "name").len(), waited.len());
    assert!(texts(during, "name").contains(&"app:request_begin".to_owned()));
    assert!(texts(meanwhile, "state").contains(&"running".to_owned()));
    assert!(
        texts(preempted, "detail")
            .iter()
            .all(|by| by.starts_with("by ")),
        "{preempted:?}"
    );
    let wakers = texts(wakers, "waker");
    assert!(
        wakers
            .iter()
            .any(|waker| waker.contains("softirq") || waker.contains("timer")),
        "{wakers:?}"
    );
    let bytes: Vec<i64> = reads
        .iter()
        .filter_map(|row| row["bytes"].as_i64())
        .collect();
    assert!(
        bytes.len() == 10 && bytes.is_sorted_by(|a, b| a >= b),
        "{bytes:?}"
    );
}

#[test]
fn tables_are_shown_without_a_question() {
    let shown = sql(&[database()]);
    for table in [
        "executions: ",
        "segments: ",
        "times: ",
        "contexts: ",
        "threads: ",
        "events: ",
        "intervals: ",
        "trace_threads: ",
        "source: ",
    ] {
        assert!(
            shown.contains(&format!("\n{table}")) || shown.starts_with(table),
            "{table}\n{shown}"
        );
    }
    let columns = json(&[database()]);
    let found = columns.as_array().expect("columns").iter();
    let own = found.filter(|of| of["table"] == "segments").count();
    assert_eq!(own, 10);
    let trace = recorded_trace("kernel-mix-small");
    let shown = sql(&["--trace", &trace]);
    assert!(
        shown.contains("events: ") && !shown.contains("segments: "),
        "{shown}"
    );
}

#[test]
fn questions_come_from_standard_input() {
    let mut child = tracebraid()
        .args(["executions", "sql", database(), "-", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(b"SELECT 6 * 7 AS answer\n;\n")
        .expect("the binary reads");
    drop(input);
    assert_eq!(
        support::succeeds(&child.wait_with_output().expect("the binary ends")),
        "answer\n42\n"
    );
}

#[test]
fn failures_name_what_to_do() {
    let is = |arguments: &[&str], code, what: &str| {
        let (found, said) = failure(&[&["executions", "sql"], arguments].concat());
        assert!(
            found == code && said.contains(what),
            "{arguments:?}: {found}, {said}"
        );
    };
    is(&[], 2, "DB");
    is(&["/nowhere.db", "SELECT 1"], 3, "/nowhere.db");
    is(
        &[database(), "SELECT oops FROM executions"],
        2,
        "no such column: oops: omit the query to list all columns\n  SELECT oops FROM executions\n         ^ line 1, column 8\n",
    );
    for (question, hint) in [
        (
            "SELECT 1 FROM exections",
            "no such table: exections; did you mean 'executions'?",
        ),
        (
            "SELECT 1 FROM nosuch",
            "no such table: nosuch: the tables are contexts, ",
        ),
        (
            "SELECT e.duraton_ns FROM executions AS e",
            "; did you mean 'duration_ns'?",
        ),
        (
            "SELECT what FROM kind",
            "no such column: what: the columns are definition, id, name",
        ),
    ] {
        is(&[database(), question], 2, hint);
    }
    is(
        &[database(), "SELECT 1;\nDELETE FROM execution"],
        2,
        "would write\n  DELETE FROM execution\n  ^ line 2, column 1\n",
    );
    is(&[database(), "SELECT ?"], 2, "parameter");
    is(&[database(), " "], 2, "contains no SQL statement");
    let trace = recorded_trace("kernel-mix-small");
    is(
        &["--trace", &trace, "SELECT * FROM segments"],
        2,
        "needs a database of executions",
    );
    is(
        &["--trace", "/nowhere", "SELECT * FROM events"],
        1,
        "/nowhere",
    );
    let directory = TempDir::new().expect("a directory");
    let other = directory.path().join("not-one.db");
    std::fs::write(&other, "hello").expect("a file");
    is(
        &[&other.display().to_string(), "SELECT 1"],
        3,
        "not a database of executions",
    );
}

#[test]
fn traces_that_are_gone_are_told_of() {
    let directory = TempDir::new().expect("a directory");
    let moved = directory.path().join("trace");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(recorded_trace("kernel-ust-requests"))
        .arg(&moved)
        .status();
    assert!(copied.expect("cp runs").success());
    let file = directory.path().join("gone.db").display().to_string();
    let period = "request : app:request_begin : app:request_end && id == $begin.id";
    text(&[
        "executions",
        "build",
        &moved.display().to_string(),
        "-o",
        &file,
        "--period",
        period,
    ]);
    std::fs::remove_dir_all(Path::new(&moved)).expect("the trace is removed");
    let (code, said) = failure(&["executions", "sql", &file, "SELECT count(*) FROM events"]);
    assert!(
        code == 1
            && said.contains("no longer exists; give the current paths of the traces with --trace"),
        "{code} {said}"
    );
    let trace = recorded_trace("kernel-ust-requests");
    let found = json(&[
        &file,
        "SELECT count(*) > 0 AS n FROM events",
        "--trace",
        &trace,
    ]);
    assert_eq!(found[0]["n"], 1);
}

/// An endless query and a query that reads a trace both end soon after an interrupt.
#[test]
fn interrupted_questions_end() {
    let trace = recorded_trace("kernel-mix-small");
    let endless =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let many = "SELECT count(*) FROM events AS a, events AS b, events AS c";
    for question in [endless, many] {
        let child = tracebraid()
            .args(["executions", "sql", "--trace", &trace, question])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        // The query is running then, however long it takes to start.
        tracebraid_testkit::processes::until("the query uses CPU time", || {
            tracebraid_testkit::processes::cpu_time(child.id())
                .is_some_and(|used| used.as_secs() >= 1)
        });
        let interrupted = std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(interrupted.expect("kill runs").success());
        let output = child.wait_with_output().expect("the binary ends");
        assert_eq!(
            output.status.code(),
            Some(130),
            "{question}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// The reader may close the pipe early.
#[test]
fn closed_pipes_end_quietly() {
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    for format in ["csv", "json"] {
        let mut child = tracebraid()
            .args(["executions", "sql", database(), endless, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut first = [0; 100];
        std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut first)
            .expect("rows are printed");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the binary ends");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
    assert!(run(&["executions", "sql", "--help"]).status.success());
}
