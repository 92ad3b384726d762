//! Futexes: waits and wake-ups by address.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{CallRole, FutexCall, Syscall};

use crate::waits::ended_call::EndedCall;
use crate::waits::keyed::Keyed;
use tracebraid_follow::ThreadKey;
use tracebraid_statistics::Distribution;

/// An operation on a futex: the number of its `FUTEX_` command, or [`FIRST_CALL`] plus an index in
/// [`CALLS`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub(super) struct Operation(u8);

/// Names by number of the command.
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
/// System calls that are operations of their own, named like the calls.
const CALLS: [FutexCall; 4] = [
    FutexCall::Wait,
    FutexCall::WaitForAny,
    FutexCall::Wake,
    FutexCall::Requeue,
];
const FIRST_CALL: u8 = 100;
/// Bits of `op` other than the command: `FUTEX_PRIVATE_FLAG`, `FUTEX_CLOCK_REALTIME`.
const FLAGS: i32 = 128 | 256;
const OTHER: u8 = u8::MAX;

impl Operation {
    /// The operation with that number.
    pub(super) fn of_number(number: u8) -> Operation {
        Operation(number)
    }

    /// The number, for [`Operation::of_number`].
    pub(super) fn number(self) -> u8 {
        self.0
    }

    /// The operation of a call with that `op`.
    pub(super) fn of(call: Syscall, op: i32) -> Operation {
        let own = CALLS
            .iter()
            .position(|own| call.role() == CallRole::Futex(*own));
        Operation(match own {
            Some(own) => FIRST_CALL + own as u8,
            None => u8::try_from(op & !FLAGS).unwrap_or(OTHER),
        })
    }

    /// The system call, if the operation is a call of its own.
    fn call(self) -> Option<FutexCall> {
        let at = self.0.checked_sub(FIRST_CALL)?;
        CALLS.get(usize::from(at)).copied()
    }

    /// The name in the report.
    pub(super) fn name(self) -> &'static str {
        let own = self.call().map(FutexCall::name);
        let command = COMMANDS.get(usize::from(self.0)).copied();
        own.or(command).unwrap_or("other")
    }

    /// True if the operation waits to be woken.
    pub(super) fn waits(self) -> bool {
        match self.call() {
            Some(call) => matches!(call, FutexCall::Wait | FutexCall::WaitForAny),
            None => matches!(
                self.name(),
                "WAIT" | "WAIT_BITSET" | "LOCK_PI" | "LOCK_PI2" | "WAIT_REQUEUE_PI"
            ),
        }
    }

    /// True if the operation returns the number of threads that it woke.
    pub(super) fn wakes(self) -> bool {
        match self.call() {
            Some(call) => matches!(call, FutexCall::Wake | FutexCall::Requeue),
            None => matches!(
                self.name(),
                "WAKE" | "WAKE_BITSET" | "WAKE_OP" | "REQUEUE" | "CMP_REQUEUE" | "CMP_REQUEUE_PI"
            ),
        }
    }
}

/// A thread's use of a futex.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FutexSums {
    /// Durations of the calls that did not return `EAGAIN`.
    pub(super) calls: Distribution,
    /// Calls that returned `EAGAIN`: the futex had another value already.
    pub(super) again: u64,
    pub(super) timeouts: u64,
    /// Calls that a signal ended.
    pub(super) interrupted: u64,
    /// Sum of the results of calls that wake: threads that they woke or moved.
    pub(super) woken: u64,
    /// The threads that woke the calls, with their counts.
    pub(super) wakers: Vec<(ThreadKey, u64)>,
}

const EAGAIN: i64 = -11;
const ETIMEDOUT: i64 = -110;
const EINTR: i64 = -4;
/// `ERESTARTSYS` to `ERESTART_RESTARTBLOCK`: results inside the kernel if a signal arrives.
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

/// Sums by thread, address and operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Futexes(Keyed<(ThreadKey, i64, Operation), FutexSums>);

impl Futexes {
    /// Counts a call that has ended, and was woken by `waker` if known.
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

    /// The sums with thread, address and operation.
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
