//! Interrupt context of a CPU, which decides the context of its wake-ups.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Innermost, Interrupt, InterruptStep, Interrupts};
use tracebraid_kernel_model::UserWake;

use crate::device_class::DeviceClass;
use crate::wait_reason::WaitReason;

/// Interrupt activity on a CPU. Ends at each switch and at each entry or exit of a system call,
/// since only threads switch or make calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuContext {
    interrupts: Interrupts,
    /// Class of the device whose handler runs, if a handler runs.
    device: DeviceClass,
    /// A block request was completed in the current handler or softirq, or by the current thread.
    completed: bool,
}

/// A change of a CPU's context.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum ContextStep {
    /// An interrupt begins or ends. The class of the device applies to hard interrupts.
    Interrupt(InterruptStep, DeviceClass),
    /// A block request completes.
    Complete,
}

/// Context of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WakeSource {
    /// The thread that runs on the CPU, as far as interrupts were recorded.
    Thread,
    /// A timer function.
    Timer,
    /// The completion of a block request.
    BlockDevice,
    /// Another interrupt. The class of the device applies to hard interrupts.
    Interrupt(Interrupt, DeviceClass),
    /// The thread waits in a call for the commands of a device ([`DeviceCalls`](crate::DeviceCalls)).
    Command,
    /// The runtime of a user-level thread.
    User(UserWake),
}

impl WakeSource {
    /// Name in tables: `thread`, `timer`, `block-device`, or the interrupt.
    pub fn label(self) -> String {
        match self {
            WakeSource::Thread => "thread".to_owned(),
            WakeSource::Timer => "timer".to_owned(),
            WakeSource::BlockDevice => "block-device".to_owned(),
            WakeSource::Interrupt(interrupt, _) => interrupt.label(),
            WakeSource::Command => "device".to_owned(),
            WakeSource::User(by) => WaitReason::of_user(by).name().to_owned(),
        }
    }
}

impl CpuContext {
    /// Applies a change.
    #[inline(always)]
    pub fn step(&mut self, step: ContextStep) {
        match step {
            ContextStep::Complete => self.completed = true,
            ContextStep::Interrupt(step, device) => {
                self.interrupts.step(step);
                self.completed &= matches!(step, InterruptStep::Timer(_) | InterruptStep::TimerEnd);
                if let InterruptStep::Hard(_) = step {
                    self.device = device;
                }
            }
        }
    }

    /// The innermost active interrupt; `None` if the thread is running.
    #[inline(always)]
    pub fn interrupt(&self) -> Option<Interrupt> {
        self.interrupts.interrupt()
    }

    /// Context of a wake-up that happens now: a timer function, else the completion of a request,
    /// else the innermost interrupt, else the thread.
    #[inline]
    pub fn source(&self) -> WakeSource {
        match self.interrupts.innermost() {
            Some(Innermost::Timer(_)) => WakeSource::Timer,
            _ if self.completed => WakeSource::BlockDevice,
            Some(Innermost::Interrupt(interrupt @ Interrupt::Irq(_))) => {
                WakeSource::Interrupt(interrupt, self.device)
            }
            Some(Innermost::Interrupt(interrupt)) => {
                WakeSource::Interrupt(interrupt, DeviceClass::Other)
            }
            None => WakeSource::Thread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracebraid_follow::TimerKind;

    #[test]
    fn requests_are_completed_by_the_active_handler() {
        let mut context = CpuContext::default();
        let mut source = |change| {
            context.step(change);
            context.source()
        };
        let step = |step| ContextStep::Interrupt(step, DeviceClass::Other);
        let softirq = WakeSource::Interrupt(Interrupt::Softirq(3), DeviceClass::Other);
        assert_eq!(source(step(InterruptStep::SoftirqEnd)), WakeSource::Thread);
        assert_eq!(source(step(InterruptStep::Softirq(3))), softirq);
        let irq = Interrupt::Irq(37);
        let handler = ContextStep::Interrupt(InterruptStep::Hard(irq), DeviceClass::UserInput);
        assert_eq!(
            source(handler),
            WakeSource::Interrupt(irq, DeviceClass::UserInput)
        );
        assert_eq!(source(ContextStep::Complete), WakeSource::BlockDevice);
        assert_eq!(source(step(InterruptStep::HardEnd)), softirq);
        let timer = step(InterruptStep::Timer(TimerKind::Wheel));
        assert_eq!(source(timer), WakeSource::Timer);
        assert_eq!(source(ContextStep::Complete), WakeSource::Timer);
        assert_eq!(
            source(step(InterruptStep::TimerEnd)),
            WakeSource::BlockDevice
        );
        assert_eq!(source(step(InterruptStep::SoftirqEnd)), WakeSource::Thread);
    }
}
