//! Every call and every command of a program that counts them is in the trace, and the program sees
//! no difference.

use serde_json::Value;

use crate::counted::{WAYS, built, run, same};
use crate::support::text;

#[test]
fn every_call_and_command_is_recorded_and_nothing_changes() {
    let Some(program) = built("calls") else {
        return;
    };
    let plain = run(&program, &[], None, &[]);
    let counted = plain.counts.len();
    assert!(counted > 30, "{:?}", plain.output);
    for before in WAYS {
        let recorded = run(&program, &[], Some(&["--gpu"]), before);
        same(&plain, &recorded);
        recorded.is_complete();
        let events = recorded.events();
        let kernels = &events["lttng_ust_opencl_arguments:kernel_info"];
        let names: Vec<&str> = kernels
            .iter()
            .map(|kernel| kernel["payload"]["function_name"].as_str().unwrap())
            .collect();
        assert!(
            names.contains(&"fill") && names.contains(&"add"),
            "{names:?}"
        );
        assert!(events["tracebraid_opencl:queue"].len() >= 3);
    }
}

/// The report of two processes, each of which does the same three times.
#[test]
fn the_report_counts_what_the_programs_did_for_all_threads_and_chunks() {
    let Some(program) = built("calls") else {
        return;
    };
    let twice = "\"$1\" \"$2\" >/dev/null & \"$1\" \"$2\"; wait";
    let recorded = run(
        &program,
        &[],
        Some(&["--gpu"]),
        &["sh", "-c", twice, "twice"],
    );
    // Both append their counts to one file.
    let commands = recorded.counts["commands"] / 2;
    let trace = recorded.directory.path().join("trace");
    let trace = trace.to_str().expect("UTF-8");
    let report =
        |options: &[&str]| text(&[&["gpu", "--format", "json"], options, &[trace]].concat());
    let expected = report(&["-j", "1", "--chunk-size", "1G"]);
    for (threads, chunk) in [("1", "1"), ("2", "64"), ("8", "1000")] {
        let found = report(&["-j", threads, "--chunk-size", chunk]);
        assert!(found == expected, "{threads} threads, chunks of {chunk}");
    }
    let report: Value = serde_json::from_str(&expected).expect("JSON");
    let total = |key: &str| report["total"][key].as_u64().expect("a number") as usize;
    assert_eq!(total("commands"), 2 * commands);
    for key in ["errors", "unfinished", "unprofiled", "without_call"] {
        assert_eq!(total(key), 0, "{key}");
    }
    let rows = |table: &str| report[table].as_array().expect("rows").clone();
    let sum = |table: &str, key: &str, is_wanted: &dyn Fn(&Value) -> bool| -> u64 {
        let rows = rows(table);
        let wanted = rows.iter().filter(|row| is_wanted(row));
        wanted.map(|row| row[key].as_u64().expect("a number")).sum()
    };
    let all = |table: &str, key: &str| sum(table, key, &|_| true);
    assert_eq!(all("queues", "commands"), 2 * commands as u64);
    // In each of three turns: a kernel that fills and two that add, of 4,096 items.
    for (kernel, count) in [("fill", 1), ("add", 2)] {
        let is_it = |row: &Value| row["kernel"] == kernel;
        assert_eq!(
            sum("kernels", "commands", &is_it),
            2 * 3 * count,
            "{kernel}"
        );
        assert_eq!(
            sum("kernels", "items", &is_it),
            2 * 3 * count * 4096,
            "{kernel}"
        );
    }
    for (kind, bytes) in [
        ("write", 2 * 4096 * 4),
        ("read", 256 * 4),
        ("copy", 4096 * 4),
        ("fill", 256),
    ] {
        let is_it = |row: &Value| row["kind"] == kind;
        assert_eq!(sum("transfers", "bytes", &is_it), 2 * 3 * bytes, "{kind}");
    }
    let calls: usize = recorded.counts.values().sum();
    assert_eq!(all("functions", "calls"), (calls - 2 * commands) as u64);
    // Times of each kind of wait are those of the commands.
    let waits = ["host_queue_ns", "device_queue_ns", "execution_ns"].map(|key| all("queues", key));
    let results = &recorded.events()["lttng_ust_opencl_profiling:event_profiling_results"];
    let between = |from: &str, to: &str| -> u64 {
        let time = |row: &Value, key: &str| row["payload"][key].as_u64().expect("a time");
        results
            .iter()
            .map(|row| time(row, to) - time(row, from))
            .sum()
    };
    let expected = [("queued", "submit"), ("submit", "start"), ("start", "end")];
    assert_eq!(waits, expected.map(|(from, to)| between(from, to)));
    // PoCL has a clock of the host: the bounds cannot be wider than the calls.
    for device in rows("clocks") {
        assert_ne!(device["relation"], "fail", "{device}");
        assert!(
            device["error_ns"].as_u64().expect("bounds") < 100_000_000,
            "{device}"
        );
    }
}

/// A thousand queues hide their profiling; calls within calls, 300 deep, all count, for all chunks.
#[test]
fn many_queues_and_deep_calls_are_recorded() {
    let Some(program) = built("many") else {
        return;
    };
    let plain = run(&program, &[], None, &[]);
    let recorded = run(&program, &[], Some(&["--gpu"]), &[]);
    same(&plain, &recorded);
    recorded.has_all_calls();
    let report = |options: &[&str]| -> Value {
        let trace = recorded.trace();
        let command = ["gpu", "--format", "json", "--top", "0", &trace];
        serde_json::from_str(&text(&[&command, options].concat())).expect("JSON")
    };
    let whole = report(&[]);
    let calls = whole["functions"].as_array().expect("rows").iter();
    let calls = calls.map(|row| row["calls"].as_u64().expect("a number"));
    let counted = recorded.counts.iter();
    let counted = counted.filter(|(name, _)| *name != "commands");
    let counted: usize = counted.map(|(_, count)| count).sum();
    assert_eq!(calls.sum::<u64>(), counted as u64);
    assert_eq!(report(&["--chunk-size", "4K"]), whole);
}
