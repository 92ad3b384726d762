//! The recorder of CUDA, run against stand-ins for NVIDIA's libraries: every call and every command
//! of a program that counts them is in the trace, however the program ends.
//!
//! The stand-ins (`programs/stand_in_*.c`) show that the recorder works with the documented interface.
//! NVIDIA's libraries are not tested here: `scripts/gpu-checks` runs those.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{compiled_with, libraries, text, tracebraid};

const CUPTI: &str = include_str!("programs/stand_in_cupti.c");
const CUDA: &str = include_str!("programs/stand_in_cuda.c");
const CALLS: &str = include_str!("programs/cuda_calls.c");
const LAYOUTS: &str = include_str!("../../../../record/cuda/layouts.txt");

/// Macros of the stand-ins, and the fields whose offsets they are.
const MACROS: &[(&str, &str, &str)] = &[
    ("CALLBACK_SITE", "CUpti_CallbackData", "callbackSite"),
    ("CALLBACK_NAME", "CUpti_CallbackData", "functionName"),
    ("CALLBACK_PARAMS", "CUpti_CallbackData", "functionParams"),
    (
        "CALLBACK_RESULT",
        "CUpti_CallbackData",
        "functionReturnValue",
    ),
    (
        "CALLBACK_CORRELATION",
        "CUpti_CallbackData",
        "correlationId",
    ),
    ("RESOURCE_CONTEXT", "CUpti_ResourceData", "context"),
    (
        "RESOURCE_STREAM",
        "CUpti_ResourceData",
        "resourceHandle.stream",
    ),
    ("DEVICE_MEMORY", "CUpti_ActivityDevice", "globalMemorySize"),
    ("DEVICE_NAME", "CUpti_ActivityDevice", "name"),
    ("DEVICE_UUID", "CUpti_ActivityDevice", "uuid"),
    ("CONTEXT_ID", "CUpti_ActivityContext", "contextId"),
    ("KERNEL_QUEUED", "CUpti_ActivityKernel", "queued"),
    ("KERNEL_SUBMITTED", "CUpti_ActivityKernel", "submitted"),
    ("KERNEL_START", "CUpti_ActivityKernel", "start"),
    ("KERNEL_END", "CUpti_ActivityKernel", "end"),
    ("KERNEL_CONTEXT", "CUpti_ActivityKernel", "contextId"),
    ("KERNEL_STREAM", "CUpti_ActivityKernel", "streamId"),
    ("KERNEL_GRID", "CUpti_ActivityKernel", "gridX"),
    (
        "KERNEL_CORRELATION",
        "CUpti_ActivityKernel",
        "correlationId",
    ),
    ("KERNEL_NAME", "CUpti_ActivityKernel", "name"),
    ("MEMCPY_COPY_KIND", "CUpti_ActivityMemcpy", "copyKind"),
    ("MEMCPY_BYTES", "CUpti_ActivityMemcpy", "bytes"),
    ("MEMCPY_START", "CUpti_ActivityMemcpy", "start"),
    ("MEMCPY_END", "CUpti_ActivityMemcpy", "end"),
    ("MEMCPY_CONTEXT", "CUpti_ActivityMemcpy", "contextId"),
    ("MEMCPY_STREAM", "CUpti_ActivityMemcpy", "streamId"),
    (
        "MEMCPY_CORRELATION",
        "CUpti_ActivityMemcpy",
        "correlationId",
    ),
    ("MEMSET_VALUE", "CUpti_ActivityMemset", "value"),
    ("MEMSET_BYTES", "CUpti_ActivityMemset", "bytes"),
    ("MEMSET_START", "CUpti_ActivityMemset", "start"),
    ("MEMSET_END", "CUpti_ActivityMemset", "end"),
    ("MEMSET_CONTEXT", "CUpti_ActivityMemset", "contextId"),
    ("MEMSET_STREAM", "CUpti_ActivityMemset", "streamId"),
    (
        "MEMSET_CORRELATION",
        "CUpti_ActivityMemset",
        "correlationId",
    ),
    (
        "SYNCHRONIZATION_TYPE",
        "CUpti_ActivitySynchronization",
        "type",
    ),
    (
        "SYNCHRONIZATION_CORRELATION",
        "CUpti_ActivitySynchronization",
        "correlationId",
    ),
];

