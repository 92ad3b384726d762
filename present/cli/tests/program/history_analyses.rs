//! User-defined analyses in `history`, compared with plain passes.

use std::fs;
use std::path::PathBuf;

use crate::support::{failure, recorded_trace, text, tracebraid};
use serde_json::Value;
use tempfile::TempDir;

/// An analysis of the documentation.
pub(crate) fn analysis(name: &str) -> String {
    format!("{}/../../docs/analyses/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn built_with(directory: &TempDir, trace: &str, definition: &str) -> String {
    let file = directory.path().join("history").display().to_string();
    let trace = recorded_trace(trace);
    text(&[
        "history",
        "build",
        &trace,
        "--analysis",
        definition,
        "-o",
        &file,
    ]);
    file
}

/// Event records as `print` gives them.
fn events(trace: &str, filter: &str) -> Vec<Value> {
    let trace = recorded_trace(trace);
    let lines = text(&["print", "--format", "json", "--filter", filter, &trace]);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

type Plain = std::collections::BTreeMap<String, Value>;

/// `docs/analyses/requests.toml` as a plain pass over the event records in the order of time.
#[derive(Default)]
struct Requests {
    values: Plain,
    begun: std::collections::HashMap<u64, u64>,
}

impl Requests {
    fn add(&mut self, path: &str, more: u64) {
        let sum = self.values.get(path).and_then(Value::as_u64).unwrap_or(0);
        self.values.insert(path.to_owned(), (sum + more).into());
    }

    fn see(&mut self, event: &Value) {
        let payload = &event["payload"];
        let (id, time) = (payload["id"].as_u64(), event["timestamp"].as_u64().unwrap());
        let phase = format!("phase/{}", event["common_context"]["vtid"]);
        match event["name"].as_str().unwrap() {
            "app:request_begin" => {
                let id = id.unwrap();
                self.begun.insert(id, time);
                self.values
                    .insert(format!("requests/{id}"), payload["op"]["labels"][0].clone());
            }
            "app:phase" => drop(self.values.insert(phase, payload["name"].clone())),
            "app:request_end" => {
                let begun = self.begun.remove(&id.unwrap()).unwrap();
                self.values.remove(&format!("requests/{}", id.unwrap()));
                self.values.remove(&phase);
                self.add("requests/count", 1);
                self.add("requests/total_ns", time - begun);
                self.values
                    .insert("requests/last_ns".to_owned(), (time - begun).into());
                self.add(&format!("ended/{}", payload["status"]), 1);
            }
            "sched_switch" => {
                let phase = self.values.get(&format!("phase/{}", payload["prev_tid"]));
                if let Some(phase) = phase.cloned() {
                    self.add(&format!("switches/{}", phase.as_str().unwrap()), 1);
                }
            }
            _ => {
                self.values
                    .insert("queue/depth".to_owned(), payload["depth"].clone());
                if event["name"] == "app:queue_push" {
                    self.add("queue/pushed", 1);
                }
            }
        }
    }
}

#[test]
fn analyses_of_users_say_what_a_plain_pass_says() {
    let directory = tempfile::tempdir().unwrap();
    let file = built_with(
        &directory,
        "kernel-ust-requests",
        &analysis("requests.toml"),
    );
    let filter = "app:request_* || app:phase || app:queue_* || (sched_switch && prev_tid != 0)";
    let events = events("kernel-ust-requests", filter);
    assert!(events.len() > 10_000);
    let mut plain = Requests::default();
    let ask = |time: u64| {
        let time = format!("{time}ns");
        let arguments = ["history", "query", &file, "--format", "json", "--at", &time];
        let own = ["requests/*", "phase/*", "queue/*", "switches/*", "ended/*"];
        let answer: Value = serde_json::from_str(&text(&[&arguments[..], &own].concat())).unwrap();
        let rows = answer["rows"].as_array().unwrap().iter();
        let row = |row: &Value| {
            (
                row["attribute"].as_str().unwrap().to_owned(),
                row["value"].clone(),
            )
        };
        rows.map(row).collect::<Plain>()
    };
    for (at, event) in events.iter().enumerate() {
        plain.see(event);
        let is_last = events
            .get(at + 1)
            .is_none_or(|next| next["timestamp"] != event["timestamp"]);
        if at % 997 == 0 && is_last || at + 1 == events.len() {
            let found = ask(event["timestamp"].as_u64().unwrap());
            assert_eq!(found, plain.values, "after event {at}");
        }
    }
    assert_eq!(plain.values["requests/count"], 2500);
    let report = text(&[
        "history",
        "report",
        &file,
        "phase/*",
        "queue/*",
        "requests/count",
    ]);
    insta::assert_snapshot!("history-report", report);
}

#[test]
fn state_providers_of_trace_compass_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = built_with(&directory, "kernel-mix-small", &analysis("running.xml"));
    let switches = events("kernel-mix-small", "sched_switch");
    let mut counts = [0u64; 4];
    for event in &switches {
        counts[event["cpu"].as_u64().unwrap() as usize] += 1;
    }
    let end = format!("{}ns", switches.last().unwrap()["timestamp"]);
    for (cpu, count) in counts.iter().enumerate() {
        // Its attribute equals that of the kernel model, except that it omits the idle thread.
        let paths = [
            format!("CPUs/{cpu}/switches"),
            format!("CPUs/{cpu}/thread"),
            format!("cpu/{cpu}/thread"),
        ];
        let [sum, own, kernel] = paths.map(|path| {
            let answer = text(&[
                "history", "query", &file, "--format", "json", "--at", &end, &path,
            ]);
            let answer: Value = serde_json::from_str(&answer).unwrap();
            answer["rows"][0]["value"].clone()
        });
        assert_eq!(sum, *count);
        assert_eq!(own.as_u64().unwrap_or(0), kernel.as_u64().unwrap());
    }
}

#[test]
fn what_is_wrong_with_an_analysis_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let definition = directory.path().join("wrong.toml").display().to_string();
    let trace = recorded_trace("kernel-mix-small");
    let file = directory.path().join("history").display().to_string();
    let build = [
        "history",
        "build",
        &trace,
        "--analysis",
        &definition,
        "-o",
        &file,
    ];
    fs::write(
        &definition,
        "[[on]]\nevent = \"sched_switch\"\nchange = [{ set = \"a\" }]\n",
    )
    .unwrap();
    let (code, said) = failure(&build);
    assert!(
        code == 2 && said.contains("wrong.toml: line 3, column 11: set and push need `to`"),
        "{said}"
    );
    assert!(!PathBuf::from(&file).exists());
    let doubtful = "[[on]]\nevent = \"nothing_like_it\"\nwhen = \"nxt_tid == 3\"\nchange = [{ add = \"a\" }]\n";
    fs::write(&definition, doubtful).unwrap();
    let output = tracebraid().args(build).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("nxt_tid") && said.contains("rule 1"),
        "{said}"
    );
}
