//! What is known of CPUs.

use serde::{Deserialize, Serialize};

use crate::stats::Summary;

/// What is known of a CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cpu {
    /// The thread that switches have left there; none that is known, where events were lost.
    pub(super) current: Option<i32>,
    /// How many wait for it.
    pub(super) queue: Queue,
    /// How often events were lost.
    pub(super) losses: usize,
    /// Time that threads waited for it, in the range.
    pub(super) queued: u128,
    /// How long those waited that it then ran.
    pub(super) waits: Summary,
}

/// How many threads wait for a CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    now: u64,
    /// The greatest number in the range.
    pub(super) peak: u64,
}

impl Queue {
    /// The number now counts, if this is in the range.
    #[inline(always)]
    pub(super) fn see(&mut self, in_range: bool) {
        if in_range {
            self.peak = self.peak.max(self.now);
        }
    }

    /// One more waits.
    #[inline(always)]
    pub(super) fn more(&mut self, in_range: bool) {
        self.now += 1;
        self.see(in_range);
    }

    /// One less does.
    #[inline(always)]
    pub(super) fn less(&mut self) {
        self.now = self.now.saturating_sub(1);
    }

    /// Of those that are known to wait nobody is known to wait any longer.
    pub(super) fn clear(&mut self) {
        self.now = 0;
    }
}
