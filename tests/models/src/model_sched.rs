//! Run queues, by one plain pass over a trace without losses.

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::trace::TraceSet;

use crate::events::{ModelEvent, Record, by_cpu, extent, merged};

/// The run queue of a CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// Durations of waits that ended by a switch on the CPU.
    pub waits: Vec<u64>,
    /// Total time that threads waited for the CPU, in nanoseconds.
    pub queued: u64,
    /// Maximum number of threads that waited for the CPU at once, for more than an instant.
    pub longest: u64,
    /// The waits that began with a preemption, by thread and preemptor.
    pub preempted: BTreeMap<(i32, i32), Vec<u64>>,
    /// Begins and ends of waits.
    changes: Vec<(i64, i64)>,
}

impl Queue {
    fn waited(&mut self, from: i64, to: i64) {
        self.queued += from.abs_diff(to);
        if from < to {
            self.changes.extend([(from, 1), (to, -1)]);
        }
    }

    fn count(&mut self) {
        self.changes.sort_unstable();
        let mut length = 0;
        for (_, by) in &self.changes {
            length += by;
            self.longest = self.longest.max(length as u64);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Now {
    Runs,
    Sleeps,
    /// Woken or created, for a CPU that no event has named yet.
    Pending(i64),
    /// Time of becoming runnable, begin of waiting for the current CPU, that CPU, and the
    /// preemptor.
    Waits(i64, i64, u32, Option<i32>),
}

#[derive(Default)]
struct Model {
    threads: HashMap<i32, Now>,
    queues: BTreeMap<u32, Queue>,
}

pub fn queues(set: &TraceSet) -> BTreeMap<u32, Queue> {
    let mut model = Model::default();
    for entry in merged(by_cpu(set, |name| name.starts_with("sched_"))) {
        if let ModelEvent::Event(event) = &entry.what {
            model.event(entry.cpu, entry.time, event);
        }
    }
    let (_, end) = extent(set);
    let tids: Vec<i32> = model.threads.keys().copied().collect();
    tids.into_iter().for_each(|tid| model.leaves(tid, end));
    model.queues.values_mut().for_each(Queue::count);
    model.queues
}

impl Model {
    fn now(&self, tid: i32) -> Now {
        self.threads.get(&tid).copied().unwrap_or(Now::Sleeps)
    }

    fn queue(&mut self, cpu: u32) -> &mut Queue {
        self.queues.entry(cpu).or_default()
    }

    fn leaves(&mut self, tid: i32, time: i64) {
        if let Now::Waits(_, since, cpu, _) = self.now(tid) {
            self.queue(cpu).waited(since, time);
        }
    }

    fn event(&mut self, cpu: u32, time: i64, event: &Record) {
        let target = |name| event.int(name).expect("a CPU") as u32;
        let Some(tid) = event.id("tid").or(event.id("child_tid")) else {
            if event.name == "sched_switch" {
                self.switch(cpu, time, event);
            }
            return;
        };
        let now = self.now(tid);
        let next = match (event.name.as_str(), now) {
            ("sched_waking", Now::Sleeps) => Now::Pending(time),
            ("sched_wakeup" | "sched_wakeup_new", Now::Sleeps | Now::Pending(_)) => {
                Now::Waits(time, time, target("target_cpu"), None)
            }
            ("sched_migrate_task", Now::Waits(since, _, _, by)) => {
                self.leaves(tid, time);
                Now::Waits(since, time, target("dest_cpu"), by)
            }
            ("sched_process_fork", _) => Now::Pending(time),
            _ => now,
        };
        self.threads.insert(tid, next);
    }

    fn switch(&mut self, cpu: u32, time: i64, event: &Record) {
        let [prev, next] = ["prev_tid", "next_tid"].map(|name| event.id(name).expect("a thread"));
        if next != 0 {
            self.leaves(next, time);
            match self.now(next) {
                Now::Waits(since, _, _, by) => {
                    let queue = self.queue(cpu);
                    queue.waits.push(since.abs_diff(time));
                    if let Some(by) = by {
                        let waits = queue.preempted.entry((next, by)).or_default();
                        waits.push(since.abs_diff(time));
                    }
                }
                Now::Pending(since) => {
                    let queue = self.queue(cpu);
                    queue.waits.push(since.abs_diff(time));
                    queue.queued += since.abs_diff(time);
                }
                Now::Runs | Now::Sleeps => {}
            }
            self.threads.insert(next, Now::Runs);
        }
        if prev != 0 {
            self.leaves(prev, time);
            // Runnable, or preempted in the numbering of kernels since 4.14 and 4.4.
            let waits = [0, 0x100, 0x800].contains(&event.int("prev_state").expect("a state"));
            let now = if waits {
                Now::Waits(time, time, cpu, Some(next))
            } else {
                Now::Sleeps
            };
            self.threads.insert(prev, now);
        }
    }
}
