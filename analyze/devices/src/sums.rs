//! Sums of calls and commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_clocks::Timeline;
use tracebraid_statistics::{Distribution, Summary};

use crate::item::{Completed, Enqueued, Handle, ThreadId, Times};
use crate::kind::Kind;

/// Calls of a function.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Calls {
    pub(crate) durations: Distribution,
    pub(crate) errors: u64,
}

impl Calls {
    pub(crate) fn add(&mut self, duration: u64, is_error: bool) {
        self.durations.add(duration);
        self.errors += u64::from(is_error);
    }

    fn merge(&mut self, other: &Calls) {
        self.durations.merge(&other.durations);
        self.errors += other.errors;
    }
}

/// Sums of commands of a kind and name, in nanoseconds of the clock of their device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Commands {
    /// Complete commands.
    pub(crate) count: u64,
    pub(crate) errors: u64,
    /// Complete commands without times.
    pub(crate) unprofiled: u64,
    /// Complete commands of which only the duration is known.
    pub(crate) only_durations: u64,
    /// In the queue of the host: from queued to submitted.
    pub(crate) host: Summary,
    /// In the queue of the device: from submitted to started.
    pub(crate) device: Summary,
    /// From started to ended.
    pub(crate) execution: Distribution,
    pub(crate) bytes: u64,
    /// Nanoseconds of execution of commands whose bytes are known.
    pub(crate) moving: u64,
    pub(crate) items: u64,
}

impl Commands {
    pub(crate) fn add(&mut self, enqueued: &Enqueued, completed: &Completed) {
        self.count += 1;
        self.errors += u64::from(completed.status < 0);
        let call = &enqueued.call;
        self.bytes = self.bytes.saturating_add(call.bytes);
        self.items = self.items.saturating_add(call.items);
        if !completed.is_profiled {
            self.unprofiled += 1;
            return;
        }
        let [queued, submit, start, end] = completed.times;
        // Times of a device may be equal, and a broken driver may have them in any order.
        match completed.kind {
            Times::Duration => self.only_durations += 1,
            _ => {
                self.host.add(submit.saturating_sub(queued));
                self.device.add(start.saturating_sub(submit));
            }
        }
        let execution = end.saturating_sub(start);
        self.execution.add(execution);
        if call.bytes > 0 {
            self.moving = self.moving.saturating_add(execution);
        }
    }

    pub(crate) fn merge(&mut self, other: &Commands) {
        self.count += other.count;
        self.errors += other.errors;
        self.unprofiled += other.unprofiled;
        self.only_durations += other.only_durations;
        self.host.merge(&other.host);
        self.device.merge(&other.device);
        self.execution.merge(&other.execution);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.moving = self.moving.saturating_add(other.moving);
        self.items = self.items.saturating_add(other.items);
    }
}

/// Sums of the commands of a queue, in nanoseconds of the clock of their device.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueueSums {
    /// Complete commands.
    pub(crate) count: u64,
    pub(crate) errors: u64,
    /// In the queue of the host, in that of the device, and executing.
    pub(crate) times: [u64; 3],
}

impl QueueSums {
    pub(crate) fn add(&mut self, completed: &Completed) {
        self.count += 1;
        self.errors += u64::from(completed.status < 0);
        if completed.is_profiled {
            // Of a duration, the first three are 0.
            let times = completed.times.windows(2);
            for (sum, pair) in self.times.iter_mut().zip(times) {
                *sum = sum.saturating_add(pair[1].saturating_sub(pair[0]));
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &QueueSums) {
        self.count += other.count;
        self.errors += other.errors;
        for (sum, time) in self.times.iter_mut().zip(other.times) {
            *sum = sum.saturating_add(time);
        }
    }
}

/// Key by which commands are added up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) process: u32,
    pub(crate) kind: Kind,
    pub(crate) name: Name,
}

/// Name of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Name {
    /// The command is no kernel.
    None,
    Known(String),
    /// The name that the handle has at the begin of the slice.
    Inherited(u64),
}

/// A call, kept for export. The order is that of time, with calls around others first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct KeptCall {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) thread: ThreadId,
    pub(crate) function: u32,
}

/// Sums that may be added in any order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sums {
    /// By process and function.
    pub(crate) calls: BTreeMap<(u32, u32), Calls>,
    pub(crate) commands: BTreeMap<Row, Commands>,
    /// By queue; its handle is 0 if unknown.
    pub(crate) queues: BTreeMap<Handle, QueueSums>,
    /// Relation of the clock of a device (first) to that of the trace (second), from readings.
    pub(crate) readings: BTreeMap<Handle, Timeline>,
    /// Completions of commands whose call is not in the trace.
    pub(crate) without_call: u64,
    /// All calls, in any order, if they are kept.
    pub(crate) kept: Vec<KeptCall>,
}

impl Sums {
    pub(crate) fn merge(&mut self, other: Sums) {
        for (key, calls) in other.calls {
            self.calls.entry(key).or_default().merge(&calls);
        }
        for (row, commands) in other.commands {
            self.commands.entry(row).or_default().merge(&commands);
        }
        for (queue, sums) in other.queues {
            self.queues.entry(queue).or_default().merge(&sums);
        }
        for (device, clock) in other.readings {
            self.readings.entry(device).or_default().merge(clock);
        }
        self.without_call += other.without_call;
        self.kept.extend(other.kept);
    }
}
