//! When a ring executed its jobs.
//!
//! A ring executes one job after the other, in the order in which it completes them. So a job begins
//! when the previous one is complete, or when it is handed to the ring, if that is later.

use crate::gpu::job::DoneJob;
use crate::gpu::ring::RingRef;
use crate::gpu::sums::{Executed, Sums};

/// The jobs that a ring completed in a slice of time.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) ring: RingRef,
    /// When it completed the last earlier job.
    pub(super) before: Option<i64>,
    /// In order.
    pub(super) jobs: Vec<DoneJob>,
    /// Others, in no order.
    pub(super) late: Vec<DoneJob>,
}

impl Piece {
    /// Counts the jobs.
    pub(super) fn play(self, sums: &mut Sums) {
        let Piece {
            ring,
            before,
            mut jobs,
            late,
        } = self;
        if !late.is_empty() {
            jobs.extend(late);
            jobs.sort_unstable();
        }
        let of_ring = sums.ring(&ring);
        let mut before = before.unwrap_or(i64::MIN);
        for job in jobs {
            let begin = job.start.max(before).min(job.done);
            before = job.done;
            if job.counts {
                of_ring.add(&job, Executed { begin });
            }
        }
    }
}