fn offset(structure: &str, field: &str) -> &'static str {
    let mut lines = LAYOUTS.lines().skip_while(|line| *line != structure);
    let of_field = format!("  {field} ");
    let line = lines.find(|line| line.starts_with(&of_field));
    line.and_then(|line| line.split(' ').next_back())
        .expect("a field of layouts.txt")
}

/// The program, beside the stand-ins for libraries.
fn program() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = BUILT.get_or_init(|| {
        let directory = TempDir::new().expect("a temporary directory");
        let mut macros = String::new();
        for (name, structure, field) in MACROS {
            let _ = writeln!(macros, "#define {name} {}", offset(structure, field));
        }
        fs::write(directory.path().join("stand_in.h"), macros).expect("written");
        let library = |name: &str, file: &str, source: &str| {
            let soname = format!("-Wl,-soname,{file}");
            let built = compiled_with(
                directory.path(),
                name,
                source,
                &["-shared", "-fPIC", &soname, "-ldl"],
            );
            fs::rename(built, directory.path().join(file)).expect("renamed");
        };
        library("stand_in_cupti", "libcupti.so.12", CUPTI);
        library("stand_in_cuda", "libcuda.so.1", CUDA);
        let cuda = directory.path().join("libcuda.so.1");
        let options = [cuda.to_str().expect("UTF-8"), "-Wl,-rpath,$ORIGIN"];
        let program = compiled_with(directory.path(), "cuda_calls", CALLS, &options);
        (directory, program)
    });
    program
}

struct Run {
    output: std::process::Output,
    counts: BTreeMap<String, usize>,
    directory: TempDir,
}

impl Run {
    fn trace(&self) -> String {
        let trace = self.directory.path().join("trace");
        trace.to_str().expect("UTF-8").to_owned()
    }

    fn said(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).expect("UTF-8")
    }

    /// The fields of the event records, by name.
    fn events(&self) -> BTreeMap<String, Vec<Value>> {
        let lines = text(&["print", "--format", "json", &self.trace()]);
        let mut events: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in lines.lines() {
            let mut event: Value = serde_json::from_str(line).expect("JSON");
            let name = event["name"].as_str().expect("a name").to_owned();
            events
                .entry(name)
                .or_default()
                .push(event["payload"].take());
        }
        events
    }
}

/// Runs the program with an argument and variables, under `record` if it is wanted.
fn run(is_recorded: bool, how: &str, variables: &[(&str, &str)]) -> Run {
    let directory = TempDir::new().expect("a temporary directory");
    let counts = directory.path().join("counts");
    let program = program();
    let mut command = match is_recorded {
        false => Command::new(program),
        true => {
            let mut command = tracebraid();
            command.env("TRACEBRAID_LIBRARIES", libraries());
            command.args([
                "record",
                "--gpu",
                "--kernel",
                "none",
                "--syscalls",
                "none",
                "-o",
            ]);
            command
                .arg(directory.path().join("trace"))
                .arg("--")
                .arg(program);
            command
        }
    };
    command.env("LD_LIBRARY_PATH", program.parent().expect("a directory"));
    command.envs(variables.iter().copied());
    let output = command.arg(&counts).arg(how).output().expect("runs");
    let counts = fs::read_to_string(counts).unwrap_or_default();
    let counts = counts.lines().filter_map(|line| line.split_once(' '));
    let counts = counts.map(|(name, count)| (name.to_owned(), count.parse().expect("a number")));
    Run {
        output,
        counts: counts.collect(),
        directory,
    }
}

