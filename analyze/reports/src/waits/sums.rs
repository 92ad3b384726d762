//! Sums of a thread's calls.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;
use tracebraid_threads::{WaitReason, WakeSource};

use crate::waits::thread_waits::Parts;
use tracebraid_follow::{ByCall, ThreadKey};
use tracebraid_statistics::{Bins, Distribution, Powers, Top};

/// Sums of a thread's calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// By system call.
    pub(super) calls: ByCall<CallSums>,
    pub(super) top: Top<Wait>,
    /// Histograms by wait reason, in a second pass.
    pub(super) bins: Vec<Bins>,
}

/// Sums of one system call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallSums {
    /// Durations of calls during which the thread ran all the time.
    plain: Distribution,
    /// Durations of the other calls.
    mixed: Distribution,
    /// Of the other calls: time by wait reason, for calls with any; sorted by reason.
    parts: Vec<(WaitReason, Distribution)>,
}

/// A wait in a call. The order is by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Wait {
    pub(super) duration: u64,
    pub(super) begin: i64,
    pub(super) why: WaitReason,
    pub(super) call: Syscall,
    pub(super) thread: ThreadKey,
    pub(super) waker: Waker,
}

impl Wait {
    /// Time of the end.
    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }
}

/// The cause of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Waker {
    pub(super) source: WakeSource,
    /// The thread, if a thread woke.
    pub(super) thread: Option<ThreadKey>,
}

impl Waker {
    pub(super) const NOBODY: Waker = Waker {
        source: WakeSource::Thread,
        thread: None,
    };
}

/// Number of calls and their total time in nanoseconds, without distributions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallTotals {
    pub(super) calls: u64,
    pub(super) time: u128,
    /// Time by [`WaitReason::index`].
    pub(super) parts: [u128; WaitReason::ALL.len()],
}

impl CallTotals {
    /// Adds other totals.
    pub(super) fn add(&mut self, other: &CallTotals) {
        self.calls += other.calls;
        self.time += other.time;
        let parts = self.parts.iter_mut().zip(other.parts);
        parts.for_each(|(part, other)| *part += other);
    }
}

impl Sums {
    /// Adds later sums, keeping at most `top` waits.
    pub(super) fn merge(&mut self, later: Sums, top: usize) {
        self.calls.merge(&later.calls, CallSums::merge);
        self.top.merge(later.top, top, |_| {});
        self.bins
            .resize(self.bins.len().max(later.bins.len()), Bins::default());
        self.bins
            .iter_mut()
            .zip(&later.bins)
            .for_each(|(own, later)| own.merge(later));
    }
}

impl CallSums {
    /// Counts a call, with its time by wait reason unless the thread ran all the time.
    #[inline]
    pub(super) fn count(&mut self, duration: u64, parts: Option<&Parts>) {
        let Some(parts) = parts else {
            return self.plain.add(duration);
        };
        self.mixed.add(duration);
        for (why, &time) in WaitReason::ALL.into_iter().zip(parts) {
            if time > 0 {
                self.part(why).add(time);
            }
        }
    }

    fn part(&mut self, why: WaitReason) -> &mut Distribution {
        let at = match self.parts.binary_search_by_key(&why, |part| part.0) {
            Ok(at) => at,
            Err(at) => {
                self.parts.insert(at, (why, Distribution::default()));
                at
            }
        };
        &mut self.parts[at].1
    }

    /// Adds other sums.
    pub(super) fn merge(&mut self, other: &CallSums) {
        self.plain.merge(&other.plain);
        self.mixed.merge(&other.mixed);
        for (why, distribution) in &other.parts {
            self.part(*why).merge(distribution);
        }
    }

    /// Distribution of the durations of all calls.
    pub(super) fn whole(&self) -> Distribution {
        let mut whole = self.plain.clone();
        whole.merge(&self.mixed);
        whole
    }

    /// Time by wait reason, for calls with any; sorted by reason.
    pub(super) fn parts(&self) -> Vec<(WaitReason, Cow<'_, Distribution>)> {
        let mut parts: Vec<_> = self
            .parts
            .iter()
            .map(|(why, of)| (*why, Cow::Borrowed(of)))
            .collect();
        if self.plain.summary().count() > 0 {
            match parts
                .first_mut()
                .filter(|part| part.0 == WaitReason::Running)
            {
                Some((_, running)) => running.to_mut().merge(&self.plain),
                None => parts.insert(0, (WaitReason::Running, Cow::Borrowed(&self.plain))),
            }
        }
        parts
    }

    /// Parts of calls, of all reasons.
    pub(super) fn powers(&self) -> Powers {
        let mut all = self.plain.powers();
        self.parts
            .iter()
            .for_each(|(_, part)| all.merge(&part.powers()));
        all
    }

    /// Number of calls and their total times.
    pub(super) fn totals(&self) -> CallTotals {
        let mut totals = CallTotals {
            calls: self.plain.summary().count() + self.mixed.summary().count(),
            time: self.plain.summary().sum() + self.mixed.summary().sum(),
            ..CallTotals::default()
        };
        totals.parts[WaitReason::Running.index()] = self.plain.summary().sum();
        for (why, part) in &self.parts {
            totals.parts[why.index()] += part.summary().sum();
        }
        totals
    }

    /// Marks all time as unknown: without switches there are no wait reasons.
    pub(super) fn forget_parts(&mut self) {
        let whole = self.whole();
        *self = CallSums {
            parts: vec![(WaitReason::Unknown, whole.clone())],
            mixed: whole,
            plain: Distribution::default(),
        };
    }
}
