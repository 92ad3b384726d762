//! Sums of the timeline of a device: busy and idle time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_statistics::{Distribution, Top};

use super::causes::Cause;
use super::placed::Placed;

/// Number of idle times of a device that are kept: enough to explain most of the idle time of a
/// program that is late in the same way again and again.
const KEPT: usize = 1000;

/// An idle time of a device, and the command that ended it. The longest is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Gap {
    pub(crate) length: u64,
    pub(crate) begin: u64,
    pub(crate) command: Placed,
}

/// Sums of a timeline, in nanoseconds of the clock of the device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LineSums {
    /// Begin of the first command and end of the last.
    pub(crate) extent: Option<(u64, u64)>,
    /// Time with at least one command.
    pub(crate) busy: u64,
    /// Time with at least one kernel.
    pub(crate) kernels: u64,
    /// Time with several kernels.
    pub(crate) several_kernels: u64,
    /// Time with at least one transfer.
    pub(crate) transfers: u64,
    /// Time with both.
    pub(crate) overlap: u64,
    /// Time with a command of a process.
    pub(crate) processes: BTreeMap<u32, u64>,
    /// Time in which only commands of another process (second) executed while one of this (first)
    /// was queued.
    pub(crate) shared: BTreeMap<(u32, u32), u64>,
    /// Idle times, by the process whose command ended them.
    pub(crate) gaps: BTreeMap<u32, Gaps>,
    longest: Top<Gap>,
}

/// Idle times of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Gaps {
    pub(crate) lengths: Distribution,
    /// By cause.
    pub(crate) causes: [Distribution; Cause::ALL.len()],
}

impl LineSums {
    pub(crate) fn gap(&mut self, gap: Gap) {
        let gaps = self.gaps.entry(gap.command.process).or_default();
        gaps.lengths.add(gap.length);
        let parts = Cause::split(gap.begin, &gap.command);
        for (sum, part) in gaps.causes.iter_mut().zip(parts) {
            if part > 0 {
                sum.add(part);
            }
        }
        self.longest.add(gap, KEPT);
    }

    /// The longest idle times, descending.
    pub(crate) fn longest(&self) -> Vec<Gap> {
        self.longest.clone().into_sorted(KEPT)
    }

    pub(crate) fn merge(&mut self, other: LineSums) {
        self.extent = match (self.extent, other.extent) {
            (Some((begin, end)), Some((from, to))) => Some((begin.min(from), end.max(to))),
            (one, two) => one.or(two),
        };
        self.busy += other.busy;
        self.kernels += other.kernels;
        self.several_kernels += other.several_kernels;
        self.transfers += other.transfers;
        self.overlap += other.overlap;
        for (process, time) in other.processes {
            *self.processes.entry(process).or_default() += time;
        }
        for (pair, time) in other.shared {
            *self.shared.entry(pair).or_default() += time;
        }
        for (process, gaps) in other.gaps {
            let own = self.gaps.entry(process).or_default();
            own.lengths.merge(&gaps.lengths);
            for (sum, part) in own.causes.iter_mut().zip(&gaps.causes) {
                sum.merge(part);
            }
        }
        self.longest.merge(other.longest, KEPT, |_| ());
    }
}
