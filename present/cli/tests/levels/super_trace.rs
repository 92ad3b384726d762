//! The super-trace of a recording: which thread runs on each CPU at any time, at both levels.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::recorded_schedule::KERNEL_CLOCK_ERROR;
use crate::support::text;

/// An event record of a user-level scheduler, in the super-trace.
#[derive(Debug)]
pub(crate) struct SuperRecord {
    pub(crate) time: u64,
    pub(crate) cpu: Option<u64>,
    pub(crate) class: String,
    /// User-level thread on whose behalf it was recorded; 0 stands for none.
    pub(crate) ult: u64,
    pub(crate) payload: Value,
}

/// A thread runs on a CPU, as all analyses see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuPiece {
    pub(crate) cpu: u64,
    pub(crate) tid: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SuperTrace {
    /// By LWP, in the order of time.
    pub(crate) records: BTreeMap<u64, Vec<SuperRecord>>,
    /// By CPU, in the order of time.
    pub(crate) pieces: BTreeMap<u64, Vec<CpuPiece>>,
    /// Virtual thread ids of user-level threads.
    pub(crate) tids: HashMap<u64, u64>,
    pub(crate) violations: usize,
}

impl SuperTrace {
    /// Merges a recording of one process; times are `offset` below those of `print`.
    pub(crate) fn of(trace: &str, offset: u64) -> SuperTrace {
        let merged = format!("{trace}.levels");
        text(&["levels", "merge", "--bound", "20us", trace, "-o", &merged]);
        let classes = "sched_switch,tracebraid:ult_*,tracebraid:lwp_*,tracebraid_levels:*";
        let printed = text(&[
            "print", "--strict", "--format", "json", "--name", classes, &merged,
        ]);
        let mut found = SuperTrace::default();
        for line in printed.lines() {
            found.add(serde_json::from_str(line).expect("JSON"), offset);
        }
        found
    }

    fn add(&mut self, mut event: Value, offset: u64) {
        let number = |value: &Value| value.as_u64().expect("a number");
        let time = number(&event["timestamp"]) - offset;
        let cpu = event["packet_context"]["cpu_id"].as_u64();
        let name = event["name"].as_str().expect("a name").to_owned();
        match name.strip_prefix("tracebraid:") {
            Some(class) => {
                let context = &event["common_context"];
                let record = SuperRecord {
                    time,
                    cpu,
                    class: class.to_owned(),
                    ult: number(&context["ult"]),
                    payload: event["payload"].take(),
                };
                let lwp = number(&event["common_context"]["lwp"]);
                self.records.entry(lwp).or_default().push(record);
            }
            None if name == "sched_switch" => {
                let tid = number(&event["payload"]["next_tid"]);
                self.switch(cpu.expect("a CPU"), tid, time);
            }
            None if name == "tracebraid_levels:thread" => {
                let payload = &event["payload"];
                let tid = number(&payload["tid"]);
                self.tids.insert(number(&payload["ult"]), tid);
            }
            None => self.violations += 1,
        }
    }

    fn switch(&mut self, cpu: u64, tid: u64, time: u64) {
        add_switch(self.pieces.entry(cpu).or_default(), cpu, tid, time);
    }
}

/// Ends the last piece of a CPU, and begins another one.
pub(crate) fn add_switch(pieces: &mut Vec<CpuPiece>, cpu: u64, tid: u64, time: u64) {
    if let Some(last) = pieces.last_mut() {
        last.end = time;
    }
    let (begin, end) = (time, u64::MAX);
    pieces.push(CpuPiece {
        cpu,
        tid,
        begin,
        end,
    });
}

/// True if a thread runs on a CPU at a time, within the error of the kernel's clock.
pub(crate) fn runs_about(pieces: &[CpuPiece], time: u64, tid: u64) -> bool {
    let first = pieces.partition_point(|piece| piece.end + KERNEL_CLOCK_ERROR < time);
    let near = pieces[first..].iter();
    let mut near = near.take_while(|piece| piece.begin <= time + KERNEL_CLOCK_ERROR);
    near.any(|piece| piece.tid == tid)
}
