//! Futexes: who waits at which address, and who wakes them.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

use crate::waits::ended_call::EndedCall;
use crate::waits::keyed::Keyed;
use tracebraid_follow::ThreadKey;
use tracebraid_statistics::Distribution;

/// What a call does to a futex: the number of its `FUTEX_` command, or one of those below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Operation(u8);

/// By number.
const COMMANDS: [&str; 14] = [
    "WAIT",
    "WAKE",
    "FD",
    "REQUEUE",
    "CMP_REQUEUE",
    "WAKE_OP",
    "LOCK_PI",
    "UNLOCK_PI",
    "TRYLOCK_PI",
    "WAIT_BITSET",
    "WAKE_BITSET",
    "WAIT_REQUEUE_PI",
    "CMP_REQUEUE_PI",
    "LOCK_PI2",
];
/// The calls that are operations of their own, with the numbers that they have here.
const CALLS: [(&str, u8); 4] = [
    ("futex_wait", 100),
    ("futex_waitv", 101),
    ("futex_wake", 102),
    ("futex_requeue", 103),
];
/// What is in `op` besides the command: `FUTEX_PRIVATE_FLAG`, `FUTEX_CLOCK_REALTIME`.
const FLAGS: i32 = 128 | 256;
const OTHER: u8 = u8::MAX;

impl Operation {
    /// Of that number.
    pub(super) fn of_number(number: u8) -> Operation {
        Operation(number)
    }

    /// Its number.
    pub(super) fn number(self) -> u8 {
        self.0
    }

    /// Of a call with that `op`.
    pub(super) fn of(call: Syscall, op: i32) -> Operation {
        let own = CALLS.iter().find(|(name, _)| *name == call.name());
        Operation(own.map_or_else(|| u8::try_from(op & !FLAGS).unwrap_or(OTHER), |own| own.1))
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        let own = CALLS.iter().find(|(_, number)| *number == self.0);
        let command = COMMANDS.get(usize::from(self.0)).copied();
        own.map(|own| own.0).or(command).unwrap_or("other")
    }

    /// True if it waits until it is woken.
    pub(super) fn waits(self) -> bool {
        matches!(
            self.name(),
            "WAIT"
                | "WAIT_BITSET"
                | "LOCK_PI"
                | "LOCK_PI2"
                | "WAIT_REQUEUE_PI"
                | "futex_wait"
                | "futex_waitv"
        )
    }

    /// True if it gives the number of those that it woke.
    pub(super) fn wakes(self) -> bool {
        matches!(
            self.name(),
            "WAKE"
                | "WAKE_BITSET"
                | "WAKE_OP"
                | "REQUEUE"
                | "CMP_REQUEUE"
                | "CMP_REQUEUE_PI"
                | "futex_wake"
                | "futex_requeue"
        )
    }
}

/// What a thread did to a futex.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FutexSums {
    /// Durations of calls, but for those that gave `EAGAIN`.
    pub(super) calls: Distribution,
    /// Calls that gave `EAGAIN`: the value was another one already.
    pub(super) again: u64,
    pub(super) timeouts: u64,
    /// A signal ended them.
    pub(super) interrupted: u64,
    /// What calls that wake gave: threads that they woke or moved.
    pub(super) woken: u64,
    /// The threads by which calls were woken, and how often.
    pub(super) wakers: Vec<(ThreadKey, u64)>,
}

const EAGAIN: i64 = -11;
const ETIMEDOUT: i64 = -110;
const EINTR: i64 = -4;
/// `ERESTARTSYS` to `ERESTART_RESTARTBLOCK`: what the kernel gives itself where a signal comes.
const ERESTART: std::ops::RangeInclusive<i64> = -516..=-512;

impl FutexSums {
    pub(super) fn merge(&mut self, other: &FutexSums) {
        self.calls.merge(&other.calls);
        self.again += other.again;
        self.timeouts += other.timeouts;
        self.interrupted += other.interrupted;
        self.woken += other.woken;
        for &(waker, count) in &other.wakers {
            self.add_waker(waker, count);
        }
    }

    fn add_waker(&mut self, waker: ThreadKey, count: u64) {
        match self.wakers.iter_mut().find(|of| of.0 == waker) {
            Some((_, sum)) => *sum += count,
            None => self.wakers.push((waker, count)),
        }
    }
}

/// By thread, address and operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Futexes(Keyed<(ThreadKey, i64, Operation), FutexSums>);

impl Futexes {
    /// A call has ended; it was woken by that thread.
    pub(super) fn count(&mut self, ended: &EndedCall, waker: Option<ThreadKey>) {
        let EndedCall { begun, result, .. } = *ended;
        let operation = Operation::of_number(begun.operation);
        let sums = self.0.get((ended.thread, begun.argument, operation));
        if result == EAGAIN {
            sums.again += 1;
            return;
        }
        sums.calls.add(begun.time.abs_diff(ended.time));
        if operation.wakes() {
            sums.woken += u64::try_from(result).unwrap_or(0);
            return;
        }
        sums.timeouts += u64::from(result == ETIMEDOUT);
        sums.interrupted += u64::from(result == EINTR || ERESTART.contains(&result));
        if let Some(waker) = waker {
            sums.add_waker(waker, 1);
        }
    }

    pub(super) fn merge(&mut self, later: Futexes) {
        self.0.merge(later.0, |own, later| own.merge(&later));
    }

    /// All, with thread, address and operation.
    pub(super) fn entries(&self) -> &[((ThreadKey, i64, Operation), FutexSums)] {
        self.0.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_names_of_the_manual() {
        let call = |name| Syscall::by_name(name).unwrap();
        let of = |name, op| Operation::of(call(name), op);
        for (op, name, waits, wakes) in [
            (128, "WAIT", true, false),
            (0x81, "WAKE", false, true),
            (0x189, "WAIT_BITSET", true, false),
            (134, "LOCK_PI", true, false),
            (135, "UNLOCK_PI", false, false),
            (4, "CMP_REQUEUE", false, true),
            (77, "other", false, false),
            (-1, "other", false, false),
        ] {
            let operation = of("futex", op);
            assert_eq!(
                (operation.name(), operation.waits(), operation.wakes()),
                (name, waits, wakes)
            );
        }
        assert_eq!(of("futex_waitv", 0).name(), "futex_waitv");
        assert!(of("futex_wake", 0).wakes() && of("futex_wait", 0).waits());
    }
}
