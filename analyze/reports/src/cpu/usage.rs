//! Sums of a thread's use of CPUs.

use serde::{Deserialize, Serialize};

use crate::cpu::rules::Rules;
use crate::cpu::stretches::Stretches;
use tracebraid_follow::{CpuKey, Known};

/// Sums of a thread's use of CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) active: u64,
    pub(super) switches: u64,
    pub(super) migrations: u64,
    pub(super) priorities: Priorities,
    /// `None` if no stretches are requested.
    pub(super) stretches: Option<Box<Stretches>>,
}

impl Usage {
    /// Adds sums of another CPU or a later part.
    pub(super) fn merge(&mut self, rules: &Rules, later: Usage) {
        self.active += later.active;
        self.switches += later.switches;
        self.migrations += later.migrations;
        self.priorities.merge(later.priorities);
        if let Some(later) = later.stretches {
            self.stretches.get_or_insert_default().merge(rules, *later);
        }
    }
}

/// The priorities of a thread, on the kernel's scale. Each CPU is folded alone, so the order of
/// changes is unknown; the set of priorities and the last one are known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Priorities {
    last: Option<Known<i32>>,
    /// Distinct, ascending.
    all: Vec<i32>,
}

impl Priorities {
    /// The thread has the priority `value` at `time`.
    #[inline]
    pub(super) fn see(&mut self, time: i64, cpu: CpuKey, value: i32) {
        match &mut self.last {
            // Most often only the time changes.
            Some(last) if last.value == value && last.cpu == cpu && last.time <= time => {
                last.time = time
            }
            _ => self.learn(Known { time, cpu, value }),
        }
    }

    fn learn(&mut self, new: Known<i32>) {
        self.add(new.value);
        Known::learn(&mut self.last, new);
    }

    fn add(&mut self, value: i32) {
        if let Err(at) = self.all.binary_search(&value) {
            self.all.insert(at, value);
        }
    }

    fn merge(&mut self, later: Priorities) {
        later.all.into_iter().for_each(|value| self.add(value));
        later
            .last
            .into_iter()
            .for_each(|last| Known::learn(&mut self.last, last));
    }

    /// The last priority.
    pub(super) fn last(&self) -> Option<i32> {
        self.last.map(|last| last.value)
    }

    /// Distinct priorities, ascending.
    pub(super) fn all(&self) -> &[i32] {
        &self.all
    }
}
