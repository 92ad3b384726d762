//! CPUs, and the number of threads that wait for them.

use serde::{Deserialize, Serialize};

use tracebraid_follow::CpuKey;

/// The state of a CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cpu<Q> {
    /// The thread that was last switched to; `None` if unknown, such as after a loss.
    pub(super) current: Option<i32>,
    /// True if an event has set `current`, or made it unknown.
    pub(super) is_seen: bool,
    /// Number of threads that wait for the CPU.
    pub(super) queue: Q,
    /// Number of losses of events.
    pub(super) losses: usize,
}

/// The number of threads that wait for a CPU over time. Changes with the same `stretch`, which
/// never decreases, have no unknown change between them.
pub(super) trait RunQueue: Default {
    /// One more thread waits.
    fn more(&mut self, stretch: usize, in_range: bool);
    /// One thread less waits.
    fn less(&mut self, stretch: usize);
    /// From now on, the number counts for the peak.
    fn see(&mut self);
    /// The threads that were known to wait are no longer known to.
    fn clear(&mut self);
}

/// The number of threads that wait for a CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    now: i64,
    /// Maximum in the range.
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

/// Changes of the number of waiting threads in a slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct QueueChanges(Vec<QueueStretch>);

/// A stretch of the changes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct QueueStretch {
    number: usize,
    /// Number of waiting threads relative to that at the start of the slice, as far as the slice
    /// alone determines it: at the end of the stretch, and the maximum in the range.
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
        // Not empty: the stretch existed, or was just added.
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

    // The number is unknown in a slice.
    fn see(&mut self) {}

    // Composing clears the queue, when the number is known.
    fn clear(&mut self) {}
}

impl Queue {
    /// Applies a stretch of changes that follows the stretch `before` of the same slice.
    pub(super) fn change(&mut self, before: QueueStretch, stretch: QueueStretch) {
        let base = self.now - before.now;
        self.now = base + stretch.now;
        if let Some(peak) = stretch.peak {
            self.peak = self.peak.max(base + peak);
        }
    }
}
