//! Sums of a thread.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::TaskState;
use tracebraid_threads::Waker;

use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_statistics::{Distribution, Summary, Top};

/// Number of reasons for leaving a CPU: the task states, and an unknown one.
pub(super) const REASONS: usize = TaskState::ALL.len() + 1;

/// The time from a wake-up to the switch. The order is by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Latency {
    pub(super) duration: u64,
    /// Time of the wake-up.
    pub(super) begin: i64,
    pub(super) cpu: CpuKey,
    pub(super) priority: Option<i32>,
    /// The woken thread.
    pub(super) thread: ThreadKey,
    pub(super) by: Waker,
}

impl Latency {
    /// Time of the switch.
    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }
}

/// Sums of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Latencies by priority, sorted by priority.
    pub(super) priorities: Vec<(Option<i32>, Distribution)>,
    pub(super) wakers: ByCause,
    /// By reason.
    pub(super) switches: [u64; REASONS],
    pub(super) waits: Summary,
    /// Waits that began with a preemption, by preemptor.
    pub(super) preempted: ByCause,
    pub(super) migrations: u64,
    pub(super) top: Top<Latency>,
}

impl Counts {
    #[inline]
    pub(super) fn latency(&mut self, latency: Latency, top: usize) {
        self.of_priority(latency.priority).add(latency.duration);
        self.wakers.of(latency.by).add(latency.duration);
        self.top.add(latency, top);
    }

    pub(super) fn merge(&mut self, other: Counts, top: usize) {
        for (priority, durations) in &other.priorities {
            self.of_priority(*priority).merge(durations);
        }
        self.wakers.merge(&other.wakers);
        self.preempted.merge(&other.preempted);
        for (own, count) in self.switches.iter_mut().zip(other.switches) {
            *own += count;
        }
        self.waits.merge(&other.waits);
        self.migrations += other.migrations;
        self.top.merge(other.top, top, |_| {});
    }

    fn of_priority(&mut self, priority: Option<i32>) -> &mut Distribution {
        let found = self
            .priorities
            .binary_search_by_key(&priority, |entry| entry.0);
        let at = found.unwrap_or_else(|at| {
            self.priorities
                .insert(at, (priority, Distribution::default()));
            at
        });
        &mut self.priorities[at].1
    }

    /// The distribution of all latencies.
    pub(super) fn latencies(&self) -> Distribution {
        let mut all = Distribution::default();
        self.priorities.iter().for_each(|(_, some)| all.merge(some));
        all
    }
}

/// Durations by cause: latencies by waker, waits by preemptor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ByCause {
    /// The cause and the index of its durations, sorted by cause.
    index: Vec<(Waker, u32)>,
    durations: Vec<Distribution>,
    /// The entry of the last lookup.
    last: Option<(Waker, u32)>,
}

impl ByCause {
    #[inline]
    pub(super) fn of(&mut self, by: Waker) -> &mut Distribution {
        let at = match self.last {
            Some((last, at)) if last == by => at,
            _ => self.find(by),
        };
        self.last = Some((by, at));
        &mut self.durations[at as usize]
    }

    fn find(&mut self, by: Waker) -> u32 {
        match self.index.binary_search_by_key(&by, |entry| entry.0) {
            Ok(at) => self.index[at].1,
            Err(at) => {
                let place = self.durations.len() as u32;
                self.index.insert(at, (by, place));
                self.durations.push(Distribution::default());
                place
            }
        }
    }

    fn merge(&mut self, other: &ByCause) {
        for (by, durations) in other.entries() {
            self.of(by).merge(durations);
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (Waker, &Distribution)> {
        let entry = |&(by, at): &(Waker, u32)| Some((by, self.durations.get(at as usize)?));
        self.index.iter().filter_map(entry)
    }
}

/// The index of a reason in the counts.
pub(super) fn reason(state: Option<TaskState>) -> u8 {
    match state {
        Some(state) => state as u8,
        None => (REASONS - 1) as u8,
    }
}
