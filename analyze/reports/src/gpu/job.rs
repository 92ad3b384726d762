//! Jobs.

use serde::{Deserialize, Serialize};

use crate::gpu::ring::RingRef;
use crate::gpu::step::JobKey;

/// A job that is not complete, as far as its steps are known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct OpenJob {
    pub(super) queued: Option<i64>,
    /// When it was handed to the ring, first.
    pub(super) run: Option<i64>,
    /// The thread that queued it.
    pub(super) thread: Option<i32>,
    /// It had to wait for another fence.
    pub(super) is_held: bool,
    pub(super) ring: Option<RingRef>,
}

impl OpenJob {
    pub(super) fn runs(&mut self, time: i64, ring: RingRef) {
        self.run.get_or_insert(time);
        self.ring.get_or_insert(ring);
    }

    /// Adds later steps.
    pub(super) fn go_on(&mut self, later: OpenJob) {
        let OpenJob {
            run, is_held, ring, ..
        } = later;
        self.run = self.run.or(run);
        self.is_held |= is_held;
        self.ring = self.ring.take().or(ring);
    }

    /// The complete job; `None` if neither its queueing nor its start was recorded.
    pub(super) fn finish(self, key: JobKey, end: JobEnd) -> Option<(RingRef, DoneJob)> {
        let done = DoneJob {
            done: end.time,
            start: self.run.or(self.queued)?,
            key,
            queued: self.queued.filter(|_| self.run.is_some()),
            thread: self.thread,
            is_held: self.is_held,
            counts: end.counts,
        };
        Some((self.ring?, done))
    }
}

/// The end of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobEnd {
    pub(super) time: i64,
    /// At a selected time and CPU.
    pub(super) counts: bool,
    /// The event is that of a job, not of any fence.
    pub(super) is_of_job: bool,
}

/// A complete job. The order is that in which the ring completes jobs; of jobs that are complete at
/// the same time, those that were handed to it earlier come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DoneJob {
    pub(super) done: i64,
    /// When it was handed to the ring; when it was queued, if that was not recorded.
    pub(super) start: i64,
    pub(super) key: JobKey,
    /// `None` also if it is not known when it was handed to the ring.
    pub(super) queued: Option<i64>,
    pub(super) thread: Option<i32>,
    pub(super) is_held: bool,
    pub(super) counts: bool,
}
