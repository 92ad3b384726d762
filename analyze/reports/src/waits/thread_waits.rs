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
    /// When the call began in which it was when it left its CPU last: what was before is not of the call.
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

    /// It enters a call, and was in none when it came.
    pub(super) fn enters(&mut self) {
        self.peer = None;
        self.waits.clear();
    }

    /// It is in a call that began since it came.
    pub(super) fn is_in(&mut self, open: &BegunCall) {
        if !self.is_plain {
            self.parts = Parts::default();
        }
        self.parts[WaitReason::Running as usize] = 0;
        self.is_plain = true;
        self.entered = open.time;
        self.peer = None;
        self.waits.clear();
        // Where events were lost it may have been seen elsewhere since: of the time before that nothing is known.
        if open.time < self.cell.since() {
            self.parts[WaitReason::Unknown as usize] = open.time.abs_diff(self.cell.since());
            self.is_plain = false;
        }
    }
}
