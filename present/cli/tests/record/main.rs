//! Recording with the real binary: what a program did stands in the trace, once each.

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

use support::tracebraid;

/// Records a command with some options, and gives its output and the directory of the trace.
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

/// Values of an event's fields, by name, of a line that `print` gives.
fn fields(line: &str) -> BTreeMap<String, String> {
    let payload = line
        .rsplit("}, { ")
        .next()
        .unwrap_or_default()
        .trim_end_matches(" }");
    let fields = payload.split(", ").filter_map(|field| field.split_once(" = "));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
