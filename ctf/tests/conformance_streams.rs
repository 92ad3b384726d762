//! Verdicts on conformance cases, as the program decides them: a case passes if the trace opens,
//! all fields of all event records can be decoded, and no damage is reported.
//!
//! The published cases are used if they are in a directory beside the repository; our own cases
//! follow below. `CONFORMANCE_STRESS` set to N runs the first N sizes of each stress case.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::formats_support::read_trace;
use tracebraid_testkit::skip::skipped;

fn shared() -> Option<PathBuf> {
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/traces/public"
    ));
    if path.is_dir() {
        return Some(path);
    }
    skipped(format_args!(
        "the published conformance cases are not at {}",
        path.display()
    ));
    None
}

/// The verdict with its reasons.
fn verdict(directory: &Path) -> Result<usize, String> {
    let (events, damage) = read_trace(directory)?;
    match damage.first() {
        Some(first) => Err(format!("{} faults; {first}", damage.len())),
        None => Ok(events),
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let list = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = list.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

struct Tally {
    cases: usize,
    wrong: Vec<String>,
    placeless: Vec<String>,
}

impl Tally {
    fn new() -> Self {
        Tally {
            cases: 0,
            wrong: Vec::new(),
            placeless: Vec::new(),
        }
    }

    fn case(&mut self, directory: &Path, name: &str, passes: bool) {
        self.cases += 1;
        match verdict(directory) {
            Ok(events) if !passes => self
                .wrong
                .push(format!("{name}: accepted, {events} event records")),
            Err(reason) if passes => self.wrong.push(format!("{name}: {reason}")),
            Err(reason) if !tells_where(&reason) => {
                self.placeless.push(format!("{name}: {reason}"))
            }
            _ => {}
        }
    }

    fn finish(self, at_least: usize) {
        assert!(
            self.wrong.is_empty(),
            "{} of {} wrong:\n{}",
            self.wrong.len(),
            self.cases,
            self.wrong.join("\n")
        );
        assert!(
            self.placeless.is_empty(),
            "no position in:\n{}",
            self.placeless.join("\n")
        );
        assert!(self.cases >= at_least, "only {} cases", self.cases);
    }
}

/// True if the reason contains line and column for metadata, or a byte offset for streams.
fn tells_where(reason: &str) -> bool {
    if let Some((_, rest)) = reason.split_once("/metadata:") {
        let mut numbers = rest.split(':');
        let is_number =
            |text: Option<&str>| text.is_some_and(|text| text.trim().parse::<u32>().is_ok());
        return is_number(numbers.next()) && is_number(numbers.next());
    }
    reason.contains(": byte ")
}

#[test]
fn regression_cases_of_the_test_suite() {
    let Some(shared) = shared() else { return };
    let mut tally = Tally::new();
    for kind in ["metadata", "stream"] {
        for expected in ["pass", "fail"] {
            let root = shared
                .join("ctf-testsuite/tests/1.8/regression")
                .join(kind)
                .join(expected);
            for case in entries(&root).into_iter().filter(|path| path.is_dir()) {
                let name = format!(
                    "{kind}/{expected}/{}",
                    case.file_name().unwrap().to_string_lossy()
                );
                tally.case(&case, &name, expected == "pass");
            }
        }
    }
    tally.finish(150);
}

#[test]
fn metadata_cases() {
    let Some(shared) = shared() else { return };
    let mut tally = Tally::new();
    for version in ["ctf-1", "ctf-2"] {
        for case in entries(&shared.join("metadata-cases").join(version)) {
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            let directory = tempfile::tempdir().unwrap();
            std::fs::copy(&case, directory.path().join("metadata")).unwrap();
            tally.case(
                directory.path(),
                &format!("{version}/{name}"),
                name.starts_with("pass-"),
            );
        }
    }
    tally.finish(300);
}

#[test]
fn stress_cases_of_the_test_suite() {
    let Some(shared) = shared() else { return };
    let sizes = std::env::var("CONFORMANCE_STRESS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1);
    let mut tally = Tally::new();
    for kind in ["metadata", "stream"] {
        let root = shared
            .join("ctf-testsuite/tests/1.8/stress")
            .join(kind)
            .join("pass");
        for case in entries(&root)
            .into_iter()
            .filter(|path| path.join("test.py").is_file())
        {
            let list = std::fs::read_to_string(case.join("param-list.txt")).unwrap();
            for size in list.split_whitespace().take(sizes) {
                let directory = tempfile::tempdir().unwrap();
                let options: &[&str] = if kind == "metadata" {
                    &["--size", size, "prepare"]
                } else {
                    &["prepare", size]
                };
                let made = Command::new("python3")
                    .arg(case.join("test.py"))
                    .args(options)
                    .current_dir(directory.path())
                    .env("PYTHONPATH", shared.join("ctf-testsuite/utils/python"))
                    .env("PYTHONDONTWRITEBYTECODE", "1")
                    .output();
                let Ok(made) = made else {
                    return skipped("there is no python3 to make the stress cases with");
                };
                assert!(
                    made.status.success(),
                    "{}: {}",
                    case.display(),
                    String::from_utf8_lossy(&made.stderr)
                );
                let name = format!(
                    "{kind}/{} {size}",
                    case.file_name().unwrap().to_string_lossy()
                );
                for trace in traces(directory.path()) {
                    tally.case(&trace, &name, true);
                }
            }
        }
    }
    tally.finish(18);
}

/// Directories with metadata below this one.
fn traces(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            found.extend(traces(&path));
        } else if path.file_name().is_some_and(|name| name == "metadata") {
            found.push(directory.to_owned());
        }
    }
    found
}
