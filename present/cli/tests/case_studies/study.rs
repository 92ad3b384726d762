//! Runs a case study and compares its executions.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{libraries, recording_directory, run, skipped, text};

/// Studies disturb each other, so only one runs at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Exit code of a script that cannot run on this machine.
const CANNOT: i32 = 3;

/// Maximum number of runs of a study. On a busy machine, other causes than the injected one may
/// slow executions.
const TRIES: u32 = 3;

/// Timeout of a script in seconds, including servers that start and stop on a busy machine.
const PATIENCE: &str = "120";

/// A study whose script has run.
pub(crate) struct Study {
    directory: TempDir,
    /// Condition for the slow executions.
    slow: &'static str,
    /// Condition for the others.
    fast: &'static str,
    /// Captured value that identifies an execution.
    captured: &'static str,
    _one: MutexGuard<'static, ()>,
}

/// A calling context that differs.
#[derive(Debug)]
pub(crate) struct Context {
    /// Frames from the outermost to the innermost: `function`, `call()`, `<thread>`, `[reason]`.
    pub(crate) frames: Vec<String>,
    /// Additional nanoseconds of an average slow execution in this context.
    pub(crate) more: f64,
}

impl Context {
    pub(crate) fn has(&self, frame: &str) -> bool {
        self.frames.iter().any(|other| other == frame)
    }

    /// Whether the context contains these frames in this order, possibly with others between them.
    pub(crate) fn goes(&self, way: &[&str]) -> bool {
        let mut frames = self.frames.iter();
        way.iter().all(|wanted| frames.any(|frame| frame == wanted))
    }
}

fn at(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/case-studies")
        .join(name)
}

/// Runs the script of a study in which at least `least` executions are slowed; `captured` is their
/// captured value. `None`, with a message, if it cannot run here.
pub(crate) fn study(
    name: &str,
    [fast, slow]: [&'static str; 2],
    (captured, least): (&'static str, usize),
) -> Option<Study> {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = recording_directory()?;
    let study = Study {
        directory,
        slow,
        fast,
        captured,
        _one: one,
    };
    let mut wrong = String::new();
    for _ in 0..TRIES {
        if !study.run(name) {
            return None;
        }
        match study.slow_ones_were_slowed(least) {
            Ok(()) => return Some(study),
            Err(disturbed) => {
                eprintln!("{name} is made anew: {disturbed}");
                wrong = disturbed;
            }
        }
    }
    panic!("{name}: {wrong}");
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

impl Study {
    fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    fn database(&self) -> String {
        self.path("requests.db")
    }

    /// Runs the script; false if it cannot run here.
    fn run(&self, name: &str) -> bool {
        let mut script = Command::new("timeout");
        script
            .arg(PATIENCE)
            .arg(at(name).join("run"))
            .arg(self.directory.path());
        script
            .env("TRACEBRAID", env!("CARGO_BIN_EXE_tracebraid"))
            .env("TRACEBRAID_LIBRARIES", libraries())
            .env("TZ", "UTC")
            .env("TRACEBRAID_CACHE", "")
            .env_remove("STUDY_EXECUTIONS")
            .env_remove("LD_LIBRARY_PATH");
        let output = script.output().expect("timeout runs");
        let said = said(&output);
        if output.status.code() == Some(CANNOT) {
            skipped(format_args!("{name}: {said}"));
            return false;
        }
        assert!(output.status.success(), "{name}: {}: {said}", output.status);
        true
    }

    /// Checks against the program's own log that at least nine of ten slow executions were slowed,
    /// and that there are at least `least` of them.
    fn slow_ones_were_slowed(&self, least: usize) -> Result<(), String> {
        let truth =
            fs::read_to_string(self.path("truth.csv")).expect("the log of slowed executions");
        let causes: HashMap<i64, &str> = truth
            .lines()
            .filter_map(|line| line.split_once(','))
            .filter_map(|(id, cause)| Some((id.parse().ok()?, cause)))
            .collect();
        let list = ["executions", "list", "--format", "json", "--top", "0"];
        let list = text(&[&list[..], &["--where", self.slow, &self.database()]].concat());
        let list: Vec<Value> = serde_json::from_str(&list).expect("JSON");
        let cause = |of: &Value| causes[&of[self.captured].as_i64().expect("a number")];
        let slowed = list.iter().filter(|of| cause(of) != "none").count();
        match slowed >= least && slowed * 10 >= list.len() * 9 {
            true => Ok(()),
            false => Err(format!(
                "{slowed} of {} slow ones were slowed, of {} in all",
                list.len(),
                causes.len()
            )),
        }
    }

    /// Contexts in which slow executions spend significantly more time, the greatest differences
    /// first.
    pub(crate) fn contexts(&self) -> Vec<Context> {
        self.ranked(&[])
    }

    /// As `contexts`, with times that include nested frames.
    pub(crate) fn whole_contexts(&self) -> Vec<Context> {
        self.ranked(&["--whole"])
    }

    fn ranked(&self, options: &[&str]) -> Vec<Context> {
        let compare = [
            "compare", "--format", "json", "--top", "0", "--a", self.fast, "--b", self.slow,
        ];
        let compare = [&compare[..], options].concat();
        let compared = text(&[&compare[..], &[&self.database()]].concat());
        let compared: Value = serde_json::from_str(&compared).expect("JSON");
        let contexts = compared["contexts"].as_array().expect("contexts").iter();
        let more = contexts
            .filter(|of| of["is_significant"] == true && of["interval"][0].as_f64() > Some(0.0));
        let context = |of: &Value| Context {
            frames: serde_json::from_value(of["context"].clone()).expect("frames"),
            more: of["difference"].as_f64().expect("a number"),
        };
        more.map(context).collect()
    }

    /// Checks that a performance gate on that context fails for the slow executions, and passes for
    /// two halves of the others.
    pub(crate) fn gates(&self, inside: &str, amount: &str) {
        let gate = format!("context > {amount}");
        let compare = [
            "compare",
            "--fail-if",
            &gate,
            "--a",
            self.fast,
            "--b",
            self.slow,
        ];
        let output = run(&[&compare[..], &[&self.database()]].concat());
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains("--fail-if") && error.contains(inside),
            "{error}"
        );
        let [even, odd] =
            ["< 150", ">= 150"].map(|half| format!("{} && {} {half}", self.fast, self.captured));
        let compare = ["compare", "--fail-if", &gate, "--a", &even, "--b", &odd];
        let output = run(&[&compare[..], &[&self.database()]].concat());
        assert!(output.status.success(), "{}", said(&output));
    }
}
