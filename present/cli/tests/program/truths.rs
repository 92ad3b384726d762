//! Sums that must agree: the time of all CPUs is fully accounted for, and reports match the known
//! work of the recorded programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::support::{recorded, text};
use serde_json::Value;

/// Recordings in the repository: archive and trace.
const RECORDINGS: [(&str, &str); 7] = [
    ("kernel-mix-small", "kernel-mix-small"),
    ("kernel-ust-requests", "kernel-ust-requests"),
    ("kernel-discarded", "kernel-discarded"),
    ("twohost", "twohost-client"),
    ("twohost", "twohost-server"),
    ("perf-mix", "perf-mix"),
    ("perf-memory", "perf-memory"),
];

fn path(archive: &str, name: &str) -> String {
    let path: PathBuf = recorded(archive).join(name);
    path.to_str().expect("UTF-8").to_owned()
}

fn json(command: &str, arguments: &[&str], trace: &str) -> Value {
    let arguments = [&[command, "--format", "json"], arguments, &[trace]].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn rows<'r>(report: &'r Value, key: &str) -> &'r [Value] {
    report[key].as_array().expect("rows")
}

fn number(row: &Value, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {row}"))
}

fn sum(rows: &[Value], key: &str) -> u64 {
    rows.iter().map(|row| number(row, key)).sum()
}

/// A CSV file beside a recording, as rows by column name.
fn truth(archive: &str, name: &str, file: &str) -> Vec<BTreeMap<String, String>> {
    let path = recorded(archive).join(format!("{name}.truth")).join(file);
    let content = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = content
        .lines()
        .map(|line| line.split(',').map(str::to_owned));
    let head: Vec<String> = lines.next().expect("a head").collect();
    lines
        .map(|line| head.iter().cloned().zip(line).collect())
        .collect()
}

/// Time of threads, idle time and unknown time add up to the time of all CPUs, to the nanosecond;
/// also for a part of the time, and for one CPU.
#[test]
fn all_time_is_somebodys() {
    for (archive, name) in RECORDINGS {
        let trace = path(archive, name);
        for part in [
            &[][..],
            &["--from", "+1ms", "--to", "+4ms"],
            &["--cpu", "1"],
        ] {
            let report = json("cpu", part, &trace);
            let duration = number(&report, "duration_ns");
            let cpus = rows(&report, "cpus");
            for cpu in cpus {
                let all = ["active_ns", "idle_ns", "unknown_ns"].map(|key| number(cpu, key));
                assert_eq!(all.iter().sum::<u64>(), duration, "{name} {part:?}: {cpu}");
            }
            let threads = sum(rows(&report, "threads"), "active_ns");
            let total = &report["total"];
            assert_eq!(
                threads + number(total, "idle_ns") + number(total, "unknown_ns"),
                cpus.len() as u64 * duration,
                "{name} {part:?}"
            );
            assert_eq!(
                sum(rows(&report, "processes"), "active_ns"),
                threads,
                "{name} {part:?}"
            );
            let tree = json("processes", part, &trace);
            assert_eq!(
                number(&tree["total"], "active_ns"),
                threads,
                "{name} {part:?}"
            );
            assert!(
                duration > 0 && !cpus.is_empty(),
                "{name} has times to add up"
            );
        }
    }
}

