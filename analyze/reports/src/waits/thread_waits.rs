//! A thread, and the time of its call by wait reason.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};
use tracebraid_threads::{BegunCall, PastStretch, ThreadCell, WaitReason};

use crate::waits::sums::{Wait, Waker};
use tracebraid_follow::{CpuKey, Losses, ThreadKey};

/// Nanoseconds by wait reason.
pub(super) type Parts = [u64; WaitReason::ALL.len()];

/// State of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadWaits {
    pub(super) cell: ThreadCell<()>,
    pub(super) pid: Option<i32>,
    pub(super) peer: Option<Box<Peer>>,
    /// Time and waker of the last wake-up of the kind that frees threads waiting at a futex.
    pub(super) freed: Option<(i64, ThreadKey)>,
    pub(super) spent: SpentCall,
}

/// Time of a thread's open call so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SpentCall {
    /// Start of the call in which the thread last left its CPU; earlier time does not belong to the
    /// call.
    entered: i64,
    /// Time of the call so far.
    parts: Parts,
    /// True if the thread ran all the time.
    is_plain: bool,
    /// The waits of the call to list.
    pub(super) waits: Vec<Wait>,
}

/// A stretch of time in a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpentTime {
    pub(super) begin: i64,
    pub(super) duration: u64,
    pub(super) why: WaitReason,
    pub(super) waker: Waker,
}

impl SpentTime {
    /// The stretch as a wait in a call.
    pub(super) fn as_wait(&self, thread: ThreadKey, call: Syscall) -> Wait {
        Wait {
            duration: self.duration,
            begin: self.begin,
            why: self.why,
            call,
            thread,
            waker: self.waker,
        }
    }
}

impl ThreadWaits {
    /// A thread that has just been created.
    pub(super) fn made(at: (CpuKey, i64), tid: i32, losses: &Losses) -> ThreadWaits {
        ThreadWaits {
            cell: ThreadCell::made(at, tid, losses),
            ..ThreadWaits::default()
        }
    }

    /// The open call.
    pub(super) fn call(&self) -> Option<Syscall> {
        self.cell.call().map(|open| open.call)
    }

    /// The thread enters a call, and was in none when its stretch began.
    pub(super) fn enters(&mut self) {
        self.peer = None;
        self.spent.waits.clear();
    }

    /// The thread is in a call that began in its stretch.
    pub(super) fn is_in(&mut self, open: &BegunCall) {
        self.peer = None;
        self.spent.is_in(open, self.cell.since());
    }
}

impl SpentCall {
    /// Time of a call that began at `entered`, from now on.
    pub(super) fn in_slice(entered: i64) -> SpentCall {
        SpentCall {
            entered,
            is_plain: true,
            ..SpentCall::default()
        }
    }

    /// Start of the call.
    pub(super) fn entered(&self) -> i64 {
        self.entered
    }

    /// Adds the time of the same call in a slice. Returns its waits to list.
    pub(super) fn add(&mut self, later: SpentCall) -> Vec<Wait> {
        let parts = self.parts.iter_mut().zip(later.parts);
        parts.for_each(|(part, later)| *part += later);
        self.is_plain &= later.is_plain;
        later.waits
    }

    /// Keeps a wait for the list. At least `most` of the longest waits are kept; a call may wait
    /// without end, so shorter ones are dropped.
    pub(super) fn list(&mut self, wait: Wait, most: usize) {
        self.waits.push(wait);
        if self.waits.len() >= most.saturating_mul(2).max(64) {
            self.waits.sort_unstable_by(|a, b| b.cmp(a));
            self.waits.truncate(most);
        }
    }

    /// Time by wait reason; `None` if the thread ran all the time.
    pub(super) fn parts(&self) -> Option<Parts> {
        (!self.is_plain).then_some(self.parts)
    }

    /// Adds a stretch of time that has ended, by `waker` if it was a wait.
    #[inline]
    pub(super) fn spend(&mut self, time: i64, stretch: PastStretch<()>, waker: Waker) -> SpentTime {
        let begin = stretch.begin.max(self.entered);
        let why = stretch.past.reason();
        let duration = time.abs_diff(begin);
        self.parts[why as usize] += duration;
        self.is_plain &= why == WaitReason::Running;
        SpentTime {
            begin,
            duration,
            why,
            waker,
        }
    }

    /// Begins a call in the current stretch of the thread. The state of the thread began at
    /// `since`.
    pub(super) fn is_in(&mut self, open: &BegunCall, since: i64) {
        if !self.is_plain {
            self.parts = Parts::default();
        }
        self.parts[WaitReason::Running as usize] = 0;
        self.is_plain = true;
        self.entered = open.time;
        self.waits.clear();
        // If events were lost, the thread may have been seen elsewhere after the call began; the
        // time until `since` is unknown.
        if open.time < since {
            self.parts[WaitReason::Unknown as usize] = open.time.abs_diff(since);
            self.is_plain = false;
        }
    }
}
