//! In which context something happens on a CPU: what has interrupted the thread that runs there.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::{Innermost, Interrupt, InterruptStep, Interrupts};

use crate::step::{RequestKey, Segment};

/// What is active on a CPU besides its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Context {
    interrupts: Interrupts,
    /// What was completed last in this very handler, or by this thread.
    completed: Option<RequestKey>,
    /// What came in last by the network in this softirq.
    received: Option<Segment>,
    /// Since when the thread has been interrupted by what interrupts it now.
    since: i64,
}

/// Where a wake-up comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Source {
    /// From the thread that runs, as far as is known.
    Thread,
    /// The same, in a call in which it has sent something by that connection.
    Sender(u64),
    /// From the function of a timer.
    Timer,
    /// From what has just completed a block request.
    Disk(RequestKey),
    /// From what has just taken that segment in.
    Network(Segment),
    /// From some interrupt.
    Interrupt(Interrupt),
}

impl Context {
    /// Something interrupts the thread, or ends; gives what did so up to now, and since when, if that
    /// is another one from now on.
    #[inline]
    pub(crate) fn change(&mut self, time: i64, step: InterruptStep) -> Option<(i64, Interrupt)> {
        let before = self.interrupts.interrupt();
        self.interrupts.step(step);
        match step {
            InterruptStep::Hard(_) | InterruptStep::HardEnd => self.completed = None,
            InterruptStep::Softirq(_) | InterruptStep::SoftirqEnd => {
                (self.completed, self.received) = (None, None);
            }
            InterruptStep::Timer(_) | InterruptStep::TimerEnd => {}
        }
        if self.interrupts.interrupt() == before {
            return None;
        }
        let since = std::mem::replace(&mut self.since, time);
        before.map(|before| (since, before))
    }

    /// The thread does something itself: nothing interrupts it.
    pub(crate) fn clear(&mut self) {
        *self = Context::default();
    }

    pub(crate) fn completes(&mut self, request: RequestKey) {
        self.completed = Some(request);
    }

    pub(crate) fn receives(&mut self, segment: Segment) {
        self.received = Some(segment);
    }

    /// True if the thread itself is at work.
    #[inline]
    pub(crate) fn is_thread(&self) -> bool {
        self.interrupts.interrupt().is_none()
    }

    /// Where a wake-up comes from.
    #[inline]
    pub(crate) fn source(&self) -> Source {
        let innermost = self.interrupts.innermost();
        if let Some(Innermost::Timer(_)) = innermost {
            return Source::Timer;
        }
        if let Some(request) = self.completed {
            return Source::Disk(request);
        }
        match (innermost, self.received) {
            (Some(Innermost::Interrupt(Interrupt::Softirq(_))), Some(segment)) => Source::Network(segment),
            (Some(Innermost::Interrupt(interrupt)), _) => Source::Interrupt(interrupt),
            _ => Source::Thread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracebraid_kernel_fold::TimerKind;

    const SEGMENT: Segment = Segment {
        connection: 1,
        sequence: 2,
        length: 3,
        acknowledged: 4,
    };

    #[test]
    fn the_innermost_counts() {
        let mut context = Context::default();
        let mut source = |change| {
            context.change(0, change);
            context.source()
        };
        let softirq = Source::Interrupt(Interrupt::Softirq(3));
        assert_eq!(source(InterruptStep::SoftirqEnd), Source::Thread);
        assert_eq!(source(InterruptStep::Softirq(3)), softirq);
        let irq = Interrupt::Irq(37);
        assert_eq!(source(InterruptStep::Hard(irq)), Source::Interrupt(irq));
        assert_eq!(source(InterruptStep::HardEnd), softirq);
        assert_eq!(source(InterruptStep::Timer(TimerKind::Wheel)), Source::Timer);
        assert_eq!(source(InterruptStep::SoftirqEnd), Source::Thread);
        assert_eq!(source(InterruptStep::Hard(Interrupt::Vector(0))), Source::Timer);
        assert_eq!(source(InterruptStep::HardEnd), Source::Thread);
    }

    #[test]
    fn what_is_done_in_an_interrupt_ends_with_it() {
        let request = RequestKey { device: 8, sector: 9 };
        let mut context = Context::default();
        context.change(0, InterruptStep::Softirq(3));
        context.receives(SEGMENT);
        assert_eq!(context.source(), Source::Network(SEGMENT));
        context.change(1, InterruptStep::Hard(Interrupt::Irq(1)));
        assert_eq!(context.source(), Source::Interrupt(Interrupt::Irq(1)));
        context.completes(request);
        assert_eq!(context.source(), Source::Disk(request));
        context.change(2, InterruptStep::HardEnd);
        assert_eq!(context.source(), Source::Network(SEGMENT));
        context.change(3, InterruptStep::SoftirqEnd);
        assert_eq!(context.source(), Source::Thread);
    }

    #[test]
    fn interrupts_follow_each_other_without_gaps() {
        let mut context = Context::default();
        let irq = Interrupt::Irq(5);
        assert_eq!(context.change(10, InterruptStep::Softirq(1)), None);
        let softirq = Interrupt::Softirq(1);
        assert_eq!(context.change(12, InterruptStep::Timer(TimerKind::Wheel)), None);
        assert_eq!(context.change(13, InterruptStep::Hard(irq)), Some((10, softirq)));
        assert_eq!(context.change(15, InterruptStep::HardEnd), Some((13, irq)));
        assert_eq!(context.change(19, InterruptStep::SoftirqEnd), Some((15, softirq)));
        assert!(context.is_thread());
    }
}
