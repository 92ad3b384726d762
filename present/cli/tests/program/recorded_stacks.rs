//! Records call stacks for tests.

use std::path::Path;
use std::process::Output;

use crate::support::{text, tracebraid};
use serde_json::Value;

pub(crate) fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Records a command; returns its output and the path of the trace.
pub(crate) fn record(directory: &Path, options: &[&str], command: &[&str]) -> (Output, String) {
    let trace = directory.join("trace").to_str().expect("UTF-8").to_owned();
    let mut record = tracebraid();
    // Commands write files into their working directory.
    record
        .env("TRACEBRAID_LIBRARIES", crate::support::libraries())
        .current_dir(directory);
    record
        .arg("record")
        .args(options)
        .args(["-o", &trace, "--"]);
    (
        record.args(command).output().expect("the binary runs"),
        trace,
    )
}

/// The output of `stacks` on a trace.
pub(crate) fn profile(trace: &str) -> Value {
    serde_json::from_str(&text(&["stacks", "--format", "json", trace])).expect("JSON")
}

/// A number of a function in a profile.
pub(crate) fn of(profile: &Value, function: &str, which: &str, sum: &str) -> u64 {
    let functions = profile["functions"].as_array().expect("functions");
    let found = functions.iter().find(|row| row["name"] == function);
    found.and_then(|row| row[which][sum].as_u64()).unwrap_or(0)
}

/// Events of a class as text, one per line.
pub(crate) fn events(trace: &str, class: &str) -> Vec<String> {
    let printed = text(&["print", trace]);
    let lines = printed
        .lines()
        .filter(|line| line.contains(&format!(" {class}:")));
    lines.map(str::to_owned).collect()
}

/// Samples of the folded stacks with a function whose name contains `part`.
pub(crate) fn samples_in(folded: &str, name: &str) -> u64 {
    let stacks = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let stacks = stacks.filter(|(stack, _)| stack.contains(name));
    stacks
        .map(|(_, samples)| samples.parse::<u64>().unwrap())
        .sum()
}

pub(crate) const ONLY_STACKS: [&str; 5] = ["--kernel", "none", "--syscalls", "none", "--stacks"];
