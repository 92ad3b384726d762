//! Real programs, whose calls are counted without the recorder: by an auditor of the dynamic linker.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::counted::{built_with, directory};
use crate::support::{can_record_kernel, skipped, text, tracebraid};

/// Bytes of a record of the auditor, and of the name in it.
const RECORD: usize = 64;
const NAME: usize = 56;

const NO_KERNEL: [&str; 4] = ["--kernel", "none", "--syscalls", "none"];

/// The path of a program of Debian; `None`, with a message, if it or OpenCL is not installed.
fn installed(name: &str) -> Option<PathBuf> {
    directory()?;
    let path = Path::new("/usr/bin").join(name);
    if path.is_file() {
        return Some(path);
    }
    skipped(format_args!("{name} is not installed"));
    None
}

/// Keeps the kernels that a program compiles in a directory of the tests.
fn command(mut command: Command) -> Command {
    command.env("POCL_CACHE_DIR", directory().expect("OpenCL is installed"));
    command
}

/// A recorded program. Numbers of calls and of commands are those of the auditor.
struct Judged {
    output: Output,
    calls: BTreeMap<String, u64>,
    directory: TempDir,
}

impl Judged {
    /// Records a program with these options.
    fn new(program: &Path, arguments: &[&str], record: &[&str]) -> Judged {
        let judge = built_with("judge", &["-shared", "-fPIC"]).expect("OpenCL is installed");
        let directory = TempDir::new().expect("a temporary directory");
        let counts = directory.path().join("counts");
        let mut command = command(tracebraid());
        command.args(["record", "--gpu"]).args(record);
        command.arg("-o").arg(directory.path().join("trace"));
        command.args(["--", "env"]);
        command.arg(format!("LD_AUDIT={}", judge.display()));
        command.arg(format!("JUDGE={}", counts.display()));
        let output = command.arg(program).args(arguments).output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        Judged {
            output,
            calls: calls_of(&fs::read(counts).expect("counts")),
            directory,
        }
    }

    /// The output of a command on the trace.
    fn json(&self, command: &[&str]) -> Value {
        let trace = self.directory.path().join("trace");
        let options = ["--format", "json", trace.to_str().expect("UTF-8")];
        serde_json::from_str(&text(&[command, &options].concat())).expect("JSON")
    }

    /// Checks that each call is recorded, and the completion of each command.
    fn is_complete(&self) {
        let count = self.json(&["count"]);
        let recorded = |name: String| count["by_name"][name].as_u64().unwrap_or(0);
        for (function, calls) in &self.calls {
            for edge in ["entry", "exit"] {
                let name = format!("lttng_ust_opencl:{function}_{edge}");
                assert_eq!(recorded(name), *calls, "{function}_{edge}");
            }
        }
        let results = "lttng_ust_opencl_profiling:event_profiling_results";
        assert_eq!(recorded(results.to_owned()), self.commands());
    }

    fn commands(&self) -> u64 {
        let enqueued = |(name, _): &(&String, &u64)| name.starts_with("clEnqueue");
        self.calls
            .iter()
            .filter(enqueued)
            .map(|(_, calls)| calls)
            .sum()
    }
}

fn calls_of(bytes: &[u8]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for record in bytes.chunks_exact(RECORD) {
        let (name, calls) = record.split_at(NAME);
        let name = CStr::from_bytes_until_nul(name).expect("a name");
        let calls = u64::from_ne_bytes(calls.try_into().expect("a number"));
        if calls > 0 {
            all.insert(name.to_str().expect("UTF-8").to_owned(), calls);
        }
    }
    all
}

#[test]
fn queries_of_clinfo() {
    let Some(program) = installed("clinfo") else {
        return;
    };
    let plain = command(Command::new(&program)).output();
    let plain = plain.expect("clinfo runs");
    let recorded = Judged::new(&program, &[], &NO_KERNEL);
    assert_eq!(
        String::from_utf8_lossy(&recorded.output.stdout),
        String::from_utf8_lossy(&plain.stdout)
    );
    assert!(
        recorded.calls["clGetDeviceInfo"] > 50,
        "{:?}",
        recorded.calls
    );
    recorded.is_complete();
}

#[test]
fn commands_of_clpeak_and_the_waits_for_them() {
    let Some(program) = installed("clpeak") else {
        return;
    };
    let has_kernel = can_record_kernel();
    let options: &[&str] = if has_kernel { &[] } else { &NO_KERNEL };
    let recorded = Judged::new(&program, &["--kernel-latency"], options);
    assert!(recorded.commands() > 1000, "{:?}", recorded.calls);
    recorded.is_complete();
    if has_kernel {
        // Thousands of waits, each of microseconds: the error of the clocks matters.
        let paths = recorded.json(&["critical-path", "--process", "clpeak"]);
        let reasons = paths["paths"][0]["reasons"].as_array().expect("reasons");
        let has_device = reasons.iter().any(|sum| sum["reason"] == "device");
        assert!(has_device, "{reasons:?}");
    }
}
