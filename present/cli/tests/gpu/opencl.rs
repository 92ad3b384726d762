//! Every call and every command of a program that counts them is in the trace, and the program sees
//! no difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{compiled_with, libraries, skipped, text, tracebraid};

const SOURCE: &str = include_str!("programs/calls.c");

/// Whether OpenCL is installed; prints a message if not.
pub(crate) fn is_installed() -> bool {
    let is_installed = Path::new("/usr/include/CL/cl.h").is_file();
    if !is_installed {
        skipped(format_args!(
            "OpenCL is not installed: opencl-headers, ocl-icd-opencl-dev, pocl-opencl-icd"
        ));
    }
    is_installed
}

/// The program; `None`, with a message, where OpenCL is not installed.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if !is_installed() {
            return None;
        }
        let directory = TempDir::new().expect("a temporary directory");
        let program = compiled_with(directory.path(), "calls", SOURCE, &["-lOpenCL"]);
        Some((directory, program))
    });
    built.as_ref().map(|(_, program)| program.as_path())
}

struct Run {
    output: Output,
    /// Numbers of calls by function, and of commands.
    counts: BTreeMap<String, usize>,
    directory: TempDir,
}

impl Run {
    fn said(&self) -> &str {
        assert!(self.output.status.success(), "{:?}", self.output);
        std::str::from_utf8(&self.output.stdout).expect("UTF-8")
    }

    /// The event records, by name.
    fn events(&self) -> BTreeMap<String, Vec<Value>> {
        let trace = self.directory.path().join("trace");
        let lines = text(&["print", "--format", "json", trace.to_str().expect("UTF-8")]);
        let mut events: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in lines.lines() {
            let event: Value = serde_json::from_str(line).expect("JSON");
            let name = event["name"].as_str().expect("a name").to_owned();
            events.entry(name).or_default().push(event);
        }
        events
    }
}

/// Runs the program, under `record` with these options if there are any; `before` is a program that
/// starts it.
fn run(program: &Path, record: Option<&[&str]>, before: &[&str]) -> Run {
    let directory = TempDir::new().expect("a temporary directory");
    let counts = directory.path().join("counts");
    let mut command = match record {
        None => std::process::Command::new(program),
        Some(options) => {
            let mut command = tracebraid();
            command.env("TRACEBRAID_LIBRARIES", libraries());
            command.args(["record", "--kernel", "none", "--syscalls", "none"]);
            command
                .args(options)
                .arg("-o")
                .arg(directory.path().join("trace"));
            command.arg("--").args(before).arg(program);
            command
        }
    };
    // Compiled kernels are kept here, so that no run differs by the state of a cache.
    command.env("POCL_CACHE_DIR", program.parent().expect("a directory"));
    let output = command.arg(&counts).output().expect("the program runs");
    let counts = fs::read_to_string(counts).unwrap_or_default();
    let counts = counts.lines().filter_map(|line| line.split_once(' '));
    let counts = counts.map(|(name, count)| (name.to_owned(), count.parse().expect("a number")));
    Run {
        counts: counts.collect(),
        output,
        directory,
    }
}

/// The lines that the program, and not `record`, wrote.
fn same(plain: &Run, recorded: &Run) {
    assert_eq!(recorded.said(), plain.said());
    assert_eq!(recorded.counts, plain.counts);
}

fn all_is_recorded(run: &Run) {
    let events = run.events();
    let count = |name: &str| events.get(name).map_or(0, Vec::len);
    for (function, calls) in &run.counts {
        if function == "commands" {
            continue;
        }
        for edge in ["entry", "exit"] {
            let name = format!("lttng_ust_opencl:{function}_{edge}");
            assert_eq!(count(&name), *calls, "{name}");
        }
    }
    let results = &events["lttng_ust_opencl_profiling:event_profiling_results"];
    assert_eq!(results.len(), run.counts["commands"]);
    for result in results {
        let fields = &result["payload"];
        let times = ["queued", "submit", "start", "end"].map(|key| fields[key].as_u64().unwrap());
        assert!(times.is_sorted() && times[0] > 0, "{result}");
        assert_eq!(fields["event_command_exec_status"], 0, "{result}");
    }
    let kernels = &events["lttng_ust_opencl_arguments:kernel_info"];
    let names: Vec<&str> = kernels
        .iter()
        .map(|kernel| kernel["payload"]["function_name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"fill") && names.contains(&"add"),
        "{names:?}"
    );
    assert!(count("tracebraid_opencl:queue") >= 3);
    assert!(count("tracebraid_opencl:device") >= 1);
}

#[test]
fn every_call_and_command_is_recorded_and_nothing_changes() {
    let Some(program) = program() else { return };
    let plain = run(program, None, &[]);
    let counted = plain.counts.len();
    assert!(counted > 30, "{}", plain.said());
    // By both ways, as a layer only, and by exported functions only.
    let ways = [
        &[][..],
        &["env", "-u", "LD_PRELOAD"],
        &["env", "-u", "OPENCL_LAYERS"],
    ];
    for before in ways {
        let recorded = run(program, Some(&["--gpu"]), before);
        same(&plain, &recorded);
        all_is_recorded(&recorded);
    }
}

/// The report of two processes, each of which does the same three times.
#[test]
fn the_report_counts_what_the_programs_did_for_all_threads_and_chunks() {
    let Some(program) = program() else { return };
    let twice = "\"$1\" \"$2\" >/dev/null & \"$1\" \"$2\"; wait";
    let recorded = run(program, Some(&["--gpu"]), &["sh", "-c", twice, "twice"]);
    let commands = recorded.counts["commands"];
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
    assert_eq!(all("functions", "calls"), 2 * (calls - commands) as u64);
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
