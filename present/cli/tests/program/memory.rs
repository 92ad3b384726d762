//! `memory` as users call it, on a recorded trace of perf.

use crate::support::{recorded, recorded_trace, run, text, tracebraid};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("perf-memory")
}

fn json(arguments: &[&str]) -> Value {
    let trace = trace();
    let arguments = [
        &["memory", "--format", "json"],
        arguments,
        &[trace.as_str()],
    ]
    .concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

#[test]
fn tables() {
    let mut command = tracebraid();
    command.env("TRACEBRAID_COLUMNS", "80");
    let output = command.args(["memory", "--top", "3"]).arg(trace()).output();
    let text = String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("memory-80", text);
}

#[test]
fn json_and_csv() {
    let report = json(&[]);
    assert_eq!(report["total"]["allocated_pages"], 206);
    let first = &report["threads"][0];
    assert_eq!(
        (first["tid"].as_u64(), first["name"].as_str()),
        (Some(25960), Some("pages"))
    );
    assert_eq!(
        (
            first["allocated_pages"].as_u64(),
            first["balance_pages"].as_i64()
        ),
        (Some(141), Some(-47))
    );
    // The program touches 64 pages, and its child half of them again.
    assert!(report["faults"][0]["user_faults"].as_u64() >= Some(64));
    assert!(report["faults"][1]["user_faults"].as_u64() >= Some(32));
    let child = json(&["--tid", "25987"]);
    assert_eq!(child["threads"].as_array().map(Vec::len), Some(1));
    assert_eq!(child["totals"], report["totals"]);
    let csv = text(&["memory", "--format", "csv", &trace()]);
    assert!(
        csv.starts_with("what,threads,idle,unknown,all\nallocated_pages,206,0,0,206\n"),
        "{csv}"
    );
    let threads = "\nhost,pid,tid,name,allocated_pages,freed_pages,balance_pages,batched_pages,failed\n\
                   ,25960,25960,pages,141,188,-47,181,0\n";
    assert!(csv.contains(threads), "{csv}");
}

#[test]
fn machine_interface() {
    let metadata: Value =
        serde_json::from_str(&text(&["memory", "--format", "lami", "--metadata"])).expect("JSON");
    let classes = metadata["table-classes"].as_object().expect("classes");
    let results: Value =
        serde_json::from_str(&text(&["memory", "--format", "lami", &trace()])).expect("JSON");
    for table in results["results"].as_array().expect("tables") {
        let columns = &classes[table["class"].as_str().expect("a class")]["column-descriptions"];
        for row in table["data"].as_array().expect("rows") {
            assert_eq!(
                row.as_array().map(Vec::len),
                columns.as_array().map(Vec::len)
            );
        }
    }
}

/// The recordings lack one of the two kinds of events.
#[test]
fn traces_that_tell_nothing_of_it() {
    let kernel = recorded("kernel-mix-small").join("kernel-mix-small");
    let output = run(&["memory", kernel.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("enable kmem_mm_page_alloc and kmem_mm_page_free"),
        "{said}"
    );
}
