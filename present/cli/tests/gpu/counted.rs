//! Programs that count their calls of OpenCL, alone and recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{compiled_with, libraries, skipped, text, tracebraid};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gpu/programs");

/// Prefixes of the command line. The program is recorded by the layer or by exported functions; as a
/// layer only; by exported functions only.
pub(crate) const WAYS: [&[&str]; 3] = [
    &[],
    &["env", "-u", "LD_PRELOAD"],
    &["env", "-u", "OPENCL_LAYERS"],
];

/// Where programs are; `None`, with a message, where OpenCL is not
/// installed.
pub(crate) fn directory() -> Option<&'static Path> {
    static DIRECTORY: OnceLock<Option<TempDir>> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        if !Path::new("/usr/include/CL/cl.h").is_file() {
            skipped(format_args!(
                "OpenCL is not installed: opencl-headers, ocl-icd-opencl-dev, pocl-opencl-icd"
            ));
            return None;
        }
        Some(TempDir::new().expect("a temporary directory"))
    });
    directory.as_ref().map(TempDir::path)
}

/// A program of the folder `programs`; `None`, with a message, where OpenCL is not installed.
pub(crate) fn built(name: &str) -> Option<PathBuf> {
    built_with(name, &["-lOpenCL"])
}

/// As [`built`], with these options.
pub(crate) fn built_with(name: &str, options: &[&str]) -> Option<PathBuf> {
    let directory = TempDir::new_in(directory()?).expect("a temporary directory");
    let source = fs::read_to_string(Path::new(PROGRAMS).join(format!("{name}.c")));
    let options = [&["-I", PROGRAMS], options].concat();
    let source = source.expect("a program");
    Some(compiled_with(&directory.keep(), name, &source, &options))
}

/// A program that has ended.
pub(crate) struct Run {
    pub(crate) output: Output,
    /// Numbers of calls by function, and of commands; sums over its processes.
    pub(crate) counts: BTreeMap<String, usize>,
    pub(crate) directory: TempDir,
}

impl Run {
    pub(crate) fn trace(&self) -> String {
        let trace = self.directory.path().join("trace");
        trace.to_str().expect("UTF-8").to_owned()
    }

    /// The event records, by name.
    pub(crate) fn events(&self) -> BTreeMap<String, Vec<Value>> {
        let lines = text(&["print", "--format", "json", &self.trace()]);
        let mut events: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in lines.lines() {
            let event: Value = serde_json::from_str(line).expect("JSON");
            let name = event["name"].as_str().expect("a name").to_owned();
            events.entry(name).or_default().push(event);
        }
        events
    }

    /// Checks that each call has an entry and an exit.
    pub(crate) fn has_all_calls(&self) {
        let events = self.events();
        let functions = self.counts.iter().filter(|(name, _)| *name != "commands");
        for (function, calls) in functions {
            for edge in ["entry", "exit"] {
                let name = format!("lttng_ust_opencl:{function}_{edge}");
                let found = events.get(&name).map_or(0, Vec::len);
                assert_eq!(found, *calls, "{name}");
            }
        }
    }

    /// Checks that each call is recorded, and each command with its times.
    pub(crate) fn is_complete(&self) {
        self.has_all_calls();
        let events = self.events();
        let results = &events["lttng_ust_opencl_profiling:event_profiling_results"];
        assert_eq!(results.len(), self.counts["commands"]);
        for result in results {
            let fields = &result["payload"];
            let times =
                ["queued", "submit", "start", "end"].map(|key| fields[key].as_u64().unwrap());
            assert!(times.is_sorted() && times[0] > 0, "{result}");
            assert_eq!(fields["event_command_exec_status"], 0, "{result}");
        }
        assert!(!events["tracebraid_opencl:queue"].is_empty());
        assert!(!events["tracebraid_opencl:device"].is_empty());
    }
}

/// Runs the program with these arguments and the file for its counts, under `record` with these
/// options if there are any; `before` is a program that starts it.
pub(crate) fn run(
    program: &Path,
    arguments: &[&str],
    record: Option<&[&str]>,
    before: &[&str],
) -> Run {
    let directory = TempDir::new().expect("a temporary directory");
    let counts = directory.path().join("counts");
    let mut command = match record {
        None => Command::new(program),
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
    command.args(arguments).arg(&counts);
    let output = command.output().expect("the program runs");
    let mut sums = BTreeMap::new();
    for line in fs::read_to_string(counts).unwrap_or_default().lines() {
        let (name, count) = line.split_once(' ').expect("a name and a count");
        *sums.entry(name.to_owned()).or_insert(0) += count.parse::<usize>().expect("a number");
    }
    Run {
        counts: sums,
        output,
        directory,
    }
}

/// Checks that the recorded program did the same as the other one.
#[track_caller]
pub(crate) fn same(plain: &Run, recorded: &Run) {
    let said = |run: &Run| String::from_utf8(run.output.stdout.clone()).expect("UTF-8");
    assert_eq!(said(recorded), said(plain), "{:?}", recorded.output);
    assert_eq!(recorded.output.status.code(), plain.output.status.code());
    assert_eq!(recorded.counts, plain.counts);
}
