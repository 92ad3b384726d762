//! A thread, and where the time of its call goes.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};
use tracebraid_threads::{BegunCall, PastStretch, ThreadCell, WaitReason};

use crate::waits::sums::{Wait, Waker};
use tracebraid_follow::{CpuKey, Losses, ThreadKey};

/// Nanoseconds by reason.
pub(super) type Parts = [u64; WaitReason::ALL.len()];

/// What is known of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadWaits {
    pub(super) cell: ThreadCell<()>,
    pub(super) pid: Option<i32>,
    pub(super) peer: Option<Box<Peer>>,
    /// The thread that woke it last as one wakes those who wait at a futex, and when.
    pub(super) freed: Option<(i64, ThreadKey)>,
    pub(super) spent: SpentCall,
}

/// Where the time of a thread's call went so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SpentCall {
    /// When the call began in which it was when it left its CPU last: what was before is not of the
    /// call.
    entered: i64,
    /// The parts of its call so far.
    parts: Parts,
    /// It did nothing but run in its call.
    is_plain: bool,
    /// The waits of its call that are to be listed.
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
    /// The stretch as a wait in that call.
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
    /// A thread that has just been made.
    pub(super) fn made(at: (CpuKey, i64), tid: i32, losses: &Losses) -> ThreadWaits {
        ThreadWaits {
            cell: ThreadCell::made(at, tid, losses),
            ..ThreadWaits::default()
        }
    }

    /// The call that is open.
    pub(super) fn call(&self) -> Option<Syscall> {
        self.cell.call().map(|open| open.call)
    }

    /// It enters a call, and was in none when it came.
    pub(super) fn enters(&mut self) {
        self.peer = None;
        self.spent.waits.clear();
    }

    /// It is in a call that began since it came.
    pub(super) fn is_in(&mut self, open: &BegunCall) {
        self.peer = None;
        self.spent.is_in(open, self.cell.since());
    }
}

impl SpentCall {
    /// What is spent from now on in a call that began then, of which nothing else is known.
    pub(super) fn in_slice(entered: i64) -> SpentCall {
        SpentCall {
            entered,
            is_plain: true,
            ..SpentCall::default()
        }
    }

    /// When the call began, as above.
    pub(super) fn entered(&self) -> i64 {
        self.entered
    }

    /// Adds what was spent in the same call in a slice; what is to be listed of it is given back.
    pub(super) fn add(&mut self, later: SpentCall) -> Vec<Wait> {
        let parts = self.parts.iter_mut().zip(later.parts);
        parts.for_each(|(part, later)| *part += later);
        self.is_plain &= later.is_plain;
        later.waits
    }

    /// Adds a wait that is to be listed if its call is, of which at most so many matter. A call may
    /// wait for ever: of its waits, those that cannot be among the longest are left out.
    pub(super) fn list(&mut self, wait: Wait, most: usize) {
        self.waits.push(wait);
        if self.waits.len() >= most.saturating_mul(2).max(64) {
            self.waits.sort_unstable_by(|a, b| b.cmp(a));
            self.waits.truncate(most);
        }
    }

    /// The parts of its call; none if it did nothing but run.
    pub(super) fn parts(&self) -> Option<Parts> {
        (!self.is_plain).then_some(self.parts)
    }

    /// A stretch of time has ended, by that waker if it was a wait.
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

    /// The call began then, since its thread came; the state of that began at `since`.
    pub(super) fn is_in(&mut self, open: &BegunCall, since: i64) {
        if !self.is_plain {
            self.parts = Parts::default();
        }
        self.parts[WaitReason::Running as usize] = 0;
        self.is_plain = true;
        self.entered = open.time;
        self.waits.clear();
        // Where events were lost it may have been seen elsewhere since: of the time before that
        // nothing is known.
        if open.time < since {
            self.parts[WaitReason::Unknown as usize] = open.time.abs_diff(since);
            self.is_plain = false;
        }
    }
}
