//! `files` as users call it, on a recorded kernel trace.

use crate::support::{failure, recorded, recorded_trace, run, text};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    let all = [&["files", "--format", "json"], arguments].concat();
    serde_json::from_str(&text(&all)).expect("JSON")
}

fn rows<'v>(report: &'v Value, section: &str) -> &'v Vec<Value> {
    report[section].as_array().expect("a section")
}

#[test]
fn tables() {
    let trace = trace();
    for view in ["stats", "top", "log", "freq"] {
        let shown = text(&["files", "--view", view, "--top", "4", "--clock-gmt", &trace]);
        insta::assert_snapshot!(format!("files-{view}"), shown);
    }
}

#[test]
fn in_json_and_csv() {
    let trace = trace();
    let report = json(&[&trace]);
    assert_eq!(report["total"]["calls"], 19_377);
    let files = rows(&report, "files");
    let served = files.iter().find(|row| row["path"] == "/scratch/www/f.bin");
    let served = served.expect("the file that nginx serves");
    // 500 requests of 40 KiB each, half of them served by another process.
    assert_eq!(served["read_bytes"], 500 * 40_960);
    assert_eq!(
        (&served["opens"], &served["processes"]),
        (&500.into(), &2.into())
    );
    assert_eq!(served["user"]["name"], "nginx");
    let classes = rows(&report, "classes");
    let sync = classes
        .iter()
        .find(|row| row["class"] == "sync")
        .expect("sync");
    assert_eq!(
        (&sync["count"], &sync["max_ns"]),
        (&299.into(), &25_655_088.into())
    );
    let slowest = &rows(&report, "slowest_write")[0];
    assert_eq!(slowest["duration_ns"], 42_085_414);
    assert_eq!(slowest["path"], "/scratch/dd1");
    assert_eq!((&slowest["tid"], &slowest["fd"]), (&281.into(), &1.into()));
    let csv = text(&["files", "--format", "csv", "--top", "3", &trace]);
    assert!(
        csv.starts_with(
            "path,type,read_bytes,written_bytes,calls,errors,opens,average_ns,p99_ns,max_ns,"
        ),
        "{csv}"
    );
    assert!(
        csv.contains("\n/scratch/www/f.bin,file,20480000,0,500,0,500,540071.598,"),
        "{csv}"
    );
}

#[test]
fn connections_have_addresses() {
    let report = json(&["--path", "socket*", &trace()]);
    let names: Vec<_> = rows(&report, "files")
        .iter()
        .map(|row| &row["path"])
        .collect();
    assert!(
        names.contains(&&"socket 127.0.0.1:8080".into()),
        "{names:?}"
    );
    assert!(
        names.contains(&&"socket from 127.0.0.1".into()),
        "{names:?}"
    );
}

#[test]
fn what_is_chosen() {
    let trace = trace();
    let large = json(&[
        "--minsize",
        "64k",
        "--maxsize",
        "64k",
        "--view",
        "log",
        &trace,
    ]);
    let log = rows(&large, "log");
    let sized: Vec<_> = log.iter().filter(|row| !row["bytes"].is_null()).collect();
    assert!(sized.len() > 100 && sized.iter().all(|row| row["bytes"] == 65_536));
    // Calls without a size are not filtered by size.
    assert!(log.iter().any(|row| row["class"] == "open"));
    let one = json(&[
        "--path",
        "/dev/zero",
        "--min",
        "1ms",
        "--view",
        "stats,log",
        &trace,
    ]);
    assert!(
        rows(&one, "files")
            .iter()
            .all(|row| row["path"] == "/dev/zero")
    );
    let log = rows(&one, "log");
    assert!(
        !log.is_empty()
            && log
                .iter()
                .all(|row| row["duration_ns"].as_u64() >= Some(1_000_000))
    );
    let (code, message) = failure(&["files", "--minsize", "much", &trace]);
    assert_eq!(code, 2);
    assert!(message.contains("expected a number of bytes"), "{message}");
}

#[test]
fn disks_choose_sizes_too() {
    let trace = trace();
    let log = |arguments: &[&str]| -> Vec<u64> {
        let all = [
            &["disk", "--view", "log", "--format", "json"],
            arguments,
            &[&trace],
        ]
        .concat();
        let report: Value = serde_json::from_str(&text(&all)).expect("JSON");
        let data = rows(&report, "log")
            .iter()
            .filter(|row| row["kind"] == "write");
        data.map(|row| row["bytes"].as_u64().expect("bytes"))
            .collect()
    };
    let within = |bytes: &u64| (8192..=65_536).contains(bytes);
    let expected: Vec<u64> = log(&[]).into_iter().filter(within).collect();
    assert!(expected.len() > 10 && expected.contains(&8192));
    assert_eq!(log(&["--minsize", "8k", "--maxsize", "64k"]), expected);
}

#[test]
fn lami() {
    let trace = trace();
    let results: Value =
        serde_json::from_str(&text(&["files", "--format", "lami", &trace])).expect("JSON");
    let tables = results["results"].as_array().expect("tables");
    let table = tables
        .iter()
        .find(|table| table["class"] == "slowest_write")
        .expect("a table");
    let row = table["data"][0].as_array().expect("a row");
    assert!(
        row.contains(&serde_json::json!({ "class": "path", "path": "/scratch/dd1" })),
        "{row:?}"
    );
    assert!(
        row.contains(&serde_json::json!({ "class": "fd", "fd": 1 })),
        "{row:?}"
    );
    assert!(
        row.contains(&serde_json::json!({ "class": "size", "value": 65_536 })),
        "{row:?}"
    );
    let metadata: Value = serde_json::from_str(&text(&["files", "--metadata"])).expect("JSON");
    for class in [
        "files",
        "classes",
        "process_files",
        "slowest_read",
        "log",
        "distribution",
    ] {
        assert!(metadata["table-classes"].get(class).is_some(), "{class}");
    }
}

#[test]
fn threads_and_chunks_do_not_matter() {
    let trace = trace();
    let with = |threads: &str, chunk: &str| {
        let views = [
            "files",
            "--view",
            "stats,top,log,freq",
            "--format",
            "json",
            "-j",
            threads,
        ];
        text(&[&views[..], &["--chunk-size", chunk, &trace]].concat())
    };
    let expected = with("1", "1G");
    for (threads, chunk) in [("1", "1"), ("2", "64K"), ("8", "300K")] {
        assert!(
            expected == with(threads, chunk),
            "{threads} threads, chunks of {chunk}"
        );
    }
}

#[test]
fn traces_that_tell_nothing_of_it() {
    let user_space = recorded("ust-cyg-profile").join("ust-cyg-profile");
    let output = run(&["files", user_space.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(0));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("enable system calls"), "{errors}");
}
