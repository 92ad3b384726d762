//! What adds up in any order.

use serde::{Deserialize, Serialize};

use crate::sched::freq::Freq;
use crate::sched::stats::{Counts, Latency};
use tracebraid_follow::{ByCpu, CpuKey, Table};
use tracebraid_statistics::Summary;

/// What adds up in any order. Its size depends on the number of threads, CPUs, and pairs of them,
/// but for the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) counts: Table<Counts>,
    pub(super) cpus: ByCpu<CpuSums>,
    /// By CPUs: threads that went from one to the other.
    pub(super) migrations: Vec<((CpuKey, CpuKey), u64)>,
    pub(super) log: Vec<Latency>,
    pub(super) freq: Freq,
}

/// Of a CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CpuSums {
    /// Time that threads waited for it, in the range.
    pub(super) queued: u128,
    /// How long those waited that it then ran.
    pub(super) waits: Summary,
}

impl Sums {
    /// Threads went from one CPU to another.
    pub(super) fn migrates(&mut self, pair: (CpuKey, CpuKey), count: u64) {
        match self.migrations.binary_search_by_key(&pair, |entry| entry.0) {
            Ok(at) => self.migrations[at].1 += count,
            Err(at) => self.migrations.insert(at, (pair, count)),
        }
    }

    /// Adds other sums, of which so many latencies at most are listed by thread.
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