fn all_is_recorded(run: &Run) {
    let events = run.events();
    let count = |name: &str| events.get(name).map_or(0, Vec::len);
    let mut functions = 0;
    for (function, calls) in &run.counts {
        let provider = match function.as_str() {
            "kernels" | "copies" => continue,
            "cuStandIn" => {
                assert_eq!(
                    events["tracebraid_cuda:call_entry"][0]["function"],
                    "cuStandIn"
                );
                continue;
            }
            name if name.starts_with("cuda") => "lttng_ust_cudart",
            _ => "lttng_ust_cuda",
        };
        functions += 1;
        for edge in ["entry", "exit"] {
            let name = format!("{provider}:{function}_{edge}");
            assert_eq!(count(&name), *calls, "{name}");
        }
    }
    assert!(functions >= 10, "{functions}");
    assert_eq!(count("tracebraid_cuda:kernel"), run.counts["kernels"]);
    assert_eq!(count("tracebraid_cuda:memcpy"), run.counts["copies"]);
    assert_eq!(count("tracebraid_cuda:memset"), 1);
    assert_eq!(count("tracebraid_cuda:synchronization"), 1);
    assert_eq!(events["tracebraid_cuda:device"][0]["name"], "Stand-in");
    assert_eq!(events["tracebraid_cuda:context"][0]["context"], 1);
    let names = events["tracebraid_cuda:kernel_name"].iter();
    let names: Vec<&str> = names.filter_map(|of| of["name"].as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"fill") && names.contains(&"add(int*, int const*)"));
    // Streams of number 13 (made by the program) and 7 (that of synchronous copies).
    assert_eq!(count("tracebraid_cuda:stream"), 2);
    assert_eq!(events["tracebraid_cuda:stream_handle"][0]["stream"], 13);
}

#[test]
fn every_call_and_command_is_recorded_and_nothing_changes() {
    let plain = run(false, "", &[]);
    assert!(plain.said().ends_with("done\n"), "{:?}", plain.output);
    let recorded = run(true, "", &[]);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    assert_eq!(recorded.said(), plain.said());
    assert_eq!(recorded.counts, plain.counts);
    all_is_recorded(&recorded);
    let events = recorded.events();
    // Arguments, results, and what functions wrote.
    let names = &events["lttng_ust_cuda:cuModuleGetFunction_entry"];
    assert_eq!(names[0]["name_val"], "fill");
    let allocations = &events["lttng_ust_cuda:cuMemAlloc_v2_exit"];
    assert_eq!(allocations[0]["cuResult"], 0);
    assert_eq!(allocations[0]["dptr_val"], 0x7f00_0000_0000_u64);
    assert_eq!(allocations[1]["cuResult"], 2);
    assert_eq!(allocations[1]["dptr_val"], 0);
    let launch = &events["lttng_ust_cudart:cudaLaunchKernel_entry"][0];
    assert_eq!(launch["gridDim_x"], 4);
    assert_eq!(launch["blockDim_x"], 32);
    assert_eq!(launch["sharedMem"], 16);
    // Each kernel has the number of a call.
    let calls: Vec<&Value> = ["cuda:cuLaunchKernel", "cudart:cudaLaunchKernel"]
        .iter()
        .flat_map(|name| &events[&format!("lttng_ust_{name}_exit")])
        .map(|call| &call["correlation"])
        .collect();
    for kernel in &events["tracebraid_cuda:kernel"] {
        assert!(calls.contains(&&kernel["correlation"]), "{kernel}");
        let times = ["queued", "submit", "start", "end"].map(|key| kernel[key].as_u64());
        assert!(times.is_sorted() && times[0] > Some(0), "{kernel}");
    }
    assert_eq!(events["tracebraid_cuda:recorder"][0]["error"], "");
    assert_eq!(events["tracebraid_cuda:recorder"][0]["cupti_version"], 28);
}

