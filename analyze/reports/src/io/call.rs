//! Calls that move bytes, and their ends.

use tracebraid_descriptors::{Change, Deed, Exit, Open};
use tracebraid_kernel_model::Syscall;

use tracebraid_follow::Limits;

/// The outcome of a call, once its end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// The call moved bytes.
    Io(Io),
    /// The call changed descriptors.
    Change(Change),
    /// Neither, or not selected.
    Nothing,
    /// The exit belongs to another call: this call's exit and the other's entry were lost.
    Mismatch,
}

/// A call that moved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub(super) entry: i64,
    pub(super) latency: u64,
    pub(super) result: i64,
    /// Descriptor that the call reads from (or its only descriptor), and that it writes to.
    pub(super) fds: (i32, i32),
    pub(super) call: Syscall,
}

/// The end of a call.
pub(super) trait EndingCall {
    /// Pairs an entry with the exit that follows it. Calls whose latency is outside the limits are
    /// not selected.
    fn end(&self, time: i64, exit: &Exit, limits: &Limits) -> Done;
    /// The call that ends at `end`, if its latency is within the limits.
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
