//! Sums of a block device.

use serde::{Deserialize, Serialize};

use crate::disk::request::{DiskKey, Request, RequestKind};
use tracebraid_follow::{Table, ThreadKey};
use tracebraid_statistics::{Bins, Distribution, Top};

/// Sums of a block device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Disk {
    pub(super) key: DiskKey,
    /// By request kind.
    pub(super) kinds: [Done; RequestKind::ALL.len()],
    /// Time from the queue to the driver.
    pub(super) waits: Distribution,
    pub(super) counts: Counts,
    pub(super) top: Top<Request>,
    /// Latencies of requests with data by the thread that their issue names, if that is asked for.
    pub(super) threads: Table<Distribution>,
    /// Latencies of requests with data, in a second pass.
    pub(super) bins: Bins,
}

/// Completed requests of a kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) latencies: Distribution,
    pub(super) sectors: u64,
}

impl Done {
    pub(super) fn merge(&mut self, other: &Done) {
        self.latencies.merge(&other.latencies);
        self.sectors = self.sectors.saturating_add(other.sectors);
    }
}

/// Numbers of events.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Completions with an error.
    pub(super) errors: u64,
    /// Requests returned to the queue.
    pub(super) requeues: u64,
    /// Bios merged into a request.
    pub(super) merged_bios: u64,
    /// Requests merged into another request.
    pub(super) merged_requests: u64,
    /// Completions of flush sequences: a write, if any, and its flushes are complete.
    pub(super) sequences: u64,
    /// Requests completed in parts.
    pub(super) parts: u64,
    /// Completions without a known issue.
    pub(super) not_begun: u64,
    /// Requests still in progress when another one for the same sectors was issued.
    pub(super) replaced: u64,
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        let Counts {
            errors,
            requeues,
            merged_bios,
            merged_requests,
            sequences,
            parts,
            not_begun,
            replaced,
        } = self;
        *errors += other.errors;
        *requeues += other.requeues;
        *merged_bios += other.merged_bios;
        *merged_requests += other.merged_requests;
        *sequences += other.sequences;
        *parts += other.parts;
        *not_begun += other.not_begun;
        *replaced += other.replaced;
    }
}

impl Disk {
    pub(super) fn new(key: DiskKey) -> Disk {
        Disk {
            key,
            kinds: Default::default(),
            waits: Distribution::default(),
            counts: Counts::default(),
            top: Top::default(),
            threads: Table::default(),
            bins: Bins::default(),
        }
    }

    /// Adds sums of the same disk from elsewhere, keeping at most `top` requests for the list.
    pub(super) fn merge(&mut self, other: Disk, top: usize) {
        for (own, done) in self.kinds.iter_mut().zip(&other.kinds) {
            own.merge(done);
        }
        self.waits.merge(&other.waits);
        self.counts.merge(&other.counts);
        self.top.merge(other.top, top, |_| {});
        let add = |own: &mut Distribution, other: Distribution| own.merge(&other);
        self.threads.merge_by(other.threads, add);
        self.bins.merge(&other.bins);
    }

    /// Adds the latency of a request to those of its thread.
    pub(super) fn add_to_thread(&mut self, request: &Request) {
        let trace = self.key.trace;
        let tid = request.thread.unwrap_or(ThreadKey::UNKNOWN);
        self.threads
            .get(ThreadKey { trace, tid })
            .add(request.latency);
    }

    /// Adds a completed request.
    #[inline]
    pub(super) fn add(&mut self, request: Request, top: usize) {
        let done = &mut self.kinds[request.kind() as usize];
        done.latencies.add(request.latency);
        done.sectors = done.sectors.saturating_add(request.place.sectors);
        self.top.add(request, top);
    }

    /// Completed requests of a kind.
    pub(super) fn of(&self, kind: RequestKind) -> &Done {
        &self.kinds[kind as usize]
    }

    /// Completed requests with data, of all kinds.
    pub(super) fn with_data(&self) -> Done {
        let mut all = Done::default();
        let kinds = RequestKind::ALL.into_iter().filter(|kind| kind.has_data());
        kinds.for_each(|kind| all.merge(self.of(kind)));
        all
    }
}
