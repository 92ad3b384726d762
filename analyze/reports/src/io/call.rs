//! Calls that move bytes, and how they end.

use tracebraid_descriptors::{Change, Deed, Exit, Open};
use tracebraid_kernel_model::Syscall;

use tracebraid_follow::Limits;

/// What a call was, once its end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It moved bytes.
    Io(Io),
    /// It changed descriptors.
    Change(Change),
    /// Neither, or not asked for.
    Nothing,
    /// The exit is that of another call: this one's exit and that one's entry were lost.
    Mismatch,
}

/// A call that moved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub(super) entry: i64,
    pub(super) latency: u64,
    pub(super) result: i64,
    /// Descriptors that it reads from (or its only one) and writes to.
    pub(super) fds: (i32, i32),
    pub(super) call: Syscall,
}

/// How a call ends.
pub(super) trait EndingCall {
    /// Joins an entry with the exit that follows it. Calls whose latency is not within the limits
    /// are not asked for.
    fn end(&self, time: i64, exit: &Exit, limits: &Limits) -> Done;
    /// The call, ended then, if its latency is within the limits.
    fn done(&self, end: i64, result: i64, limits: &Limits) -> Option<Io>;
}

impl EndingCall for Open {
    #[inline]
    fn end(&self, time: i64, exit: &Exit, limits: &Limits) -> Done {
        if exit.call.is_some_and(|call| call != self.call) {
            return Done::Mismatch;
        }
        match self.deed {
            Deed::Io if exit.counts => self
                .done(time, exit.result, limits)
                .map_or(Done::Nothing, Done::Io),
            Deed::Io | Deed::Nothing => Done::Nothing,
            _ => Change::of(self, exit).map_or(Done::Nothing, Done::Change),
        }
    }

    #[inline]
    fn done(&self, end: i64, result: i64, limits: &Limits) -> Option<Io> {
        let latency = u64::try_from(end.saturating_sub(self.time)).unwrap_or(0);
        limits.contain(latency).then_some(Io {
            entry: self.time,
            latency,
            result,
            fds: self.fds,
            call: self.call,
        })
    }
}
