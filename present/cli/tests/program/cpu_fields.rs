//! A trace of perf's first converter: one stream for all CPUs, with the CPU in a field. The trace
//! crosses midnight.

use std::path::Path;

use serde_json::Value as Json;

use crate::support::{run, text};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
env { domain = "kernel"; tracer_name = "perf"; release = "4.1.0"; };
clock { name = "perf_clock"; freq = 1000000000; offset_s = 1795305590; };
typealias integer { size = 64; align = 8; signed = false; map = clock.perf_clock.value; } := stamp;
stream { id = 0; packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; };
    event.header := struct { u32 id; stamp timestamp; }; };
event { name = "sched:sched_switch"; id = 0; stream_id = 0; fields := struct { u64 perf_ip; u32 perf_tid; u32 perf_pid; u32 perf_cpu;
    u32 prev_pid; u64 prev_state; u32 next_pid; }; };
"#;

const SECOND: u64 = 1_000_000_000;

/// One switch a second, on CPUs 0 to 3 in turn, from thread 10 + CPU to the idle one and back.
fn write(directory: &Path) -> String {
    let mut body = Vec::new();
    for at in 0..20u64 {
        let cpu = at % 4;
        let thread = 10 + cpu;
        let (prev, next) = if at / 4 % 2 == 0 {
            (thread, 0)
        } else {
            (0, thread)
        };
        body.extend(0u32.to_le_bytes());
        body.extend((at * SECOND).to_le_bytes());
        body.extend(0u64.to_le_bytes());
        for word in [prev, prev, cpu, prev] {
            body.extend((word as u32).to_le_bytes());
        }
        body.extend(u64::from(prev != 0).to_le_bytes());
        body.extend((next as u32).to_le_bytes());
    }
    let mut bytes = Vec::new();
    bytes.extend(0xC1FC_1FC1u32.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    let bits = (8 + 32 + body.len() as u64) * 8;
    for word in [0, 19 * SECOND, bits, bits] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(body);
    std::fs::write(directory.join("metadata"), METADATA).expect("a file");
    std::fs::write(directory.join("perf_stream"), bytes).expect("a file");
    directory.to_str().expect("UTF-8").to_owned()
}

fn json(arguments: &[&str]) -> Json {
    serde_json::from_str(&text(arguments)).expect("JSON")
}

/// A trace without CPU numbers: reports have a note, and `--cpu` explains why it matches nothing.
#[test]
fn a_trace_without_cpu_numbers_gets_a_note() {
    const NOTE: &str =
        "events do not contain a CPU number: each stream of the trace counts as a CPU";
    let directory = tempfile::tempdir().expect("a directory");
    let trace = write(directory.path());
    let nameless = METADATA.replace("perf_cpu", "perf_place");
    std::fs::write(directory.path().join("metadata"), nameless).expect("a file");
    let trace = trace.as_str();
    assert!(text(&["cpu", trace]).starts_with(NOTE));
    assert_eq!(
        json(&["cpu", "--format", "json", trace])["cpus_by_stream"],
        serde_json::json!([0])
    );
    for command in ["count", "print"] {
        let output = run(&[command, "--cpu", "2", trace]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("contain a CPU number; leave out --cpu"),
            "{command}: {said}"
        );
    }
    // A field of `sched_switch` is the CPU.
    let other = METADATA.replace("perf_cpu", "CPU");
    std::fs::write(directory.path().join("metadata"), other).expect("a file");
    assert!(!text(&["cpu", trace]).contains(NOTE));
    let count = json(&["count", "--format", "json", trace]);
    assert_eq!(
        count["by_cpu"],
        serde_json::json!({ "0": 5, "1": 5, "2": 5, "3": 5 })
    );
}

#[test]
fn the_cpu_is_found_among_the_fields() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = write(directory.path());
    let trace = trace.as_str();
    let count = json(&["count", "--format", "json", trace]);
    assert_eq!(
        count["by_cpu"],
        serde_json::json!({ "0": 5, "1": 5, "2": 5, "3": 5 })
    );
    for (select, expected) in [
        (&["--cpu", "3"][..], 5),
        (&["--cpu", "0-1"], 10),
        (&["--filter", "cpu == 2"], 5),
    ] {
        let lines = text(&[&["print"], select, &[trace]].concat());
        assert_eq!(lines.lines().count(), expected, "{select:?}");
    }
    let some = json(&["count", "--cpu", "3", "--format", "json", trace]);
    assert_eq!(
        (&some["events"], &some["by_cpu"]),
        (&5.into(), &serde_json::json!({ "3": 5 }))
    );
    // Each option alone.
    let some = json(&[
        "count", "--cpu", "3", "--tid", "13", "--format", "json", trace,
    ]);
    assert_eq!(some["by_cpu"], serde_json::json!({ "3": some["events"] }));
    let cpus = json(&["cpu", "--format", "json", trace]);
    let rows = cpus["cpus"].as_array().expect("CPUs");
    let switches: Vec<_> = rows
        .iter()
        .map(|row| (row["cpu"].clone(), row["switches"].clone()))
        .collect();
    assert_eq!(switches, [0, 1, 2, 3].map(|cpu| (cpu.into(), 5.into())));
    let lines = text(&["print", "--format", "json", trace]);
    for (at, line) in lines.lines().enumerate() {
        let line: Json = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["cpu"], at % 4);
    }
    let output = run(&["print", "--cpu", "7", trace]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the trace has CPUs 0-3"), "{said}");
}

/// No state dump names parents of threads, and no system calls were recorded.
#[test]
fn what_a_thread_does_is_unknown_where_nothing_records_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = write(directory.path());
    let history = directory.path().join("trace.history");
    let history = history.to_str().expect("UTF-8");
    text(&["history", "build", &trace, "-o", history]);
    let query = [
        "history",
        "query",
        history,
        "cpu/2/*",
        "--samples",
        "20",
        "--format",
        "csv",
    ];
    let rows = text(&query);
    let of = |attribute: &str| -> Vec<&str> {
        let rows = rows
            .lines()
            .filter_map(|row| row.split_once(&format!(",{attribute},")));
        rows.map(|(_, value)| value).collect()
    };
    let (threads, states) = (of("cpu/2/thread"), of("cpu/2/state"));
    assert!(threads.contains(&"12") && threads.contains(&"0"), "{rows}");
    for (thread, state) in threads.into_iter().zip(states) {
        assert_eq!(state, if thread == "0" { "idle" } else { "" }, "{rows}");
    }
}

#[test]
fn times_of_day_may_be_behind_midnight() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = write(directory.path());
    // The trace begins at 23:59:50 and has an event a second.
    for (range, expected) in [
        (&["--from", "00:00:00"][..], 10),
        (&["--to", "00:00:01"], 12),
        (&["--from", "23:59:55", "--to", "00:00:04"], 10),
        (&["--from", "23:00"], 20),
    ] {
        let lines = text(&[&["print", "--clock-gmt"], range, &[trace.as_str()]].concat());
        assert_eq!(lines.lines().count(), expected, "{range:?}");
    }
}
