//! `disk` and `net` as users call them, on a recorded kernel trace.

use crate::support::{recorded, recorded_trace, run, text};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(arguments)).expect("JSON")
}

fn rows<'v>(report: &'v Value, section: &str) -> &'v Vec<Value> {
    report[section].as_array().expect("a section")
}

#[test]
fn tables() {
    let trace = trace();
    insta::assert_snapshot!("disk", text(&["disk", "--top", "3", "--clock-gmt", &trace]));
    insta::assert_snapshot!("net", text(&["net", "--top", "3", "--clock-gmt", &trace]));
}

/// Requests without an end are counted for their disk: for several recordings together as for each
/// alone.
#[test]
fn unfinished_requests_are_of_the_disks_that_are_chosen() {
    let requests = recorded("kernel-ust-requests").join("kernel-ust-requests");
    for trace in [trace().as_str(), requests.to_str().expect("UTF-8")] {
        let unfinished = |disks: &[&str]| {
            let arguments = [&["disk", "--format", "json"], disks, &[trace]].concat();
            let report = json(&arguments);
            let names: Vec<String> = (rows(&report, "disks").iter())
                .map(|row| row["disk"].as_str().expect("a name").to_owned())
                .collect();
            (
                report["total"]["unfinished"].as_u64().expect("a number"),
                names,
            )
        };
        let (all, names) = unfinished(&[]);
        let each: Vec<u64> = names
            .iter()
            .map(|name| unfinished(&["--disk", name]).0)
            .collect();
        assert_eq!(each.iter().sum::<u64>(), all, "{names:?}: {each:?}");
        assert!(all > 0 && each.contains(&0), "some disk has none: {each:?}");
    }
}

#[test]
fn disk_in_json_and_csv() {
    let trace = trace();
    let report = json(&["disk", "--format", "json", &trace]);
    assert_eq!(report["total"]["requests"], 685);
    let disks = rows(&report, "disks");
    assert_eq!(disks.len(), 3);
    let vdc = disks
        .iter()
        .find(|row| row["disk"] == "vdc")
        .expect("the disk");
    assert_eq!(vdc["read_bytes"], 4_235_264);
    assert_eq!(vdc["written_bytes"], 8_323_072);
    assert_eq!(vdc["flush_sequences"], 73 + 18);
    let slowest = &rows(&report, "slowest")[0];
    assert_eq!(slowest["latency_ns"], 2_246_788);
    assert_eq!(
        (&slowest["disk"], &slowest["kind"]),
        (&"vdb".into(), &"write".into())
    );
    assert_eq!(slowest["tid"], 264);
    let csv = text(&["disk", "--format", "csv", &trace]);
    assert!(
        csv.starts_with("disk,requests,sectors,read_bytes,written_bytes,"),
        "{csv}"
    );
    assert!(csv.contains("\nvda,217,31064,15904768,0,0,"), "{csv}");
}

#[test]
fn disk_shows_what_is_chosen() {
    let trace = trace();
    let chosen = json(&["disk", "--disk", "vd[!a]", "--format", "json", &trace]);
    let names: Vec<_> = rows(&chosen, "disks")
        .iter()
        .map(|row| &row["disk"])
        .collect();
    assert_eq!(names, ["vdb", "vdc"]);
    let chosen = json(&[
        "disk",
        "--disk",
        "*a,nvme*",
        "--view",
        "stats,freq",
        "--format",
        "json",
        &trace,
    ]);
    assert_eq!(rows(&chosen, "disks").len(), 1);
    let counts = rows(&chosen, "distribution")
        .iter()
        .map(|row| row["count"].as_u64());
    assert_eq!(counts.sum::<Option<u64>>(), Some(217));
    assert!(chosen.get("slowest").is_none());
    let slow = json(&[
        "disk", "--min", "1ms", "--view", "log", "--format", "json", &trace,
    ]);
    let log = rows(&slow, "log");
    assert!(
        !log.is_empty()
            && log
                .iter()
                .all(|row| row["latency_ns"].as_u64() >= Some(1_000_000))
    );
    let issued: Vec<_> = log.iter().map(|row| row["issued_ns"].as_i64()).collect();
    assert_eq!(
        issued.len() as u64,
        slow["total"]["requests"].as_u64().unwrap_or(0) + flushes(&slow)
    );
    // The requests of one thread, and the disks as a whole.
    let one = json(&["disk", "--tid", "283", "--format", "json", &trace]);
    assert_eq!(rows(&one, "threads").len(), 1);
    assert_eq!(one["total"]["requests"], 685);
    assert!(rows(&one, "slowest").iter().all(|row| row["tid"] == 283));
    assert_eq!(rows(&one, "slowest").len(), 20);
}

fn flushes(report: &Value) -> u64 {
    let log = rows(report, "log").iter();
    log.filter(|row| row["kind"] == "flush").count() as u64
}

#[test]
fn net_in_json_and_csv() {
    let trace = trace();
    let report = json(&["net", "--format", "json", &trace]);
    let lo = &rows(&report, "interfaces")[0];
    assert_eq!(lo["interface"], "lo");
    assert_eq!(lo["sent_bytes"], 21_110_630);
    assert_eq!(lo["received_bytes"], 21_012_924);
    // Each packet is queued once, by one thread.
    let queued = rows(&report, "threads")
        .iter()
        .map(|row| row["packets"].as_u64());
    assert_eq!(queued.sum::<Option<u64>>(), Some(6979));
    let sum = |column: &str| -> u64 {
        let rows = rows(&report, "connections").iter();
        rows.filter_map(|row| row[column].as_u64()).sum()
    };
    assert_eq!(sum("a_to_b_packets") + sum("b_to_a_packets"), 6979);
    // The byte counts do not include the link layer's header.
    assert_eq!(sum("a_to_b_bytes") + sum("b_to_a_bytes"), 21_012_924);
    let csv = text(&["net", "--format", "csv", "--top", "2", &trace]);
    assert!(
        csv.starts_with("interface,sent_packets,sent_bytes,"),
        "{csv}"
    );
    let none = json(&["net", "--interface", "eth*", "--format", "json", &trace]);
    assert!(rows(&none, "interfaces").is_empty());
    let freq = json(&["net", "--view", "freq", "--format", "json", &trace]);
    let counts = rows(&freq, "distribution")
        .iter()
        .map(|row| row["count"].as_u64());
    assert_eq!(counts.sum::<Option<u64>>(), Some(6979));
}

#[test]
fn threads_and_chunks_do_not_matter() {
    let trace = trace();
    for command in ["disk", "net"] {
        let with = |threads: &str, chunk: &str| {
            text(&[
                command,
                "--view",
                "stats,top,log,freq",
                "--format",
                "json",
                "-j",
                threads,
                "--chunk-size",
                chunk,
                &trace,
            ])
        };
        let expected = with("1", "1G");
        for (threads, chunk) in [("1", "1"), ("2", "64K"), ("8", "300K")] {
            assert!(
                expected == with(threads, chunk),
                "{command}: {threads} threads, chunks of {chunk}"
            );
        }
    }
}

#[test]
fn traces_that_tell_nothing_of_it() {
    let user_space = recorded("ust-cyg-profile").join("ust-cyg-profile");
    let path = user_space.to_str().expect("UTF-8");
    for (command, words) in [("disk", "block_rq_issue"), ("net", "net_dev_xmit")] {
        let output = run(&[command, path]);
        assert_eq!(output.status.code(), Some(0));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(words), "{command}: {errors}");
    }
}
