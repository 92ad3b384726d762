//! Execution traces of Go: all times of all goroutines are those of Go's own reader, to the
//! nanosecond.

#[path = "support/goroutines.rs"]
mod goroutines;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use goroutines::{Model, Oracle, events, stacks};
use tempfile::TempDir;
use tracebraid_import::{GoProcess, Summary, import_go, is_importable};
use tracebraid_testkit::recorded;
use tracebraid_testkit::skip::skipped;

fn imported(file: &Path) -> (TempDir, Summary) {
    assert!(is_importable(file), "{}", file.display());
    let directory = TempDir::new().expect("a directory");
    let to = directory.path().join("to");
    let process = GoProcess {
        has_times_of_go: true,
        ..GoProcess::default()
    };
    let summary = import_go(file, &to, &process, &AtomicBool::new(false));
    (directory, summary.expect("it is imported"))
}

/// Compares the import of a trace with Go's summary of it.
fn check(file: &Path, oracle: &Oracle) {
    let (directory, summary) = imported(file);
    let name = file.display();
    assert_eq!(
        summary.damage.is_empty(),
        oracle.error.is_empty(),
        "{name}: {summary:?}"
    );
    let mut model = Model::default();
    let events = events(directory.path());
    events.iter().for_each(|event| model.take(event));
    let own = model.finish(oracle.last);
    assert_eq!(own.len(), oracle.goroutines.len(), "{name}");
    for expected in &oracle.goroutines {
        let (own, began_in_call) = &own[&expected.id];
        let (mut own, mut expected) = (own.clone(), expected.clone());
        if *began_in_call {
            // Go takes the processor of whichever thread recorded the state for its processor.
            for of in [&mut own, &mut expected] {
                of.syscall += std::mem::take(&mut of.syscall_block);
            }
        }
        if own.name == "runtime.cgocallback" && expected.name.is_empty() {
            // Go knows the name only from stacks, which a short callback lacks.
            expected.name = own.name.clone();
        }
        assert_eq!(own, expected, "{name}");
    }
    assert_eq!(stacks(&events), oracle.stacks, "{name}");
    let count = |class: &str| events.iter().filter(|event| event.name == class).count();
    let of = |kind: &str| oracle.kinds.get(kind).copied().unwrap_or(0);
    assert_eq!(count("go:cpu_sample"), of("StackSample"), "{name}");
    assert_eq!(count("go:log"), of("Log"), "{name}");
    assert_eq!(count("tracebraid:counter"), of("Metric"), "{name}");
    for (task, number) in &oracle.tasks {
        let spans = events
            .iter()
            .filter(|event| event.name == "tracebraid:span_begin" && event.texts["name"] == *task);
        assert_eq!(spans.count(), *number, "{name}: {task}");
    }
}

fn traces(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("traces");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "trace"));
    files.sort();
    assert!(!files.is_empty(), "no traces in {}", directory.display());
    files
}

/// Recorded traces, with the summaries that Go 1.26 wrote for them.
#[test]
fn recorded_traces_have_the_times_of_go() {
    let directory = match std::env::var_os("GO_TRACES") {
        Some(own) => PathBuf::from(own),
        None => recorded::unpacked("go-traces").join("go-traces"),
    };
    for file in traces(&directory) {
        let oracle = std::fs::read(file.with_extension("json")).expect("a summary");
        check(&file, &serde_json::from_slice(&oracle).expect("JSON"));
    }
}

/// Go, if it is new enough for the programs of these tests: by default also where it is not in PATH.
fn go() -> Option<PathBuf> {
    let usual = ["go", "/usr/local/go/bin/go"];
    let found = usual.into_iter().find_map(|go| {
        let version = Command::new(go).args(["env", "GOVERSION"]).output().ok()?;
        let version = String::from_utf8(version.stdout).ok()?;
        let minor = version.trim().strip_prefix("go1.")?.split('.').next()?;
        (minor.parse::<u32>().ok()? >= 25).then(|| PathBuf::from(go))
    });
    if found.is_none() {
        skipped("Go 1.25 or later is not installed: https://go.dev/dl");
    }
    found
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Go's own reader is an internal package, which only programs within Go's own tree may use: the
/// program is laid over that tree.
fn build_oracle(go: &Path, to: &Path) -> PathBuf {
    let root = succeeds(Command::new(go).args(["env", "GOROOT"]));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go/summarize/main.go");
    let replaced = format!("{}/src/cmd/tracebraid-summarize/main.go", root.trim());
    let overlay = serde_json::json!({ "Replace": { replaced: source } });
    let [file, program] = ["overlay.json", "summarize"].map(|name| to.join(name));
    std::fs::write(&file, overlay.to_string()).expect("written");
    let mut build = Command::new(go);
    build.args(["build", "-overlay"]).arg(file).arg("-o");
    succeeds(build.arg(&program).arg("cmd/tracebraid-summarize"));
    program
}

/// Traces of this machine: mutexes, channels, HTTP, system calls, callbacks from C, coroutines, the
/// garbage collector with CPU samples, the flight recorder, and all at once for several generations.
#[test]
fn fresh_traces_have_the_times_of_go() {
    let Some(go) = go() else { return };
    let directory = TempDir::new().expect("a directory");
    let oracle = build_oracle(&go, directory.path());
    let workloads = directory.path().join("workloads");
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go/workloads");
    let mut build = Command::new(&go);
    build
        .current_dir(sources)
        .args(["build", "-o"])
        .arg(&workloads);
    succeeds(build.arg("."));
    let trace = directory.path().join("own.trace");
    let record = |workload: &str, processors: &str, milliseconds: &str, flight: &str| {
        let mut record = Command::new(&workloads);
        record.arg(workload).arg(&trace).arg(milliseconds);
        record.env("GOMAXPROCS", processors).env("FLIGHT", flight);
        succeeds(&mut record);
        let summary = succeeds(Command::new(&oracle).arg(&trace));
        check(&trace, &serde_json::from_str(&summary).expect("JSON"));
    };
    for processors in ["1", "2", "8"] {
        for workload in [
            "mutex", "channels", "http", "calls", "garbage", "compute", "cgo", "tiny",
        ] {
            record(workload, processors, "15", "");
        }
    }
    record("all", "2", "1200", "");
    record("channels", "2", "700", "yes");
}
