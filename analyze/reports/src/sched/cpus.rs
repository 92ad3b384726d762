//! What is known of CPUs, and how many threads wait for them.

use serde::{Deserialize, Serialize};

use tracebraid_follow::CpuKey;

/// A CPU at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cpu<Q> {
    /// The thread that switches have left there; none that is known, where events were lost.
    pub(super) current: Option<i32>,
    /// Something has told that, or that it is not known.
    pub(super) is_seen: bool,
    /// How many wait for it.
    pub(super) queue: Q,
    /// How often events were lost.
    pub(super) losses: usize,
}

/// How many threads wait for a CPU, as they come and go. Changes of one `stretch`, which never goes
/// back, have no change between them that is not known.
pub(super) trait RunQueue: Default {
    /// One more waits.
    fn more(&mut self, stretch: usize, in_range: bool);
    /// One less does.
    fn less(&mut self, stretch: usize);
    /// The number now counts.
    fn see(&mut self);
    /// Of those that are known to wait nobody is known to wait any longer.
    fn clear(&mut self);
}

/// How many threads wait for a CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    now: i64,
    /// The greatest number in the range.
    pub(super) peak: i64,
}

impl RunQueue for Queue {
    #[inline(always)]
    fn more(&mut self, _: usize, in_range: bool) {
        self.now += 1;
        if in_range {
            self.see();
        }
    }

    #[inline(always)]
    fn less(&mut self, _: usize) {
        self.now = (self.now - 1).max(0);
    }

    #[inline(always)]
    fn see(&mut self) {
        self.peak = self.peak.max(self.now);
    }

    fn clear(&mut self) {
        self.now = 0;
    }
}

/// How the number of threads that wait for a CPU changes in a slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct QueueChanges(Vec<QueueStretch>);

/// A stretch of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct QueueStretch {
    number: usize,
    /// More threads than at the beginning of the slice, as far as the slice alone tells: at the
    /// end, and at most in the range.
    now: i64,
    peak: Option<i64>,
}

impl QueueChanges {
    #[inline(always)]
    fn at(&mut self, number: usize) -> &mut QueueStretch {
        let last = self.0.last().copied().unwrap_or_default();
        if last.number != number || self.0.is_empty() {
            self.0.push(QueueStretch {
                number,
                now: last.now,
                peak: None,
            });
        }
        // It was there, or was just made.
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// All stretches, by number.
    pub(super) fn into_stretches(
        self,
        cpu: CpuKey,
    ) -> impl Iterator<Item = (usize, CpuKey, QueueStretch)> {
        let stretches = self.0.into_iter();
        stretches.map(move |stretch| (stretch.number, cpu, stretch))
    }
}

impl RunQueue for QueueChanges {
    #[inline(always)]
    fn more(&mut self, stretch: usize, in_range: bool) {
        let stretch = self.at(stretch);
        stretch.now += 1;
        if in_range {
            stretch.peak = stretch.peak.max(Some(stretch.now));
        }
    }

    #[inline(always)]
    fn less(&mut self, stretch: usize) {
        self.at(stretch).now -= 1;
    }

    // The number is not known.
    fn see(&mut self) {}

    // It is done when the number is known.
    fn clear(&mut self) {}
}

impl Queue {
    /// What happened in a stretch, after that one of the same slice.
    pub(super) fn change(&mut self, before: QueueStretch, stretch: QueueStretch) {
        let base = self.now - before.now;
        self.now = base + stretch.now;
        if let Some(peak) = stretch.peak {
            self.peak = self.peak.max(base + peak);
        }
    }
}
