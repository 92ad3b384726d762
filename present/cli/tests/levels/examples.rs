//! The M:N thread library of `examples`: its log agrees with the recording, entry for entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::mn_truth::{TruthEntry, mn_truth};
use crate::recorded_schedule::{
    RecordedSchedule, ScheduleRecord, at, holds_about, kernel_runs, record_options,
};
use crate::support::{can_record_kernel, succeeds, tracebraid};

/// Times of probes follow the clock within 0.5 µs in the first millisecond of a process.
const CLOCK_ERROR: u64 = 1000;

/// Builds the library and its programs.
pub(crate) fn built(options: &[&str]) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut make = Command::new("make");
    make.args(["-C", examples]).args(options);
    make.arg(format!("OUT={}", directory.path().display()));
    succeeds(&make.output().expect("make"));
    directory
}

/// Records a program; returns the trace and the log.
pub(crate) fn recorded(directory: &Path, program: &str, arguments: &[&str]) -> (String, PathBuf) {
    let (trace, truth) = (directory.join("trace"), directory.join("truth"));
    let mut record = tracebraid();
    record.arg("record").args(record_options());
    record.arg("-o").arg(&trace).arg("--");
    record.arg(directory.join(program)).args(arguments);
    record.env("MN_TRUTH", &truth);
    succeeds(&record.output().expect("the binary runs"));
    (trace.to_str().expect("UTF-8").to_owned(), truth)
}

/// True if class and fields are those of the entry.
pub(crate) fn fields_agree(entry: &TruthEntry, class: &str, payload: &Value) -> bool {
    let is_class = match entry.kind.as_str() {
        kind @ ("lwp_begin" | "lwp_end") => kind == class,
        kind => Some(kind) == class.strip_prefix("ult_"),
    };
    let number = |field: &str, value: u64| payload[field].as_u64() == Some(value);
    let text = |field: &str, value: &str| payload[field].as_str() == Some(value);
    is_class
        && match entry.kind.as_str() {
            "lwp_begin" => text("runtime", "mn"),
            "lwp_end" => true,
            "switch" => number("prev_ult", entry.a) && number("next_ult", entry.b),
            "create" => number("ult", entry.a) && text("name", &entry.text),
            "block" => number("ult", entry.a) && text("reason", &entry.text),
            _ => number("ult", entry.a),
        }
}

/// True if class, fields and time are those of the entry.
fn is_recorded_by(entry: &TruthEntry, record: &ScheduleRecord) -> bool {
    fields_agree(entry, &record.class, &record.payload)
        && record.time + CLOCK_ERROR >= entry.before
        && record.time <= entry.after + CLOCK_ERROR
}

/// Compares the trace with the log; returns the number of samples.
fn check(trace: &str, truth: &Path) -> usize {
    let recorded = RecordedSchedule::of(trace);
    let runs = recorded.runs();
    let truth = mn_truth(truth);
    assert!(recorded.lwps.keys().eq(truth.keys()), "LWPs");
    let mut samples = 0;
    for (tid, entries) in &truth {
        let (own_samples, entries): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| entry.kind == "sample");
        let records = &recorded.lwps[tid];
        assert_eq!(records.len(), entries.len(), "records of LWP {tid}");
        for (entry, record) in entries.into_iter().zip(records) {
            assert!(is_recorded_by(entry, record), "{entry:?}\n{record:?}");
        }
        samples += own_samples.len();
        for sample in own_samples {
            assert_eq!(sample.b, *tid, "the kernel's thread id");
            assert_eq!(at(&runs[tid], sample.before), sample.a, "{sample:?}");
        }
    }
    recorded.is_consistent();
    check_cpus(trace, &truth);
    samples
}

/// Each LWP is where the kernel's events say, while it logs.
fn check_cpus(trace: &str, truth: &BTreeMap<u64, Vec<TruthEntry>>) {
    if !can_record_kernel() {
        return;
    }
    let runs = kernel_runs(trace);
    for (tid, entries) in truth {
        // The others have moved between reading the time and the CPU.
        let stay = |entry: &&TruthEntry| entry.cpu_before == entry.cpu_after;
        for entry in entries.iter().filter(stay) {
            let runs = &runs[&entry.cpu_before];
            assert!(holds_about(runs, entry.before, *tid), "{entry:?}");
        }
    }
}

/// Thousands of user-level threads that do all they can, on more LWPs than CPUs, with a competing
/// process; by two kinds of run queues, and by both kinds of contexts.
#[test]
fn the_trace_has_every_switch_of_the_log() {
    for (options, queues) in [
        (&[][..], "queues=shared"),
        (&["MN_UCONTEXT=1"], "queues=stealing"),
    ] {
        let directory = built(options);
        let arguments = ["threads=1000", "steps=10", "hogs=1", "seed=7", queues];
        let (trace, truth) = recorded(directory.path(), "torture", &arguments);
        let samples = check(&trace, &truth);
        assert!(samples >= 1000 * 2 * 10, "{samples}");
    }
}

/// Threads that compute are preempted by time slices; a waiting daemon is woken by the kernel.
#[test]
fn time_slices_and_messages_are_recorded() {
    let directory = built(&[]);
    for (program, arguments) in [
        ("affinity", &["ms=200", "slice=2000", "hogs=1"][..]),
        (
            "reactivity",
            &["mode=poll", "messages=5", "every=5000", "slice=1000"],
        ),
        (
            "reactivity",
            &["mode=block", "messages=20", "every=5000", "slice=1000"],
        ),
        ("sumtime", &["height=8"]),
        ("solver", &["grid=60"]),
    ] {
        let directory = directory.path();
        let (trace, truth) = recorded(directory, program, arguments);
        check(&trace, &truth);
        for path in [Path::new(&trace), &truth] {
            let moved = path.with_extension("before");
            let _ = std::fs::remove_dir_all(&moved);
            std::fs::rename(path, &moved).expect("a name");
        }
    }
}

/// Without the recorder's library, probes do nothing.
#[test]
fn the_programs_run_without_a_recorder() {
    let directory = built(&[]);
    for (program, arguments) in [
        ("sumtime", &["height=8", "queues=stealing"][..]),
        ("solver", &["grid=60", "slice=1000"]),
    ] {
        let mut command = Command::new(directory.path().join(program));
        succeeds(&command.args(arguments).output().expect("the program"));
    }
}
