//! The longest system calls: possible starts of critical paths.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;
use tracebraid_kernel_model::Syscall;

/// A system call with its start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongCall {
    /// The system call.
    pub call: Syscall,
    /// The calling thread.
    pub thread: ThreadKey,
    /// Start in nanoseconds from the origin.
    pub begin: i64,
    /// End in nanoseconds from the origin.
    pub end: i64,
}

impl LongCall {
    /// Duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }

    /// Sort order: longest first, then earliest.
    fn order(&self) -> impl Ord + use<> {
        (
            Reverse(self.duration()),
            self.begin,
            self.thread,
            self.call.0,
        )
    }
}

/// The number of requested calls, and a lower bound of their durations that all parts of the trace
/// share.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Number of requested calls.
    pub(crate) most: usize,
    /// Only calls of this thread.
    pub(crate) tid: Option<i32>,
    /// Shorter calls are not among the longest: `most` calls of at least this duration, in
    /// nanoseconds, were found.
    least: AtomicU64,
}

/// The longest calls of a part of the trace; up to twice the requested number between two cuts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Longest {
    calls: Vec<LongCall>,
}

impl Wanted {
    pub(crate) fn new(most: usize, tid: Option<i32>) -> Wanted {
        let least = AtomicU64::new(0);
        Wanted { most, tid, least }
    }
}

impl Longest {
    /// Adds a call, if it is long enough.
    #[inline]
    pub(crate) fn add(&mut self, call: LongCall, wanted: &Wanted) {
        let is_of_thread = wanted.tid.is_none_or(|tid| call.thread.tid == tid);
        let is_long = call.duration() >= wanted.least.load(Ordering::Relaxed) && wanted.most > 0;
        if is_long && is_of_thread {
            self.calls.push(call);
            if self.calls.len() >= wanted.most.saturating_mul(2).max(64) {
                self.cut(wanted);
            }
        }
    }

    /// Drops the calls that are not among the longest. The order of the rest is arbitrary.
    #[cold]
    fn cut(&mut self, wanted: &Wanted) {
        let Some(last) = wanted
            .most
            .checked_sub(1)
            .filter(|&last| last < self.calls.len())
        else {
            return;
        };
        let (_, last, _) = self.calls.select_nth_unstable_by_key(last, LongCall::order);
        wanted.least.fetch_max(last.duration(), Ordering::Relaxed);
        self.calls.truncate(wanted.most);
    }

    pub(crate) fn merge(&mut self, later: Longest, wanted: &Wanted) {
        later
            .calls
            .into_iter()
            .for_each(|call| self.add(call, wanted));
    }

    /// The requested calls, the longest first.
    pub(crate) fn into_calls(mut self, wanted: &Wanted) -> Vec<LongCall> {
        self.calls.sort_unstable_by_key(LongCall::order);
        self.calls.truncate(wanted.most);
        self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(begin: i64, duration: i64) -> LongCall {
        LongCall {
            call: Syscall::OTHER,
            thread: ThreadKey::default(),
            begin,
            end: begin + duration,
        }
    }

    #[test]
    fn parts_have_the_longest_of_the_whole() {
        let calls: Vec<LongCall> = (0..5000).map(|at| call(at, at * 7919 % 613)).collect();
        for most in [1, 10, 100, 4999, 5000, 6000] {
            let mut expected = calls.clone();
            expected.sort_by_key(LongCall::order);
            expected.truncate(most);
            for part in [1, 70, 5000] {
                let wanted = Wanted::new(most, None);
                let mut all = Longest::default();
                for part in calls.chunks(part) {
                    let mut longest = Longest::default();
                    part.iter().for_each(|call| longest.add(*call, &wanted));
                    all.merge(longest, &wanted);
                }
                assert_eq!(
                    all.into_calls(&wanted),
                    expected,
                    "{most} of parts of {part}"
                );
            }
        }
        let mut none = Longest::default();
        none.add(call(1, 1), &Wanted::new(0, None));
        assert!(none.into_calls(&Wanted::new(0, None)).is_empty());
    }
}
