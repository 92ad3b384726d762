//! Event records of user-level scheduling in a recording.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::text;

/// Kernel events are recorded along with those of the program where that is possible.
pub(crate) fn record_options() -> Vec<&'static str> {
    let mut options = vec!["--levels"];
    if !crate::support::can_record_kernel() {
        options.extend(["--kernel", "none", "--syscalls", "none"]);
    }
    options
}

/// An event record of the classes `tracebraid:ult_*` and `tracebraid:lwp_*`.
#[derive(Debug)]
pub(crate) struct ScheduleRecord {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) time: u64,
    /// Without the provider.
    pub(crate) class: String,
    pub(crate) payload: Value,
}

impl ScheduleRecord {
    pub(crate) fn number(&self, field: &str) -> u64 {
        self.payload[field].as_u64().expect("a number")
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.payload[field].as_str().expect("a text")
    }
}

/// Records of all LWPs of one process.
#[derive(Debug)]
pub(crate) struct RecordedSchedule {
    /// Nanoseconds from CLOCK_MONOTONIC to the times that `print` shows.
    pub(crate) offset: u64,
    /// By thread id, in the order of time.
    pub(crate) lwps: BTreeMap<u64, Vec<ScheduleRecord>>,
    /// By user-level thread.
    pub(crate) names: HashMap<u64, String>,
}

impl RecordedSchedule {
    pub(crate) fn of(trace: &str) -> RecordedSchedule {
        let offset = clock_offset(trace);
        let classes = "tracebraid:ult_*,tracebraid:lwp_*";
        let printed = text(&[
            "print", "--strict", "--format", "json", "--name", classes, trace,
        ]);
        let mut lwps: BTreeMap<u64, Vec<ScheduleRecord>> = BTreeMap::new();
        let mut names = HashMap::new();
        for line in printed.lines() {
            let mut event: Value = serde_json::from_str(line).expect("JSON");
            let (_, class) = event["name"].as_str().unwrap().split_once(':').unwrap();
            let record = ScheduleRecord {
                time: event["timestamp"].as_u64().unwrap() - offset,
                class: class.to_owned(),
                payload: event["payload"].take(),
            };
            if matches!(
                record.class.as_str(),
                "ult_create" | "ult_name" | "ult_state"
            ) {
                names.insert(record.number("ult"), record.text("name").to_owned());
            }
            let tid = event["packet_context"]["tid"].as_u64().unwrap();
            lwps.entry(tid).or_default().push(record);
        }
        RecordedSchedule {
            offset,
            lwps,
            names,
        }
    }

    pub(crate) fn count(&self, class: &str) -> usize {
        let records = self.lwps.values().flatten();
        records.filter(|record| record.class == class).count()
    }

    /// The user-level thread that runs on each LWP from each time on; 0 stands for none.
    pub(crate) fn runs(&self) -> HashMap<u64, Vec<(u64, u64)>> {
        let run = |record: &ScheduleRecord| {
            (record.class == "ult_switch").then(|| (record.time, record.number("next_ult")))
        };
        let runs = |records: &Vec<ScheduleRecord>| records.iter().filter_map(run).collect();
        self.lwps
            .iter()
            .map(|(tid, records)| (*tid, runs(records)))
            .collect()
    }

    /// Checks that each user-level thread lives as one can: it runs on one LWP at a time, blocks
    /// while it runs, is woken while it is blocked, and ends once.
    pub(crate) fn is_consistent(&self) {
        let mut records: Vec<(u64, &ScheduleRecord)> = Vec::new();
        for (tid, own) in &self.lwps {
            records.extend(own.iter().map(|record| (*tid, record)));
        }
        records.sort_by_key(|(_, record)| record.time);
        let mut lives = Lives::default();
        for (tid, record) in records {
            lives.follow(tid, record);
        }
    }
}

