//! Sums that do not depend on order.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Table, ThreadKey};
use tracebraid_statistics::Distribution;

use crate::gpu::job::DoneJob;
use crate::gpu::matching::WaitEnd;
use crate::gpu::ring::RingRef;

/// Sums that do not depend on order. The size is bounded by the number of rings and threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// In order.
    pub(super) rings: Vec<RingSums>,
    /// Waits of threads for fences.
    pub(super) waits: Table<Distribution>,
    /// Completions of jobs whose beginning is not known.
    pub(super) not_begun: u64,
    /// Jobs that were replaced or freed before a completion was recorded.
    pub(super) unfinished: u64,
}

/// Jobs of a ring.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RingSums {
    pub(super) ring: RingRef,
    /// When the first job began and the last one was complete.
    pub(super) extent: Option<(i64, i64)>,
    /// By the thread that queued them.
    pub(super) threads: Table<JobSums>,
}

/// Jobs of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct JobSums {
    /// Times in the driver's queue, of the jobs for which they are known.
    pub(super) host: Distribution,
    /// Times from the ring's taking the job to its execution.
    pub(super) device: Distribution,
    pub(super) execution: Distribution,
    /// Jobs that had to wait for another fence.
    pub(super) held: u64,
}

/// When a job was executed: from then on until it was complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Executed {
    pub(super) begin: i64,
}

impl JobSums {
    pub(super) fn merge(&mut self, other: &JobSums) {
        self.host.merge(&other.host);
        self.device.merge(&other.device);
        self.execution.merge(&other.execution);
        self.held += other.held;
    }

    pub(super) fn jobs(&self) -> u64 {
        self.execution.summary().count()
    }
}

impl RingSums {
    pub(super) fn add(&mut self, job: &DoneJob, Executed { begin }: Executed) {
        self.extend((begin, job.done));
        let trace = self.ring.name().trace;
        let tid = job.thread.unwrap_or(ThreadKey::UNKNOWN);
        let sums = self.threads.get(ThreadKey { trace, tid });
        if let Some(queued) = job.queued {
            sums.host.add(queued.abs_diff(job.start));
        }
        sums.device.add(job.start.abs_diff(begin));
        sums.execution.add(begin.abs_diff(job.done));
        sums.held += u64::from(job.is_held);
    }

    fn extend(&mut self, (begin, end): (i64, i64)) {
        let known = self.extent.get_or_insert((begin, end));
        *known = (known.0.min(begin), known.1.max(end));
    }

    /// All jobs.
    pub(super) fn all(&self) -> JobSums {
        let mut all = JobSums::default();
        self.threads.entries().for_each(|(_, of)| all.merge(of));
        all
    }
}

impl Sums {
    /// The sums of a ring.
    pub(super) fn ring(&mut self, ring: &RingRef) -> &mut RingSums {
        let at = self.rings.binary_search_by(|known| known.ring.cmp(ring));
        let at = at.unwrap_or_else(|at| {
            let new = RingSums {
                ring: ring.clone(),
                extent: None,
                threads: Table::default(),
            };
            self.rings.insert(at, new);
            at
        });
        &mut self.rings[at]
    }

    pub(super) fn waited(&mut self, thread: ThreadKey, begin: i64, end: WaitEnd) {
        if end.counts {
            self.waits.get(thread).add(begin.abs_diff(end.time));
        }
    }

    pub(super) fn merge(&mut self, other: Sums) {
        for of_ring in other.rings {
            let own = self.ring(&of_ring.ring);
            if let Some(extent) = of_ring.extent {
                own.extend(extent);
            }
            own.threads
                .merge_by(of_ring.threads, |own, of| own.merge(&of));
        }
        self.waits.merge_by(other.waits, |own, of| own.merge(&of));
        self.not_begun += other.not_begun;
        self.unfinished += other.unfinished;
    }
}
