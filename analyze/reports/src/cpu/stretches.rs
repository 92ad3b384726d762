//! Stretches: one thread runs on one CPU, from switch to switch.

use serde::{Deserialize, Serialize};

use crate::cpu::rules::Rules;
use crate::groups;
use tracebraid_follow::{CpuKey, Ended, Stretch, ThreadKey, Window};
use tracebraid_statistics::{Bins, Distribution, Top};

/// A thread runs on a CPU; the longest is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Ran {
    pub(super) duration: u64,
    pub(super) begin: i64,
    pub(super) cpu: CpuKey,
    pub(super) tid: i32,
    pub(super) cut: Cut,
}

/// Why a stretch is known, or asked for, in part only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Cut {
    /// It is not.
    No,
    /// The range begins or ends in it, or the trace does.
    Range,
    /// Events were lost: it may have gone on.
    Loss,
}

impl Ran {
    /// The part of a stretch that is in a range; it lasts so long there.
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

/// The stretches of a thread, as far as they are asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stretches {
    pub(super) lengths: Distribution,
    /// By CPU, if that is asked for.
    pub(super) cpus: Vec<(CpuKey, Distribution)>,
    pub(super) top: Top<Ran>,
    /// In a second pass.
    pub(super) freq: Option<Box<Freq>>,
}

/// How many stretches there are of each length.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Freq {
    /// Between the bounds of all threads' lengths.
    pub(super) of_all: Bins,
    /// Between those of this thread's.
    pub(super) own: Bins,
}

impl Stretches {
    /// Adds one, which is within the limits.
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

    /// Adds those from elsewhere.
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
