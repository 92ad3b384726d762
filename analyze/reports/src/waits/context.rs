//! In which context something happens on a CPU: what has interrupted the thread that runs there.

use serde::{Deserialize, Serialize};

use crate::kernel::{Innermost, Interrupt, InterruptStep, Interrupts};

/// What is active on a CPU besides its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Context {
    interrupts: Interrupts,
    /// A block request was completed, in this very handler or by this thread.
    disk: bool,
}

/// Something changes the context.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Change {
    /// Begins or ends an interruption.
    Interrupt(InterruptStep),
    /// A block request is completed.
    Completes,
}

/// Where a wake-up comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Source {
    /// From the thread that runs, as far as is known.
    Thread,
    /// From the function of a timer.
    Timer,
    /// From what has just completed a block request.
    Disk,
    /// From that interrupt.
    Interrupt(Interrupt),
}

impl Context {
    /// Begins or ends an interruption, or completes a request.
    #[inline]
    pub(super) fn change(&mut self, change: Change) {
        match change {
            Change::Completes => self.disk = true,
            Change::Interrupt(step) => {
                self.interrupts.step(step);
                self.disk &= matches!(step, InterruptStep::Timer(_) | InterruptStep::TimerEnd);
            }
        }
    }

    /// Where a wake-up comes from.
    #[inline]
    pub(super) fn source(self) -> Source {
        match self.interrupts.innermost() {
            Some(Innermost::Timer(_)) => Source::Timer,
            _ if self.disk => Source::Disk,
            Some(Innermost::Interrupt(interrupt)) => Source::Interrupt(interrupt),
            None => Source::Thread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::TimerKind;

    #[test]
    fn requests_are_completed_by_what_is_active() {
        let mut context = Context::default();
        let mut source = |change| {
            context.change(change);
            context.source()
        };
        let step = Change::Interrupt;
        let softirq = Source::Interrupt(Interrupt::Softirq(3));
        assert_eq!(source(step(InterruptStep::SoftirqEnd)), Source::Thread);
        assert_eq!(source(step(InterruptStep::Softirq(3))), softirq);
        let irq = Interrupt::Irq(37);
        assert_eq!(source(step(InterruptStep::Hard(irq))), Source::Interrupt(irq));
        assert_eq!(source(Change::Completes), Source::Disk);
        assert_eq!(source(step(InterruptStep::HardEnd)), softirq);
        let timer = step(InterruptStep::Timer(TimerKind::Wheel));
        assert_eq!(source(timer), Source::Timer);
        assert_eq!(source(step(InterruptStep::SoftirqEnd)), Source::Thread);
    }
}
