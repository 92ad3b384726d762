//! Recording with the real binary: the trace contains each action of a program exactly once.

#[path = "../support/mod.rs"]
mod support;

mod beginnings;
mod calls;
mod chosen;
mod chunks;
mod conditions;
mod contexts;
mod descendants;
mod dispositions;
mod endings;
mod fibers;
mod harmless;
mod instructions;
mod joined_chunks;
mod limits;
mod namespaces;
mod preloads;
mod programs;
mod readers;
mod returns;
mod short_programs;
mod stack_limits;
mod triggers;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use support::{text, tracebraid};

/// Records a command with options; returns its output and the directory of the trace.
fn record(directory: &Path, options: &[&str], command: &[&str]) -> (Output, String) {
    let trace = directory.join("trace").to_str().expect("UTF-8").to_owned();
    let mut record = tracebraid();
    record
        .arg("record")
        .args(options)
        .args(["-o", &trace, "--"])
        .args(command);
    (record.output().expect("the binary runs"), trace)
}

/// The profile of the call stacks in a trace, from `stacks`.
fn stack_profile(trace: &str) -> Value {
    serde_json::from_str(&text(&["stacks", "--format", "json", trace])).unwrap()
}

/// Number of stacks of a kind (`whole`, `broken`, ...) in a profile.
fn stacks_that_are(profile: &Value, kind: &str) -> u64 {
    profile["completeness"][kind].as_u64().unwrap()
}

/// Lines of the first incomplete stacks in a trace, for messages.
fn unwhole_stacks(trace: &str) -> Vec<String> {
    let classes = "tracebraid_cpu_stack,tracebraid_syscall_stack";
    let printed = text(&["print", "--name", classes, trace]);
    let unwhole = printed.lines().filter(|line| !line.contains("status = 0"));
    unwhole.take(3).map(str::to_owned).collect()
}

/// The fields of an event in a line of `print`, by name.
fn fields(line: &str) -> BTreeMap<String, String> {
    let payload = line
        .rsplit("}, { ")
        .next()
        .unwrap_or_default()
        .trim_end_matches(" }");
    let fields = payload
        .split(", ")
        .filter_map(|field| field.split_once(" = "));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
