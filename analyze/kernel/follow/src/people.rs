//! Names and processes of threads, as last known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Comm;

use crate::sources::CpuKey;
use crate::table::Table;

/// A thread (or process) of a trace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ThreadKey {
    /// Index of the trace (the machine).
    pub trace: u32,
    /// Id of the thread in the trace.
    pub tid: i32,
}

impl ThreadKey {
    /// Stands for unknown threads; no thread has this id.
    pub const UNKNOWN: i32 = -1;

    /// Another thread of the same machine.
    pub fn with(self, tid: i32) -> ThreadKey {
        ThreadKey { tid, ..self }
    }
}

/// A value and the time at which it was learned. Later values replace earlier ones; at equal times,
/// the value of the later CPU wins, and on one CPU that of the later event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known<T> {
    /// Time in nanoseconds from the origin.
    pub time: i64,
    /// CPU of the event.
    pub cpu: CpuKey,
    /// The value.
    pub value: T,
}

impl<T: Copy> Known<T> {
    fn is_before(&self, other: &Known<T>) -> bool {
        (self.time, self.cpu) <= (other.time, other.cpu)
    }

    /// Keeps the value of the latest time; at equal times, that of the last CPU.
    pub fn learn(place: &mut Option<Known<T>>, new: Known<T>) {
        if place.as_ref().is_none_or(|old| old.is_before(&new)) {
            *place = Some(new);
        }
    }
}

/// Name and process of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    name: Option<Known<Comm>>,
    pid: Option<Known<i32>>,
}

impl Identity {
    #[inline(always)]
    pub fn learn_name(&mut self, time: i64, cpu: CpuKey, name: Comm) {
        match &mut self.name {
            // Most often only the time changes.
            Some(known) if known.cpu == cpu && known.time <= time => {
                (known.time, known.value) = (time, name)
            }
            place => Known::learn(
                place,
                Known {
                    time,
                    cpu,
                    value: name,
                },
            ),
        }
    }

    pub fn learn_pid(&mut self, time: i64, cpu: CpuKey, pid: i32) {
        Known::learn(
            &mut self.pid,
            Known {
                time,
                cpu,
                value: pid,
            },
        );
    }

    pub fn merge(&mut self, later: Identity) {
        later
            .name
            .into_iter()
            .for_each(|name| Known::learn(&mut self.name, name));
        later
            .pid
            .into_iter()
            .for_each(|pid| Known::learn(&mut self.pid, pid));
    }
}

/// All known threads.
pub type People = Table<Identity>;

impl People {
    /// Merges the values of later chunks.
    pub fn merge(&mut self, later: People) {
        self.merge_by(later, Identity::merge);
    }

    /// Sums values of threads by process. The result must not depend on the order of calls of
    /// `add`.
    pub fn processes<T, S: Default>(
        &self,
        threads: impl IntoIterator<Item = (Thread, T)>,
        add: impl Fn(&mut S, T),
    ) -> Vec<(Process, S)> {
        let mut sums: BTreeMap<_, (u64, S)> = BTreeMap::new();
        for (thread, of_thread) in threads {
            let alone = thread.tid.filter(|_| thread.pid.is_none());
            let (threads, sum) = sums.entry((thread.trace, thread.pid, alone)).or_default();
            *threads += 1;
            add(sum, of_thread);
        }
        let row = |((trace, pid, tid), (threads, sum))| {
            let first: Option<i32> = Option::or(pid, tid);
            let name = first.and_then(|tid| self.thread(ThreadKey { trace, tid }).name);
            let process = Process {
                trace,
                pid,
                tid,
                name,
                threads,
            };
            (process, sum)
        };
        sums.into_iter().map(row).collect()
    }

    /// The thread as reports show it.
    pub fn thread(&self, key: ThreadKey) -> Thread {
        let identity = self.find(key).copied().unwrap_or_default();
        Thread {
            trace: key.trace,
            tid: (key.tid != ThreadKey::UNKNOWN).then_some(key.tid),
            pid: identity.pid.map(|pid| pid.value),
            name: identity
                .name
                .map(|name| name.value.text())
                .filter(|name| !name.is_empty()),
        }
    }
}

/// A thread as reports show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Index of the trace.
    pub trace: u32,
    /// Id of the thread; `None` stands for all unknown threads.
    pub tid: Option<i32>,
    /// Process of the thread, if recorded.
    pub pid: Option<i32>,
    /// Last known name.
    pub name: Option<String>,
}

/// A process as reports show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Index of the trace.
    pub trace: u32,
    /// Id of the process; `None` for a thread whose process is unknown.
    pub pid: Option<i32>,
    /// Id of that thread.
    pub tid: Option<i32>,
    /// Last known name of the first thread.
    pub name: Option<String>,
    /// Number of the process's threads in the report.
    pub threads: u64,
}

impl From<&Process> for Thread {
    /// The first thread of a process stands for it.
    fn from(process: &Process) -> Thread {
        Thread {
            trace: process.trace,
            tid: process.tid,
            pid: process.pid,
            name: process.name.clone(),
        }
    }
}

/// A machine in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Index of the trace.
    pub trace: u32,
    /// Name of the machine, if recorded; with a suffix that distinguishes the trace if the machine
    /// has several.
    pub name: Option<String>,
}
