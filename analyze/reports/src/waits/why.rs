//! Where the time of a call went. `docs/reports-waits.md` has the table of decisions.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::SOFTIRQS;

use crate::kernel::Interrupt;
use crate::waits::context::Source;
use crate::waits::kind::Kind;

/// Where time went: the thread ran, could have run, or waited for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Why {
    Running,
    Runnable,
    Disk,
    Network,
    Timer,
    Futex,
    Thread,
    Child,
    Signal,
    Kernel,
    Device,
    #[default]
    Unknown,
}

impl Why {
    /// All, in the order of tables.
    pub(super) const ALL: [Why; 12] = [
        Why::Running,
        Why::Runnable,
        Why::Disk,
        Why::Network,
        Why::Timer,
        Why::Futex,
        Why::Thread,
        Why::Child,
        Why::Signal,
        Why::Kernel,
        Why::Device,
        Why::Unknown,
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Why::Running => "running",
            Why::Runnable => "runnable",
            Why::Disk => "disk",
            Why::Network => "network",
            Why::Timer => "timer",
            Why::Futex => "futex",
            Why::Thread => "thread",
            Why::Child => "child",
            Why::Signal => "signal",
            Why::Kernel => "kernel",
            Why::Device => "device",
            Why::Unknown => "unknown",
        }
    }
}

/// The thread in whose context a wake-up happened.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct WakingThread {
    /// The call that it is in.
    pub(super) call: Option<Kind>,
    /// It has made calls since the trace began: it is no thread of the kernel.
    pub(super) has_called: bool,
    /// The last call that it made closed a descriptor.
    pub(super) has_closed: bool,
    /// The call is about a socket of the family AF_UNIX, which uses no network.
    pub(super) is_local: bool,
    /// It waited for a disk last, or has made block requests since.
    pub(super) is_at_disk: bool,
}

impl WakingThread {
    /// One that is in a call of that kind, or in none, and has made calls before.
    pub(super) fn caller(call: Option<Kind>, has_closed: bool) -> WakingThread {
        WakingThread {
            call,
            has_called: true,
            has_closed,
            is_local: false,
            is_at_disk: false,
        }
    }
}

/// True if that is how those are woken who wait at a futex.
pub(super) fn wakes_futex(source: Source, waker: Option<WakingThread>) -> bool {
    why(Some(Kind::Futex), source, waker) == Why::Futex
}

/// Why a thread waited that is in a call of that kind, or in none, by what woke it.
pub(super) fn why(waiter: Option<Kind>, source: Source, waker: Option<WakingThread>) -> Why {
    match source {
        Source::Timer => Why::Timer,
        Source::Disk => Why::Disk,
        Source::Interrupt(Interrupt::Softirq(vector)) => of_softirq(vector),
        Source::Interrupt(_) => Why::Device,
        Source::Thread => match waker {
            None => Why::Unknown,
            Some(WakingThread {
                call: Some(call),
                is_local,
                ..
            }) => of_call(waiter, call, is_local),
            // What is left to do when a descriptor is closed is done on the way back to the program.
            Some(waker) if waker.has_closed => Why::Thread,
            // Some interrupt that was not recorded, not the program itself.
            Some(waker) if waker.has_called => Why::Unknown,
            Some(waker) if waker.is_at_disk => Why::Disk,
            Some(_) => Why::Kernel,
        },
    }
}

fn of_softirq(vector: u8) -> Why {
    match SOFTIRQS.get(usize::from(vector)) {
        Some(&"TIMER" | &"HRTIMER") => Why::Timer,
        Some(&"NET_TX" | &"NET_RX") => Why::Network,
        Some(&"BLOCK" | &"IRQ_POLL") => Why::Disk,
        Some(&"SCHED" | &"RCU") => Why::Kernel,
        _ => Why::Device,
    }
}

fn of_call(waiter: Option<Kind>, waker: Kind, is_local: bool) -> Why {
    match waker {
        Kind::Kill => Why::Signal,
        _ if waiter == Some(Kind::Futex) => Why::Futex,
        Kind::Exit if waiter == Some(Kind::Wait) => Why::Child,
        waker if waker.is_network() && !is_local => Why::Network,
        _ => Why::Thread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: WakingThread = WakingThread {
        call: None,
        has_called: false,
        has_closed: false,
        is_local: false,
        is_at_disk: false,
    };

    #[test]
    fn local_sockets_are_no_network() {
        let by = |call, is_local| {
            let waker = WakingThread {
                is_local,
                ..WakingThread::caller(Some(call), false)
            };
            why(Some(Kind::Accept), Source::Thread, Some(waker))
        };
        for call in [Kind::Connect, Kind::Accept, Kind::Send, Kind::Receive] {
            assert_eq!(
                (by(call, false), by(call, true)),
                (Why::Network, Why::Thread),
                "{call:?}"
            );
        }
        assert_eq!(by(Kind::Kill, true), Why::Signal);
    }

    #[test]
    fn softirqs_are_known_by_their_names() {
        let expected = [
            Why::Device,
            Why::Timer,
            Why::Network,
            Why::Network,
            Why::Disk,
            Why::Disk,
            Why::Device,
            Why::Kernel,
            Why::Timer,
            Why::Kernel,
            Why::Device,
        ];
        let found: Vec<Why> = (0..11).map(of_softirq).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_wakes_decides() {
        let by = |waiter, call| {
            let waker = WakingThread {
                call: Some(call),
                has_called: true,
                ..THREAD
            };
            why(waiter, Source::Thread, Some(waker))
        };
        assert_eq!(by(Some(Kind::Futex), Kind::Futex), Why::Futex);
        assert_eq!(by(Some(Kind::Futex), Kind::Exit), Why::Futex);
        assert_eq!(by(Some(Kind::Futex), Kind::Kill), Why::Signal);
        assert_eq!(by(Some(Kind::Wait), Kind::Exit), Why::Child);
        assert_eq!(by(Some(Kind::Read), Kind::Exit), Why::Thread);
        assert_eq!(by(Some(Kind::Read), Kind::Write), Why::Thread);
        assert_eq!(by(Some(Kind::Read), Kind::Send), Why::Network);
        assert_eq!(by(None, Kind::Futex), Why::Thread);
        assert_eq!(why(Some(Kind::Futex), Source::Timer, None), Why::Timer);
    }

    #[test]
    fn threads_of_the_kernel_pass_on_that_they_wait_for_a_disk() {
        let by = |waker| why(Some(Kind::Other), Source::Thread, Some(waker));
        assert_eq!(by(THREAD), Why::Kernel);
        let is_at_disk = true;
        assert_eq!(by(WakingThread { is_at_disk, ..THREAD }), Why::Disk);
        let has_called = true;
        let program = WakingThread { has_called, ..THREAD };
        assert_eq!(by(program), Why::Unknown);
        let has_closed = true;
        assert_eq!(
            by(WakingThread {
                has_closed,
                ..program
            }),
            Why::Thread
        );
        assert_eq!(why(None, Source::Thread, None), Why::Unknown);
    }
}
