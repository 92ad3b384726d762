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

/// The program; `None`, with a message, where OpenCL is not installed.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if !Path::new("/usr/include/CL/cl.h").is_file() {
            skipped(format_args!(
                "OpenCL is not installed: opencl-headers, ocl-icd-opencl-dev, pocl-opencl-icd"
            ));
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
