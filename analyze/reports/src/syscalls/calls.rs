//! Sums of a thread's system calls.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Syscall, errno_of};

use tracebraid_follow::{ByCall, ThreadKey};
use tracebraid_statistics::{Bins, Distribution, Top};

/// Sums of a thread's calls that have ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    /// The calls that occurred.
    stats: ByCall<CallStats>,
    top: Top<Call>,
}

/// A call from start to end. The order is by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) duration: u64,
    pub(super) begin: i64,
    pub(super) call: Syscall,
    pub(super) result: i64,
    pub(super) thread: ThreadKey,
}

impl Call {
    /// The error number that the call returned.
    pub(super) fn error(&self) -> Option<i64> {
        errno_of(self.result).filter(|_| !self.call.returns_from_signal())
    }

    /// Time of the end.
    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }
}

/// Sums of one system call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallStats {
    pub(super) durations: Distribution,
    /// Error numbers, ascending, with their counts.
    pub(super) errors: Vec<(u16, u64)>,
    /// Histogram, in a second pass, in place of the other sums.
    pub(super) bins: Option<Box<Bins>>,
}

impl CallStats {
    pub(super) fn merge(&mut self, other: &CallStats) {
        self.durations.merge(&other.durations);
        other
            .errors
            .iter()
            .for_each(|&(errno, count)| self.add_error(errno, count));
        if let Some(bins) = &other.bins {
            self.bins.get_or_insert_default().merge(bins);
        }
    }

    fn add_error(&mut self, errno: u16, count: u64) {
        match self.errors.binary_search_by_key(&errno, |error| error.0) {
            Ok(at) => self.errors[at].1 += count,
            Err(at) => self.errors.insert(at, (errno, count)),
        }
    }

    /// Number of calls that returned an error.
    pub(super) fn failed(&self) -> u64 {
        self.errors.iter().map(|error| error.1).sum()
    }
}

impl Calls {
    /// The sums of a system call.
    #[inline]
    pub(super) fn of(&mut self, call: Syscall) -> &mut CallStats {
        self.stats.get(call)
    }

    /// Counts a call, and keeps it if it is among the `top` longest. With `exactly`, quantiles are
    /// not computed.
    #[inline(always)]
    pub(super) fn count(&mut self, call: Call, top: usize, exactly: bool) {
        let stats = self.of(call.call);
        match exactly {
            true => stats.durations.add_exactly(call.duration),
            false => stats.durations.add(call.duration),
        }
        if let Some(errno) = call.error() {
            stats.add_error(errno as u16, 1);
        }
        self.top.add(call, top);
    }

    /// Adds later sums.
    pub(super) fn merge(&mut self, later: Calls, top: usize) {
        self.stats.merge(&later.stats, CallStats::merge);
        self.top.merge(later.top, top, |_| {});
    }

    /// The sums by system call, sorted by number, and at most `most` of the longest calls, in no
    /// order.
    pub(super) fn into_parts(self, most: usize) -> (Vec<(Syscall, CallStats)>, Vec<Call>) {
        let mut sorted: Vec<_> = self.stats.into_entries().collect();
        sorted.sort_unstable_by_key(|(call, _)| *call);
        (sorted, self.top.into_greatest(most))
    }
}
