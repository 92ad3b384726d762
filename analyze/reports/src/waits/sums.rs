//! What is counted of a thread's calls.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;
use tracebraid_threads::{WaitReason, WakeSource};

use crate::waits::thread_waits::Parts;
use tracebraid_follow::{ByCall, ThreadKey};
use tracebraid_statistics::{Bins, Distribution, Powers, Top};

/// What is counted of a thread's calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// The calls that occurred.
    pub(super) calls: ByCall<CallSums>,
    pub(super) top: Top<Wait>,
    /// In a second pass: parts by their why and size.
    pub(super) bins: Vec<Bins>,
}

/// What is counted of calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallSums {
    /// Durations of calls that did nothing but run.
    plain: Distribution,
    /// Durations of the others.
    mixed: Distribution,
    /// Of the others: how much of a call went where, of those where any did; in the order of whys.
    parts: Vec<(WaitReason, Distribution)>,
}

/// A thread waited in a call; the longest wait is the greatest.
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
    /// When it ends.
    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }
}

/// What woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Waker {
    pub(super) source: WakeSource,
    /// The thread, if it was one.
    pub(super) thread: Option<ThreadKey>,
}

impl Waker {
    pub(super) const NOBODY: Waker = Waker {
        source: WakeSource::Thread,
        thread: None,
    };
}

/// Number and times of calls, without their distribution; in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallTotals {
    pub(super) calls: u64,
    pub(super) time: u128,
    /// What went where, by [`WaitReason::index`].
    pub(super) parts: [u128; WaitReason::ALL.len()],
}

impl CallTotals {
    /// Adds those of other calls.
    pub(super) fn add(&mut self, other: &CallTotals) {
        self.calls += other.calls;
        self.time += other.time;
        let parts = self.parts.iter_mut().zip(other.parts);
        parts.for_each(|(part, other)| *part += other);
    }
}

impl Sums {
    /// Adds what comes later, of which so many waits at most are listed.
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
    /// A call that took so long, with its parts if it did anything but run.
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

    /// Adds all calls of another one.
    pub(super) fn merge(&mut self, other: &CallSums) {
        self.plain.merge(&other.plain);
        self.mixed.merge(&other.mixed);
        for (why, distribution) in &other.parts {
            self.part(*why).merge(distribution);
        }
    }

    /// Durations of all.
    pub(super) fn whole(&self) -> Distribution {
        let mut whole = self.plain.clone();
        whole.merge(&self.mixed);
        whole
    }

    /// How much of a call went where, of those where any did; in the order of reasons.
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

    /// Number and times of calls.
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

    /// Where no event tells who runs when, nothing is known of where time went.
    pub(super) fn forget_parts(&mut self) {
        let whole = self.whole();
        *self = CallSums {
            parts: vec![(WaitReason::Unknown, whole.clone())],
            mixed: whole,
            plain: Distribution::default(),
        };
    }
}
