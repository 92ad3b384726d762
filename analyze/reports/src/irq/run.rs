//! Runs of handlers, and their sums by source.

use serde::{Deserialize, Serialize};

use crate::groups;
use crate::irq::lane::{Frame, Handler, Raised, VECTORS};
use tracebraid_follow::CpuKey;
use tracebraid_statistics::{Bins, Distribution, Top};

/// A handler from start to end. The order is by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) duration: u64,
    pub(super) begin: i64,
    pub(super) cpu: CpuKey,
    pub(super) handler: Handler,
    pub(super) raised: Raised,
    /// Index of the source.
    pub(super) place: usize,
}

impl Run {
    pub(super) fn new(frame: &Frame, cpu: CpuKey, end: i64) -> Run {
        Run {
            duration: end.abs_diff(frame.begin),
            begin: frame.begin,
            cpu,
            handler: frame.handler,
            raised: frame.raised,
            place: frame.place,
        }
    }

    /// Time of the end.
    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }

    /// The vector of a softirq.
    pub(super) fn vector(&self) -> usize {
        usize::try_from(self.handler.1).unwrap_or(VECTORS)
    }

    /// Time from raise to start in nanoseconds, if known.
    pub(super) fn latency(&self) -> Option<u64> {
        Some(self.begin.abs_diff(self.raised.time()?))
    }

    /// Translates the index of the source.
    pub(super) fn moved(self, places: &[usize]) -> Run {
        let place = places.get(self.place).copied().unwrap_or(self.place);
        Run { place, ..self }
    }
}

/// Names of the two distributions in the bounds of a second pass.
pub(super) const DURATION: &str = "duration";
pub(super) const LATENCY: &str = "latency";

/// Sums over the runs of one source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stats {
    pub(super) durations: Distribution,
    /// Time from raise to start.
    pub(super) latencies: Distribution,
    pub(super) raises: u64,
    top: Top<Run>,
    /// Durations by CPU, if that is asked for.
    pub(super) cpus: Vec<(CpuKey, Distribution)>,
    /// Histograms of durations and latencies, in a second pass.
    pub(super) bins: [Bins; 2],
    #[serde(skip)]
    bounds: Option<[Option<(u64, u64)>; 2]>,
}

impl Stats {
    /// Counts a run, and keeps it if it is among the `top` longest.
    #[inline]
    pub(super) fn count(&mut self, run: Run, top: usize) {
        self.durations.add(run.duration);
        if let Some(latency) = run.latency() {
            self.latencies.add(latency);
        }
        self.top.add(run, top);
    }

    /// Keeps a run if it is among the `top` longest, without counting it.
    #[inline]
    pub(super) fn list(&mut self, run: Run, top: usize) {
        self.top.add(run, top);
    }

    /// Adds a run to the histograms; `of` returns the bounds.
    pub(super) fn bin(&mut self, run: &Run, of: impl Fn(&str) -> Option<(u64, u64)>) {
        let bounds = *self
            .bounds
            .get_or_insert_with(|| [of(DURATION), of(LATENCY)]);
        let values = [Some(run.duration), run.latency()];
        for ((bins, bounds), value) in self.bins.iter_mut().zip(bounds).zip(values) {
            if let (Some(bounds), Some(value)) = (bounds, value) {
                bins.add(bounds, value);
            }
        }
    }

    /// Adds later sums of the source with index `place`.
    pub(super) fn merge(&mut self, later: Stats, place: usize, top: usize) {
        self.durations.merge(&later.durations);
        self.latencies.merge(&later.latencies);
        self.raises += later.raises;
        for (cpu, durations) in &later.cpus {
            groups::of_cpu(&mut self.cpus, *cpu).merge(durations);
        }
        self.top.merge(later.top, top, |run| run.place = place);
        for (own, later) in self.bins.iter_mut().zip(&later.bins) {
            own.merge(later);
        }
    }

    /// The longest runs.
    pub(super) fn top(&self, most: usize) -> Vec<Run> {
        self.top.clone().into_sorted(most)
    }
}