/// The report on the trace, for all threads and chunks.
#[test]
fn the_report_counts_what_the_program_did() {
    let recorded = run(true, "", &[]);
    let trace = recorded.trace();
    let report =
        |options: &[&str]| text(&[&["gpu", "--format", "json"], options, &[&trace]].concat());
    let expected = report(&["-j", "1", "--chunk-size", "1G"]);
    for (threads, chunk) in [("1", "1"), ("2", "64"), ("8", "1000")] {
        let found = report(&["-j", threads, "--chunk-size", chunk]);
        assert!(found == expected, "{threads} threads, chunks of {chunk}");
    }
    let report: Value = serde_json::from_str(&expected).expect("JSON");
    let rows = |table: &str, key: &str, is_wanted: &dyn Fn(&Value) -> bool| -> usize {
        let rows = report[table].as_array().expect("rows").iter();
        let wanted = rows.filter(|row| is_wanted(row));
        let numbers = wanted.map(|row| row[key].as_u64().expect("a number"));
        numbers.sum::<u64>() as usize
    };
    let (kernels, copies) = (recorded.counts["kernels"], recorded.counts["copies"]);
    assert_eq!(report["total"]["commands"], kernels + copies + 1);
    assert_eq!(rows("queues", "commands", &|_| true), kernels + copies + 1);
    for name in ["fill", "add(int*, int const*)"] {
        let is_it = |row: &Value| row["kernel"] == name;
        assert_eq!(rows("kernels", "commands", &is_it), kernels / 2, "{name}");
        // Half of them from 8 x 64, half of 4 x 2 x 32.
        let items = kernels / 4 * (512 + 256);
        assert_eq!(rows("kernels", "items", &is_it), items, "{name}");
    }
    for (kind, bytes) in [("write", 10 * 4096), ("read", 10 * 1000), ("fill", 512)] {
        let is_it = |row: &Value| row["kind"] == kind;
        assert_eq!(rows("transfers", "bytes", &is_it), bytes, "{kind}");
    }
    let is_allocation = |row: &Value| row["function"] == "cuMemAlloc_v2";
    assert_eq!(rows("functions", "calls", &is_allocation), 2);
    assert_eq!(rows("functions", "errors", &is_allocation), 1);
    // CUPTI's times are those of the trace's clock.
    let device = &report["clocks"][0];
    assert_eq!(device["device"], "Stand-in");
    assert_ne!(device["relation"], "fail", "{device}");
}

#[test]
fn children_and_killed_programs_are_recorded() {
    let forked = run(true, "fork", &[]);
    assert!(forked.output.status.success(), "{:?}", forked.output);
    let events = forked.events();
    let kernels = events["tracebraid_cuda:kernel"].len();
    assert_eq!(kernels, forked.counts["kernels"]);
    // The thread of the recorder has delivered what was complete.
    let killed = run(true, "kill", &[]);
    assert!(!killed.output.status.success());
    all_is_recorded(&killed);
}

/// A function that the driver calls exits, while a flush would wait for the driver.
#[test]
fn programs_end_even_if_cupti_does_not_answer() {
    let begun = Instant::now();
    let recorded = run(true, "exit-within", &[]);
    assert_eq!(
        recorded.output.status.code(),
        Some(3),
        "{:?}",
        recorded.output
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(recorded.said(), run(false, "", &[]).said());
}

#[test]
fn dropped_records_and_a_cupti_that_refuses_are_reported() {
    let dropping = run(true, "", &[("STAND_IN_DROPS", "1")]);
    let events = dropping.events();
    assert_eq!(events["tracebraid_cuda:records_dropped"][0]["count"], 1);
    for variables in [
        [("STAND_IN_REFUSES", "1")],
        [("TRACEBRAID_CUPTI", "/nowhere/libcupti.so")],
    ] {
        let without = run(true, "", &variables);
        assert!(without.output.status.success(), "{:?}", without.output);
        assert!(without.said().ends_with("done\n"));
        let events = without.events();
        let report = &events["tracebraid_cuda:recorder"];
        assert_ne!(report[0]["error"], "", "{report:?}");
        assert!(!events.contains_key("tracebraid_cuda:kernel"));
    }
}

/// Another tool's library is not replaced.
#[test]
fn the_library_of_another_tool_stays() {
    let recorded = run(true, "", &[("CUDA_INJECTION64_PATH", "/nowhere/other.so")]);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    let warnings = String::from_utf8_lossy(&recorded.output.stderr);
    assert!(warnings.contains("CUDA is not recorded"), "{warnings}");
}
