//! Wait reasons: the single list of activities that a thread's time is charged to, and the rules by
//! which a wake-up decides why its thread waited. `docs/reference/waits.md` lists the rules in a
//! table.

use serde::{Deserialize, Serialize};
use tracebraid_follow::Interrupt;
use tracebraid_kernel_model::events::irq::Vector;
use tracebraid_kernel_model::{UserWake, softirq_name};

use crate::call_class::CallClass;
use crate::cpu_context::WakeSource;
use crate::waker_facts::WakingThread;

/// Activity that a thread's time is charged to: running, the lack of a CPU, or the reason of a
/// wait.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitReason {
    /// Running.
    Running,
    /// On its CPU, but interrupted.
    Interrupted,
    /// Taken from its CPU while still runnable.
    Preempted,
    /// Woken, and waiting for a CPU.
    Runnable,
    /// A user-level thread that could run, and waits for an LWP.
    Lwp,
    /// A block device.
    BlockDevice,
    /// The network.
    Network,
    /// A timer: sleep, or a time-out.
    Timer,
    /// A keyboard, a mouse or the like.
    UserInput,
    /// Another device.
    Device,
    /// An interrupt from another processor ended the wait; its cause is unknown.
    Ipi,
    /// Another thread, at a futex.
    Futex,
    /// The end of a child process.
    Child,
    /// A signal that another thread sent.
    Signal,
    /// Another thread: a pipe, a lock, an event.
    Thread,
    /// A kernel thread, or the kernel's own housekeeping.
    Kernel,
    /// Work in a queue waits for its thread.
    WorkQueue,
    /// An execution waits for a thread that does other work.
    Queued,
    /// The time and manner of the hand-over between threads are unknown.
    UnknownHandOver,
    /// The wait had not ended by the end of the trace, or of the part of it that was read.
    StillWaiting,
    /// Not shown by the trace.
    #[default]
    Unknown,
}

impl WaitReason {
    /// All reasons, in the order of tables.
    pub const ALL: [WaitReason; 21] = [
        WaitReason::Running,
        WaitReason::Interrupted,
        WaitReason::Preempted,
        WaitReason::Runnable,
        WaitReason::Lwp,
        WaitReason::BlockDevice,
        WaitReason::Network,
        WaitReason::Timer,
        WaitReason::UserInput,
        WaitReason::Device,
        WaitReason::Ipi,
        WaitReason::Futex,
        WaitReason::Child,
        WaitReason::Signal,
        WaitReason::Thread,
        WaitReason::Kernel,
        WaitReason::WorkQueue,
        WaitReason::Queued,
        WaitReason::UnknownHandOver,
        WaitReason::StillWaiting,
        WaitReason::Unknown,
    ];

