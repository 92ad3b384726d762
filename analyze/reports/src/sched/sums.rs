//! Sums that do not depend on order.

use serde::{Deserialize, Serialize};

use crate::sched::freq::Freq;
use crate::sched::stats::{Counts, Latency};
use tracebraid_follow::{ByCpu, CpuKey, Table};
use tracebraid_statistics::Summary;

/// Sums that do not depend on order. Apart from the log, their size is bounded by the number of
/// threads, CPUs, and pairs of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) counts: Table<Counts>,
    pub(super) cpus: ByCpu<CpuSums>,
    /// Number of migrations by pair of CPUs, sorted.
    pub(super) migrations: Vec<((CpuKey, CpuKey), u64)>,
    pub(super) log: Vec<Latency>,
    pub(super) freq: Freq,
}

/// Sums of a CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CpuSums {
    /// Total time that threads waited for the CPU, in nanoseconds of the range.
    pub(super) queued: u128,
    /// Waits of the threads that the CPU then ran.
    pub(super) waits: Summary,
}

impl Sums {
    /// Adds migrations from one CPU to another.
    pub(super) fn migrates(&mut self, pair: (CpuKey, CpuKey), count: u64) {
        match self.migrations.binary_search_by_key(&pair, |entry| entry.0) {
            Ok(at) => self.migrations[at].1 += count,
            Err(at) => self.migrations.insert(at, (pair, count)),
        }
    }

    /// Adds other sums, keeping at most `top` latencies by thread for the list.
    pub(super) fn merge(&mut self, other: Sums, top: usize) {
        self.counts
            .merge_by(other.counts, |own, counts| own.merge(counts, top));
        for (cpu, CpuSums { queued, waits }) in other.cpus {
            let own = self.cpus.get(cpu);
            own.queued += queued;
            own.waits.merge(&waits);
        }
        for (pair, count) in other.migrations {
            self.migrates(pair, count);
        }
        self.log.extend(other.log);
        self.freq.merge(&other.freq);
    }
}
