//! The longest system calls: where critical paths may begin.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::ThreadKey;
use tracebraid_kernel_model::Syscall;

/// A call from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongCall {
    /// The call.
    pub call: Syscall,
    /// Whose.
    pub thread: ThreadKey,
    /// When it begins, in nanoseconds from the origin.
    pub begin: i64,
    /// When it ends.
    pub end: i64,
}

impl LongCall {
    /// Its duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }

    /// The longest first; of one duration, the earliest.
    fn order(&self) -> impl Ord + use<> {
        (Reverse(self.duration()), self.begin, self.thread, self.call.0)
    }
}

/// The longest so many calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Longest {
    calls: Vec<LongCall>,
    /// What is shorter is not among them.
    least: u64,
}

impl Longest {
    /// One more; `most` are kept.
    #[inline]
    pub(crate) fn add(&mut self, call: LongCall, most: usize) {
        if call.duration() >= self.least && most > 0 {
            self.calls.push(call);
            if self.calls.len() >= most.saturating_mul(2).max(64) {
                self.cut(most);
            }
        }
    }

    fn cut(&mut self, most: usize) {
        self.calls.sort_unstable_by_key(LongCall::order);
        self.calls.truncate(most);
        if let Some(last) = self.calls.last().filter(|_| self.calls.len() == most) {
            self.least = last.duration();
        }
    }

    pub(crate) fn merge(&mut self, later: Longest, most: usize) {
        later.calls.into_iter().for_each(|call| self.add(call, most));
    }

    /// The longest first.
    pub(crate) fn into_calls(mut self, most: usize) -> Vec<LongCall> {
        self.cut(most);
        self.calls
    }
}
