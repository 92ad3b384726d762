//! Stretches: the time of a thread on one CPU from switch to switch.

use serde::{Deserialize, Serialize};

use crate::cpu::rules::Rules;
use crate::groups;
use tracebraid_follow::{CpuKey, Ended, Stretch, ThreadKey, Window};
use tracebraid_statistics::{Bins, Distribution, Top};

/// A stretch. The order is by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Ran {
    pub(super) duration: u64,
    pub(super) begin: i64,
    pub(super) cpu: CpuKey,
    pub(super) tid: i32,
    pub(super) cut: Cut,
}

/// Why a stretch is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Cut {
    /// The stretch is complete.
    No,
    /// The selected range, or the trace, begins or ends within it.
    Range,
    /// Events were lost, and the thread may have run longer.
    Loss,
}

impl Ran {
    /// The part of a stretch within the window; `duration` is the length of that part.
    #[inline]
    pub(super) fn new(window: &Window, cpu: CpuKey, stretch: &Stretch<()>, duration: u64) -> Ran {
        let begin = window
            .from
            .map_or(stretch.since, |from| from.0.max(stretch.since));
        let is_whole = duration == stretch.until.abs_diff(stretch.since);
        let cut = match stretch.ended {
            Ended::Next | Ended::Loss if !is_whole => Cut::Range,
            Ended::Next => Cut::No,
            Ended::Loss => Cut::Loss,
            Ended::Nothing => Cut::Range,
        };
        let tid = stretch.tid;
        Ran {
            duration,
            begin,
            cpu,
            tid,
            cut,
        }
    }

    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }

    pub(super) fn thread(&self) -> ThreadKey {
        let (trace, tid) = (self.cpu.trace, self.tid);
        ThreadKey { trace, tid }
    }
}

/// The requested data on a thread's stretches.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stretches {
    pub(super) lengths: Distribution,
    /// By CPU, if that is asked for.
    pub(super) cpus: Vec<(CpuKey, Distribution)>,
    pub(super) top: Top<Ran>,
    /// Histograms, in a second pass.
    pub(super) freq: Option<Box<Freq>>,
}

/// Histograms of durations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Freq {
    /// Within the bounds of all threads.
    pub(super) of_all: Bins,
    /// Within the bounds of this thread.
    pub(super) own: Bins,
}

impl Stretches {
    /// Adds a stretch, which is within the limits.
    pub(super) fn add(&mut self, rules: &Rules, ran: Ran) {
        if rules.is_counted_by_thread {
            self.lengths.add(ran.duration);
        }
        if rules.is_counted_by_cpu {
            groups::of_cpu(&mut self.cpus, ran.cpu).add(ran.duration);
        }
        self.top.add(ran, rules.top);
        if let Some(bounds) = &rules.bounds {
            let freq = self.freq.get_or_insert_default();
            if let Some(all) = bounds.all {
                freq.of_all.add(all, ran.duration);
            }
            if let Some(own) = bounds.threads.get(&ran.thread()) {
                freq.own.add(*own, ran.duration);
            }
        }
    }

    /// Adds the stretches of another CPU or a later part.
    pub(super) fn merge(&mut self, rules: &Rules, other: Stretches) {
        self.lengths.merge(&other.lengths);
        for (cpu, lengths) in &other.cpus {
            groups::of_cpu(&mut self.cpus, *cpu).merge(lengths);
        }
        self.top.merge(other.top, rules.top, |_| ());
        if let Some(other) = other.freq {
            let freq = self.freq.get_or_insert_default();
            freq.of_all.merge(&other.of_all);
            freq.own.merge(&other.own);
        }
    }
}
