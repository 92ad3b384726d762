//! `critical-path` as users call it, on a recorded trace.

use crate::support::{failure, recorded_trace, text, tracebraid};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-ust-requests")
}

fn json(arguments: &[&str]) -> Value {
    let trace = trace();
    let arguments = [
        &["critical-path", "--format", "json"],
        arguments,
        &[trace.as_str()],
    ]
    .concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn the_longest_calls_as_tables() {
    let mut command = tracebraid();
    command.env("TRACEBRAID_COLUMNS", "100");
    let arguments = [
        "critical-path",
        "--longest",
        "fdatasync",
        "--top",
        "2",
        "--clock-gmt",
    ];
    let output = command.args(arguments).arg(trace()).output();
    let text = String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8");
    let mut lines = text.lines();
    let first = "Critical path of fdatasync of worker-2 (317): 305.352 ms from 2026-11-21 01:34:36.248979297";
    assert_eq!(lines.next(), Some(first));
    for part in [
        "  178.382 ms  fdatasync fd 35, woken by jbd2/vdc-8 (206)\n",
        "  177.798 ms    block-device: vdc\n",
        "206   jbd2/vdc-8\n",
        // The thread that slowed the disk.
        "296   diskwriter\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("Critical path of ").count(), 2, "{text}");
}

/// Messages for empty results contain a remedy.
#[test]
fn what_is_not_there_is_told_with_a_remedy() {
    let trace = trace();
    let said = |arguments: &[&str]| {
        let (code, said) = failure(&[&["critical-path", trace.as_str()], arguments].concat());
        assert_eq!(code, 0, "{said}");
        said
    };
    for (arguments, expected) in [
        (&["--longest", "5"][..], "--top 5 sets how many"),
        (
            &["--longest", "read,nosuch*,5", "--from", "+3600s"],
            "the range is outside the trace, which lasts from",
        ),
        (&["--longest", "nosuch*"], "tracebraid syscalls"),
        (&["--tid", "99999"], "thread 99999 does not exist"),
        (&["--process", "nosuch"], "tracebraid processes"),
    ] {
        let said = said(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    // 0 selects all paths.
    let all = json(&["--process", "worker*", "--top", "0"]);
    assert!(all["paths"].as_array().is_some_and(|paths| paths.len() > 1));
    let all = json(&["--longest", "fsync,fdatasync", "--top", "0"]);
    assert_eq!(all["paths"].as_array().map(Vec::len), Some(871));
}

#[test]
fn all_ways_to_add_up_give_the_same() {
    let report = json(&["--longest", "fdatasync,futex", "--top", "7"]);
    let paths = report["paths"].as_array().expect("paths");
    assert_eq!(paths.len(), 7);
    let mut before = u64::MAX;
    for path in paths {
        let whole = number(&path["duration_ns"]);
        assert!(whole <= before, "the longest come first");
        before = whole;
        assert_eq!(number(&path["end_ns"]) - number(&path["begin_ns"]), whole);
        assert_eq!(number(&path["tree"]["duration_ns"]), whole);
        for list in ["reasons", "threads", "segments"] {
            let rows = path[list].as_array().expect("rows");
            let sum: u64 = rows.iter().map(|row| number(&row["duration_ns"])).sum();
            assert_eq!(sum, whole, "{list}");
        }
        let mut at = number(&path["begin_ns"]);
        for segment in path["segments"].as_array().expect("segments") {
            assert_eq!(number(&segment["begin_ns"]), at);
            at += number(&segment["duration_ns"]);
        }
    }
}

#[test]
fn stacks_and_rows_are_of_the_same_path() {
    let trace = trace();
    let asked = ["--tid", "314", "--from", "+10s", "--to", "+500ms"];
    let of = |format| {
        let arguments = [
            &["critical-path", "--format", format],
            &asked[..],
            &[trace.as_str()],
        ]
        .concat();
        text(&arguments)
    };
    let folded = of("folded");
    let last = |line: &str| {
        line.rsplit(' ')
            .next()
            .expect("a number")
            .parse::<u64>()
            .expect("a number")
    };
    assert_eq!(folded.lines().map(last).sum::<u64>(), 500_000_000);
    assert!(
        folded
            .lines()
            .all(|line| line.starts_with("worker-1 (314);")),
        "{folded}"
    );
    let csv = of("csv");
    let duration = |line: &str| {
        line.split(',')
            .nth(2)
            .expect("a column")
            .parse::<u64>()
            .expect("a number")
    };
    assert_eq!(csv.lines().skip(1).map(duration).sum::<u64>(), 500_000_000);
}

#[test]
fn a_file_for_perfetto_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("path.perfetto-trace");
    let file = file.to_str().expect("UTF-8");
    text(&[
        "critical-path",
        "--process",
        "cpuhog",
        "--top",
        "1",
        "--perfetto",
        file,
        &trace(),
    ]);
    let bytes = std::fs::read(file).expect("the file was written");
    // The file begins with a packet.
    assert_eq!(bytes.first(), Some(&0x0a));
    assert!(memchr::memmem::find(&bytes, b"Critical path: cpuhog").is_some());
}

#[test]
fn whose_path_must_be_said() {
    let (code, said) = failure(&["critical-path", &trace()]);
    assert_eq!(code, 2);
    assert!(
        said.contains("--tid") && said.contains("--longest"),
        "{said}"
    );
}

/// The given range ends within a wait, whose end is found in the events after it.
#[test]
fn waits_that_go_on_at_the_end_are_explained() {
    let whole = json(&["--longest", "fdatasync", "--top", "1"]);
    let path = &whole["paths"][0];
    let (begin, end) = (number(&path["begin_ns"]), number(&path["end_ns"]));
    let tid = path["thread"]["tid"].to_string();
    for part in [2, 5, 8] {
        let until = begin + (end - begin) / 10 * part;
        let (from, to) = (format!("{begin}ns"), format!("{until}ns"));
        let report = json(&["--tid", &tid, "--from", &from, "--to", &to]);
        let segments = report["paths"][0]["segments"].as_array().expect("segments");
        let last = segments.last().expect("a part");
        let last_end = number(&last["begin_ns"]) + number(&last["duration_ns"]);
        assert!(until.abs_diff(last_end) <= 1, "{last}");
        let known = |segment: &&Value| {
            !matches!(
                segment["reason"].as_str(),
                Some("unknown" | "still-waiting")
            )
        };
        let known: u64 = segments
            .iter()
            .filter(known)
            .map(|segment| number(&segment["duration_ns"]))
            .sum();
        assert!(
            known * 100 >= (until - begin) * 99,
            "{known} of {}",
            until - begin
        );
    }
}

#[test]
fn who_dies_wakes_whoever_waits_for_it() {
    let trace = crate::support::recorded_trace("kernel-ust-requests");
    let waits = text(&[
        "critical-path",
        "--longest",
        "wait4",
        "--top",
        "5",
        "--format",
        "csv",
        &trace,
    ]);
    assert!(waits.lines().count() > 20, "{waits}");
    // Its sockets had been closed, and packets for them arrived.
    assert!(!waits.contains("network"), "{waits}");
}