#[derive(Default)]
struct Lives {
    states: HashMap<u64, &'static str>,
    /// The user-level thread of each LWP.
    current: HashMap<u64, u64>,
}

impl Lives {
    fn follow(&mut self, tid: u64, record: &ScheduleRecord) {
        match record.class.as_str() {
            // A state is recorded of the first user-level thread of an LWP, which runs at once.
            "ult_create" | "ult_state" => self.change(record, "ult", &["none"], "ready"),
            "ult_block" => self.change(record, "ult", &["running"], "blocked"),
            "ult_wake" => self.change(record, "ult", &["blocked"], "ready"),
            "ult_exit" => self.change(record, "ult", &["running", "blocked"], "ended"),
            "ult_switch" => self.switch(tid, record),
            _ => {}
        }
    }

    fn change(&mut self, record: &ScheduleRecord, field: &str, from: &[&str], to: &'static str) {
        let ult = record.number(field);
        let state = self.states.insert(ult, to).unwrap_or("none");
        assert!(from.contains(&state), "{ult} is {state}: {record:?}");
    }

    fn switch(&mut self, tid: u64, record: &ScheduleRecord) {
        let [previous, next] = ["prev_ult", "next_ult"].map(|field| record.number(field));
        let current = self.current.insert(tid, next).unwrap_or(0);
        assert_eq!(current, previous, "{record:?}");
        if self.states.get(&previous) == Some(&"running") {
            self.states.insert(previous, "ready");
        }
        if next > 0 {
            self.change(record, "next_ult", &["ready"], "running");
        }
    }
}

/// The kernel's thread that runs on each CPU from each time of CLOCK_MONOTONIC on.
pub(crate) fn kernel_runs(trace: &str) -> HashMap<u64, Vec<(u64, u64)>> {
    let offset = clock_offset(trace);
    let printed = text(&["print", "--format", "json", "--name", "sched_switch", trace]);
    let mut runs: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for line in printed.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let number = |value: &Value| value.as_u64().expect("a number");
        let cpu = number(&event["packet_context"]["cpu_id"]);
        let run = (
            number(&event["timestamp"]) - offset,
            number(&event["payload"]["next_tid"]),
        );
        runs.entry(cpu).or_default().push(run);
    }
    runs
}

/// Nanoseconds from CLOCK_MONOTONIC to the times that `print` shows.
fn clock_offset(trace: &str) -> u64 {
    let processes = Path::new(trace).join("ust/pid");
    let mut processes = fs::read_dir(processes).expect("traces of processes");
    let process = processes.next().expect("a process").expect("an entry");
    let metadata = fs::read_to_string(process.path().join("metadata")).expect("metadata");
    let number = |key: &str| -> u64 {
        let mut lines = metadata.lines();
        let value = lines.find_map(|line| line.trim().strip_prefix(key));
        let value = value.expect(key).trim_end_matches(';');
        value.parse().expect("a number")
    };
    number("offset_s = ") * 1_000_000_000 + number("offset = ")
}

/// The kernel's clock of tracing deviates from CLOCK_MONOTONIC by some microseconds now and then.
pub(crate) const KERNEL_CLOCK_ERROR: u64 = 20_000;

/// True if the value holds at a time, within the error of the kernel's clock.
pub(crate) fn holds_about(runs: &[(u64, u64)], time: u64, value: u64) -> bool {
    let first = runs.partition_point(|(begin, _)| *begin + KERNEL_CLOCK_ERROR <= time);
    let runs = runs[first.saturating_sub(1)..].iter();
    let mut near = runs.take_while(|(begin, _)| *begin <= time + KERNEL_CLOCK_ERROR);
    near.any(|(_, held)| *held == value)
}

/// The value that holds at a time.
pub(crate) fn at(runs: &[(u64, u64)], time: u64) -> u64 {
    let index = runs.partition_point(|(begin, _)| *begin <= time);
    index.checked_sub(1).map_or(0, |index| runs[index].1)
}