    /// Index in [`WaitReason::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Name in tables, JSON and SQL.
    pub fn name(self) -> &'static str {
        match self {
            WaitReason::Running => "running",
            WaitReason::Interrupted => "interrupted",
            WaitReason::Preempted => "preempted",
            WaitReason::Runnable => "runnable",
            WaitReason::Lwp => "lwp",
            WaitReason::BlockDevice => "block-device",
            WaitReason::Network => "network",
            WaitReason::Timer => "timer",
            WaitReason::UserInput => "user-input",
            WaitReason::Device => "device",
            WaitReason::Ipi => "ipi",
            WaitReason::Futex => "futex",
            WaitReason::Child => "child",
            WaitReason::Signal => "signal",
            WaitReason::Thread => "thread",
            WaitReason::Kernel => "kernel",
            WaitReason::WorkQueue => "work-queue",
            WaitReason::Queued => "queued",
            WaitReason::UnknownHandOver => "unknown-hand-over",
            WaitReason::StillWaiting => "still-waiting",
            WaitReason::Unknown => "unknown",
        }
    }

    /// Reason of a wait that a wake-up ends. `waiter` is the class of the call that the thread
    /// waits in.
    #[inline]
    pub fn of_wake(
        waiter: Option<CallClass>,
        source: WakeSource,
        waker: Option<WakingThread>,
    ) -> WaitReason {
        match source {
            WakeSource::Timer => WaitReason::Timer,
            WakeSource::BlockDevice => WaitReason::BlockDevice,
            WakeSource::Command => WaitReason::Device,
            WakeSource::User(by) => WaitReason::of_user(by),
            WakeSource::Interrupt(Interrupt::Irq(_), device) => device.reason(),
            WakeSource::Interrupt(Interrupt::Softirq(vector), _) => WaitReason::of_softirq(vector),
            WakeSource::Interrupt(vector @ Interrupt::Vector(_), _) => {
                WaitReason::of_vector(vector.vector())
            }
            WakeSource::Thread => waker.map_or(WaitReason::Unknown, |waker| {
                WaitReason::of_thread(waiter, waker)
            }),
        }
    }

    /// Reason of a wait of a user-level thread.
    pub(crate) fn of_user(by: UserWake) -> WaitReason {
        match by {
            UserWake::Thread => WaitReason::Thread,
            UserWake::Timer => WaitReason::Timer,
            UserWake::Network => WaitReason::Network,
            UserWake::Device => WaitReason::Device,
        }
    }

    fn of_softirq(vector: u8) -> WaitReason {
        match softirq_name(i64::from(vector)) {
            Some("TIMER" | "HRTIMER") => WaitReason::Timer,
            Some("NET_TX" | "NET_RX") => WaitReason::Network,
            Some("BLOCK" | "IRQ_POLL") => WaitReason::BlockDevice,
            Some("SCHED" | "RCU") => WaitReason::Kernel,
            _ => WaitReason::Device,
        }
    }

    fn of_vector(vector: Option<Vector>) -> WaitReason {
        match vector {
            Some(Vector::LocalTimer) => WaitReason::Timer,
            Some(
                Vector::Reschedule
                | Vector::CallFunction
                | Vector::CallFunctionSingle
                | Vector::IrqWork
                | Vector::PlatformIpi,
            ) => WaitReason::Ipi,
            _ => WaitReason::Device,
        }
    }

    fn of_thread(waiter: Option<CallClass>, waker: WakingThread) -> WaitReason {
        match waker.call {
            Some(call) => WaitReason::of_call(waiter, call, waker.is_local),
            // The kernel finishes a `close`, and requests of an io_uring, on return to user space.
            None if waker.has_called && waker.lingers => WaitReason::Thread,
            // A program in user space cannot wake threads: an unrecorded interrupt did.
            None if waker.has_called => WaitReason::Unknown,
            None if waker.is_at_disk => WaitReason::BlockDevice,
            None => WaitReason::Kernel,
        }
    }

    fn of_call(waiter: Option<CallClass>, waker: CallClass, is_local: bool) -> WaitReason {
        match waker {
            CallClass::SendSignal => WaitReason::Signal,
            _ if waiter == Some(CallClass::Futex) => WaitReason::Futex,
            CallClass::Exit if waiter.is_some_and(CallClass::awaits_child) => WaitReason::Child,
            waker if waker.is_network() && !is_local => WaitReason::Network,
            _ => WaitReason::Thread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_class::DeviceClass;

    const THREAD: WakingThread = WakingThread {
        call: None,
        has_called: false,
        lingers: false,
        is_local: false,
        is_at_disk: false,
    };

    fn by_call(waiter: Option<CallClass>, call: CallClass, is_local: bool) -> WaitReason {
        let waker = WakingThread {
            call: Some(call),
            has_called: true,
            is_local,
            ..THREAD
        };
        WaitReason::of_wake(waiter, WakeSource::Thread, Some(waker))
    }

    #[test]
    fn all_are_in_their_order() {
        for (place, reason) in WaitReason::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), place);
            let json = serde_json_name(reason);
            assert_eq!(json, reason.name());
        }
    }

    /// The name under which serde writes a reason: its variant in kebab case.
    fn serde_json_name(reason: WaitReason) -> String {
        let mut name = String::new();
        for letter in format!("{reason:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }

    #[test]
    fn local_sockets_are_no_network() {
        let by = |call, is_local| by_call(Some(CallClass::Accept), call, is_local);
        use CallClass::*;
        for call in [Connect, Accept, Send, Receive] {
            assert_eq!(by(call, false), WaitReason::Network, "{call:?}");
            assert_eq!(by(call, true), WaitReason::Thread, "{call:?}");
        }
        assert_eq!(by(SendSignal, true), WaitReason::Signal);
    }

    #[test]
    fn interrupts_are_classified_by_device_vector_and_softirq() {
        use WaitReason::*;
        let of = |interrupt, device| {
            WaitReason::of_wake(None, WakeSource::Interrupt(interrupt, device), Some(THREAD))
        };
        let softirqs: Vec<_> = (0..11)
            .map(|vector| of(Interrupt::Softirq(vector), DeviceClass::Other))
            .collect();
        let expected = [
            Device,
            Timer,
            Network,
            Network,
            BlockDevice,
            BlockDevice,
            Device,
            Kernel,
            Timer,
            Kernel,
            Device,
        ];
        assert_eq!(softirqs, expected);
        let vectors: Vec<_> = (0..12)
            .map(|vector| of(Interrupt::Vector(vector), DeviceClass::Other))
            .collect();
        assert_eq!(vectors[..7], [Timer, Ipi, Ipi, Ipi, Ipi, Ipi, Device]);
        assert_eq!(vectors[7..], [Device; 5]);
        let devices = [
            (DeviceClass::Network, Network),
            (DeviceClass::BlockDevice, BlockDevice),
            (DeviceClass::UserInput, UserInput),
            (DeviceClass::Other, Device),
        ];
        for (device, expected) in devices {
            assert_eq!(of(Interrupt::Irq(9), device), expected);
        }
    }

    #[test]
    fn the_call_of_the_waker_decides() {
        let by = |waiter, call| by_call(waiter, call, false);
        assert_eq!(
            by(Some(CallClass::Futex), CallClass::Futex),
            WaitReason::Futex
        );
        assert_eq!(
            by(Some(CallClass::Futex), CallClass::Exit),
            WaitReason::Futex
        );
        assert_eq!(
            by(Some(CallClass::Futex), CallClass::SendSignal),
            WaitReason::Signal
        );
        assert_eq!(
            by(Some(CallClass::AwaitChild), CallClass::Exit),
            WaitReason::Child
        );
        assert_eq!(
            by(Some(CallClass::AwaitSignal), CallClass::Exit),
            WaitReason::Child
        );
        assert_eq!(
            by(Some(CallClass::Read), CallClass::Exit),
            WaitReason::Thread
        );
        assert_eq!(
            by(Some(CallClass::Read), CallClass::Write),
            WaitReason::Thread
        );
        assert_eq!(
            by(Some(CallClass::Read), CallClass::Send),
            WaitReason::Network
        );
        assert_eq!(by(None, CallClass::Futex), WaitReason::Thread);
        let timer = WaitReason::of_wake(Some(CallClass::Futex), WakeSource::Timer, None);
        assert_eq!(timer, WaitReason::Timer);
    }

    #[test]
    fn threads_of_the_kernel_pass_on_that_they_wait_for_a_disk() {
        let by =
            |waker| WaitReason::of_wake(Some(CallClass::Other), WakeSource::Thread, Some(waker));
        assert_eq!(by(THREAD), WaitReason::Kernel);
        let is_at_disk = true;
        assert_eq!(
            by(WakingThread {
                is_at_disk,
                ..THREAD
            }),
            WaitReason::BlockDevice
        );
        let has_called = true;
        let program = WakingThread {
            has_called,
            ..THREAD
        };
        assert_eq!(by(program), WaitReason::Unknown);
        let lingers = true;
        assert_eq!(by(WakingThread { lingers, ..program }), WaitReason::Thread);
        let unknown = WaitReason::of_wake(None, WakeSource::Thread, None);
        assert_eq!(unknown, WaitReason::Unknown);
    }
}
