//! Programs under `record --levels`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{libraries, skipped, succeeds, text, tracebraid};

/// The libraries and Python modules as they are installed; `None`, with a message, if a library has
/// not been built.
pub(crate) fn installed() -> Option<&'static Path> {
    static INSTALLED: OnceLock<Option<TempDir>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let directory = TempDir::new().expect("a temporary directory");
        for name in ["probe", "openmp", "java"].map(|name| format!("libtracebraid_{name}.so")) {
            let built = libraries().join(&name);
            if !built.is_file() {
                skipped(format_args!("{name} has not been built"));
                return None;
            }
            symlink(built, directory.path().join(name)).expect("a link");
        }
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/python");
        symlink(python, directory.path().join("python")).expect("a link");
        Some(directory)
    });
    installed.as_ref().map(TempDir::path)
}

/// A recorded run of a program.
pub(crate) struct Run {
    pub(crate) output: Output,
    directory: TempDir,
}

/// An event record.
pub(crate) struct Event {
    /// CLOCK_MONOTONIC in nanoseconds.
    pub(crate) time: u64,
    pub(crate) tid: i64,
    pub(crate) name: String,
    pub(crate) fields: Value,
}

impl Event {
    pub(crate) fn number(&self, field: &str) -> u64 {
        let value = &self.fields[field];
        let hexadecimal = || u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok();
        let number = value.as_u64().or_else(hexadecimal);
        number.unwrap_or_else(|| panic!("{}: {field} in {}", self.name, self.fields))
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().expect("a text")
    }
}

/// Records a command without kernel events; `None`, with a message, if a library has not been built.
pub(crate) fn record(command: &Command, options: &[&str]) -> Option<Run> {
    let directory = TempDir::new().expect("a temporary directory");
    let mut record = tracebraid();
    record.env("TRACEBRAID_LIBRARIES", installed()?);
    record.args([
        "record",
        "--quiet",
        "--levels",
        "--kernel",
        "none",
        "--syscalls",
        "none",
    ]);
    record
        .args(options)
        .arg("-o")
        .arg(directory.path().join("trace"));
    record
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => record.env(name, value),
            None => record.env_remove(name),
        };
    }
    let output = record.output().expect("the binary runs");
    Some(Run { output, directory })
}

impl Run {
    /// Standard output of the program, which must have succeeded.
    pub(crate) fn log(&self) -> String {
        succeeds(&self.output)
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.directory.path().join("trace")
    }

    /// The event records in the order of time.
    pub(crate) fn events(&self) -> Vec<Event> {
        let options = fs::read_to_string(self.trace().join("probe.conf")).expect("options");
        let offset = options
            .lines()
            .find_map(|line| line.strip_prefix("clock_offset = "));
        let offset: u64 = offset.expect("an offset").parse().expect("a number");
        let trace = self.trace();
        let printed = text(&[
            "print",
            "--strict",
            "--format",
            "json",
            trace.to_str().expect("UTF-8"),
        ]);
        let event = |line: &str| {
            let mut value: Value = serde_json::from_str(line).expect("JSON");
            Event {
                time: value["timestamp"].as_u64().expect("a time") - offset,
                tid: value["packet_context"]["tid"].as_i64().expect("a thread"),
                name: value["name"].as_str().expect("a name").to_owned(),
                fields: value["payload"].take(),
            }
        };
        printed.lines().map(event).collect()
    }
}
