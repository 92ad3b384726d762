//! Sums by thread and by LWP.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Table, ThreadKey};
use tracebraid_kernel_model::Syscall;

use crate::levels::level_calls::CallSumsOfThread;

/// Number and total time of stretches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spent {
    pub(super) count: u64,
    /// Nanoseconds.
    pub(super) ns: u64,
}

impl Spent {
    pub(super) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns += ns;
    }

    pub(super) fn merge(&mut self, other: Spent) {
        self.count += other.count;
        self.ns += other.ns;
    }
}

/// Sums of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadSums {
    /// On a CPU.
    pub(super) active: Spent,
    /// The kernel took the CPU from it, or from its LWP.
    pub(super) preempted: Spent,
    /// By the thread that got the CPU.
    pub(super) preempted_by: BTreeMap<i32, Spent>,
    /// Waits in the kernel, of the thread or of its LWP.
    pub(super) kernel: Spent,
    /// Woken in the kernel, without a CPU.
    pub(super) lwp_ready: Spent,
    /// Ready, without an LWP.
    pub(super) ready: Spent,
    /// Turns on the CPU meanwhile, by [keeper](crate::levels::cpu_turns::keeper).
    pub(super) kept_by: BTreeMap<i32, Spent>,
    /// Turns of this thread in which others were ready that then ran on the same CPU: once for each
    /// of the others.
    pub(super) keeps: Spent,
    /// Waits that the runtime knows, by reason.
    pub(super) blocked: BTreeMap<Syscall, Spent>,
    /// System calls that the runtime reports.
    pub(super) calls: Spent,
    pub(super) unknown_ns: u64,
    /// Times between two active slices, or before the first one of a created thread.
    pub(super) idle_slices: u64,
    /// Returns to an LWP after the first time, and those to the same CPU and LWP.
    pub(super) returns: u64,
    pub(super) same_cpu: u64,
    pub(super) same_lwp: u64,
    pub(super) cpu_migrations: u64,
    pub(super) made: CallSumsOfThread,
    /// Events that the thread recorded, if their cost is subtracted.
    pub(super) probes: u64,
}

/// Sums of an LWP, besides those of its own thread, which runs its scheduler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LwpSums {
    /// The first of the user-level threads that it ran at any time, by id; it shows its process.
    pub(super) ult: Option<i32>,
    /// Runs user-level threads.
    pub(super) threads: Spent,
    /// Preempted, waits in the kernel, and waits for a CPU, while it has a user-level thread.
    pub(super) preempted: Spent,
    pub(super) blocked: Spent,
    pub(super) ready: Spent,
    /// Switches to user-level threads.
    pub(super) switches: u64,
    pub(super) cpus: BTreeSet<u32>,
}

/// The sums of all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LevelSums {
    pub(super) threads: Table<ThreadSums>,
    pub(super) lwps: Table<LwpSums>,
}

fn merge_map<K: Ord>(earlier: &mut BTreeMap<K, Spent>, later: BTreeMap<K, Spent>) {
    for (key, spent) in later {
        earlier.entry(key).or_default().merge(spent);
    }
}

impl ThreadSums {
    /// Nanoseconds of waits that the runtime knows.
    pub(super) fn blocked_ns(&self) -> u64 {
        self.blocked.values().map(|spent| spent.ns).sum()
    }

    fn merge(&mut self, other: ThreadSums) {
        self.active.merge(other.active);
        self.preempted.merge(other.preempted);
        merge_map(&mut self.preempted_by, other.preempted_by);
        self.kernel.merge(other.kernel);
        self.lwp_ready.merge(other.lwp_ready);
        self.ready.merge(other.ready);
        merge_map(&mut self.kept_by, other.kept_by);
        self.keeps.merge(other.keeps);
        merge_map(&mut self.blocked, other.blocked);
        self.calls.merge(other.calls);
        self.unknown_ns += other.unknown_ns;
        self.idle_slices += other.idle_slices;
        self.returns += other.returns;
        self.same_cpu += other.same_cpu;
        self.same_lwp += other.same_lwp;
        self.cpu_migrations += other.cpu_migrations;
        self.made.merge(other.made);
        self.probes += other.probes;
    }
}

impl LwpSums {
    pub(super) fn runs(&mut self, ult: i32) {
        self.ult = Some(self.ult.map_or(ult, |own| own.min(ult)));
    }

    fn merge(&mut self, other: LwpSums) {
        if let Some(ult) = other.ult {
            self.runs(ult);
        }
        self.threads.merge(other.threads);
        self.preempted.merge(other.preempted);
        self.blocked.merge(other.blocked);
        self.ready.merge(other.ready);
        self.switches += other.switches;
        self.cpus.extend(other.cpus);
    }
}

impl LevelSums {
    pub(super) fn lwp(&mut self, key: ThreadKey) -> &mut LwpSums {
        self.lwps.get(key)
    }

    pub(super) fn merge(&mut self, later: LevelSums) {
        self.threads.merge_by(later.threads, ThreadSums::merge);
        self.lwps.merge_by(later.lwps, LwpSums::merge);
    }
}
