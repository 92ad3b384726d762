//! The rules of the scheduler reports of lttng-analyses 0.6.1, except where events show
//! that they are wrong (`docs/explain/differences.md`).

use std::collections::HashMap;

use tracebraid_ctf::trace::TraceSet;

use crate::events::{ModelEvent, by_cpu, merged};

/// Time from a wake-up to the switch to the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Latency {
    pub tid: i32,
    pub wakeup: i64,
    pub switch: i64,
    pub cpu: u32,
    /// In LTTng's numbering.
    pub priority: i64,
    /// The thread that ran on the CPU of the wake-up; `None` for the idle thread and before the
    /// first switch.
    pub waker: Option<i32>,
}

impl Latency {
    pub fn length(&self) -> i64 {
        self.switch - self.wakeup
    }
}

const EVENTS: [&str; 5] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
];

/// All latencies, in the order of switches, ignoring losses.
pub fn latencies(set: &TraceSet) -> Vec<Latency> {
    let mut current: HashMap<u32, i32> = HashMap::new();
    let mut woken: HashMap<i32, (i64, Option<i32>)> = HashMap::new();
    let mut found = Vec::new();
    for entry in merged(by_cpu(set, |name| EVENTS.contains(&name))) {
        let ModelEvent::Event(event) = &entry.what else {
            continue;
        };
        match event.name.as_str() {
            "sched_switch" => {
                let tid = event.id("next_tid").unwrap();
                current.insert(entry.cpu, tid);
                if let Some((wakeup, waker)) = woken.remove(&tid) {
                    found.push(Latency {
                        tid,
                        wakeup,
                        switch: entry.time,
                        cpu: entry.cpu,
                        priority: event.int("next_prio").unwrap(),
                        waker,
                    });
                }
            }
            "sched_process_fork" => {
                woken.remove(&event.id("child_tid").unwrap());
            }
            _ => {
                let tid = event.id("tid").unwrap();
                // The thread runs already, according to the switches.
                if tid == 0 || current.values().any(|&running| running == tid) {
                    continue;
                }
                let waker = current.get(&entry.cpu).copied().filter(|&waker| waker != 0);
                woken.entry(tid).or_insert((entry.time, waker));
            }
        }
    }
    found
}