/// Calls, bytes read and bytes written through descriptors of a type, in processes with a name.
fn moved(io: &Value, name: &str, kind: &str) -> [u64; 3] {
    let mut sums = [0; 3];
    for process in rows(io, "processes")
        .iter()
        .filter(|row| row["name"] == name)
    {
        for of_type in rows(process, "types")
            .iter()
            .filter(|row| row["type"] == kind)
        {
            let keys = ["calls", "read_bytes", "written_bytes"];
            let own = keys.map(|key| number(of_type, key));
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
    }
    sums
}

/// Two `dd` wrote 48 blocks of 64 KiB each. `ab -n 500` got a file of 40 KiB from nginx, which
/// sends each file with one `sendfile`; `ab` receives all of it.
#[test]
fn dd_nginx_and_ab() {
    let trace = path("kernel-mix-small", "kernel-mix-small");
    let io = json("io", &[], &trace);
    let writers: Vec<_> = [281, 282]
        .iter()
        .filter_map(|tid| rows(&io, "processes").iter().find(|row| row["pid"] == *tid))
        .collect();
    assert_eq!(writers.len(), 2);
    for writer in writers {
        assert_eq!(writer["name"], "dd");
        let said = number(writer, "written_bytes") - 48 * 65_536;
        assert!((50..150).contains(&said), "the final output: {said} bytes");
    }
    let [_, from_files, _] = moved(&io, "nginx", "file");
    assert_eq!(from_files, 500 * 40_960);
    let ([_, asked, sent], [_, received, asks]) =
        (moved(&io, "nginx", "network"), moved(&io, "ab", "network"));
    assert_eq!((sent, asked), (received, asks));
    let head = (sent - 500 * 40_960) / 500;
    assert!(
        (100..400).contains(&head),
        "each answer has a head of {head} bytes"
    );
    let calls = json("syscalls", &["--syscall", "sendfile*"], &trace);
    assert_eq!(number(&calls["total"], "calls"), 500);
    assert_eq!(number(&calls["total"], "errors"), 0);
}

/// Requests of the client and their answers have 64 bytes; requests of kind RPC are forwarded to
/// another server.
#[test]
fn requests_of_64_bytes() {
    for (archive, client, server) in [
        (
            "kernel-ust-requests",
            "kernel-ust-requests",
            "kernel-ust-requests",
        ),
        ("twohost", "twohost-client", "twohost-server"),
    ] {
        let requests = truth(archive, client, "client.csv");
        let count = requests.len() as u64;
        let rpc = requests.iter().filter(|row| row["op"] == "RPC").count() as u64;
        assert!(count >= 2000 && rpc > 500);
        let io = json("io", &[], &path(archive, client));
        assert_eq!(
            moved(&io, "client-tx", "network"),
            [2 * count, 64 * count, 64 * count],
            "{client}"
        );
        let io = json("io", &[], &path(archive, server));
        assert_eq!(
            moved(&io, "dispatcher", "network"),
            [2 * rpc, 64 * rpc, 64 * rpc],
            "{server}"
        );
    }
}

/// The CPU time that worker threads measured while they served requests is at most that in the
/// trace, which also includes the time between requests.
#[test]
fn cpu_time_of_workers() {
    for (archive, name) in [
        ("kernel-ust-requests", "kernel-ust-requests"),
        ("twohost", "twohost-server"),
    ] {
        let mut measured: BTreeMap<i64, u64> = BTreeMap::new();
        for row in truth(archive, name, "requests.csv") {
            let tid = row["tid"].parse().expect("a number");
            *measured.entry(tid).or_default() +=
                row["thread_cpu_ns"].parse::<u64>().expect("a number");
        }
        let cpu = json("cpu", &[], &path(archive, name));
        for (tid, least) in measured {
            let threads = rows(&cpu, "threads");
            let thread = threads
                .iter()
                .find(|row| row["tid"] == tid)
                .expect("the worker");
            let active = number(thread, "active_ns");
            assert!(least > 1_000_000_000, "{name}: {tid} worked");
            assert!(
                (least..least + least / 20).contains(&active),
                "{name}: {tid} measured {least} ns, the trace has {active} ns"
            );
        }
    }
}

/// One wrong bit in a timestamp makes a 32-bit clock run ahead. This is reported, does not change
/// the times of other packets, and does not depend on how the trace is cut into chunks.
#[test]
fn a_clock_that_runs_ahead() {
    let directory = tempfile::tempdir().expect("a directory");
    let recorded = PathBuf::from(path("kernel-mix-small", "kernel-mix-small")).join("kernel");
    for entry in std::fs::read_dir(recorded).expect("a trace") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_file() {
            std::fs::copy(entry.path(), directory.path().join(entry.file_name())).expect("a copy");
        }
    }
    let stream = directory.path().join("kchan_2");
    let mut bytes = std::fs::read(&stream).expect("a stream");
    bytes[909_420] ^= 1 << 6;
    std::fs::write(&stream, bytes).expect("the stream is written");
    let trace = directory.path().to_str().expect("UTF-8");

    let strict = crate::support::tracebraid()
        .args(["cpu", "--strict", trace])
        .output();
    let strict = strict.expect("the binary runs");
    let told = String::from_utf8_lossy(&strict.stderr).into_owned();
    assert!(
        told.contains("timestamps run past the end of the packet"),
        "{told}"
    );
    assert_eq!(strict.status.code(), Some(1));

    let cpu = json("cpu", &[], trace);
    for row in rows(&cpu, "cpus") {
        let all = number(row, "active_ns") + number(row, "idle_ns") + number(row, "unknown_ns");
        assert_eq!(all, number(&cpu, "duration_ns"), "{row}");
    }
    for report in [
        "cpu",
        "processes",
        "io",
        "files",
        "syscalls",
        "waits",
        "sched",
        "irq",
        "disk",
        "net",
    ] {
        let whole = text(&[report, "--format", "json", "-j", "1", trace]);
        let cut = ["--format", "json", "-j", "2", "--chunk-size", "4096"];
        assert_eq!(
            text(&[&[report], &cut[..], &[trace]].concat()),
            whole,
            "{report}"
        );
    }
}
