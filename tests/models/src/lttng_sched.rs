//! What the scheduler reports of lttng-analyses 0.6.1 count, rule by rule, as far as no event shows
//! that it is wrong (`docs/explain/differences.md`).

use std::collections::HashMap;

use tracebraid_ctf::trace::TraceSet;

use crate::events::{ModelEvent, by_cpu, merged};

/// From a wake-up to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Latency {
    pub tid: i32,
    pub wakeup: i64,
    pub switch: i64,
    pub cpu: u32,
    /// As LTTng counts.
    pub priority: i64,
    /// Who ran where the wake-up was; none for the idle thread and where no switch has told it.
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

/// All latencies, in the order of switches, whatever was lost in between.
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
                // It runs somewhere, as far as switches tell.
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
