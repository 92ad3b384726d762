//! In which context something happens on a CPU: what has interrupted the thread that runs there.

use serde::{Deserialize, Serialize};

use crate::cause::Interrupt;
use crate::step::{RequestKey, Segment};

/// What is active on a CPU besides its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Context {
    /// A hard interrupt, on top of whatever is active.
    irq: Option<Interrupt>,
    /// A softirq: its vector.
    softirq: Option<u8>,
    /// The function of a timer.
    timer: bool,
    /// What was completed last in this very handler, or by this thread.
    completed: Option<RequestKey>,
    /// What came in last by the network in this softirq.
    received: Option<Segment>,
    /// Since when the thread has been interrupted by what interrupts it now.
    since: i64,
}

/// Something interrupts a thread, or ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Change {
    /// A hard interrupt begins.
    Irq(Interrupt),
    /// The processor's timer does.
    LocalTimer(Interrupt),
    /// A hard interrupt ends.
    IrqEnd,
    /// The softirq of that vector begins.
    Softirq(u8),
    SoftirqEnd,
    /// The function of a timer begins or ends.
    Timer(bool),
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
    /// What interrupts the thread, innermost.
    #[inline]
    fn interrupt(&self) -> Option<Interrupt> {
        self.irq.or(self.softirq.map(Interrupt::Softirq))
    }

    /// Something interrupts the thread, or ends; gives what did so up to now, and since when, if that
    /// is another one from now on.
    #[inline]
    pub(crate) fn change(&mut self, time: i64, change: Change) -> Option<(i64, Interrupt)> {
        let before = self.interrupt();
        match change {
            Change::Irq(irq) => (self.irq, self.completed) = (Some(irq), None),
            Change::LocalTimer(irq) => (self.irq, self.timer, self.completed) = (Some(irq), true, None),
            Change::IrqEnd => (self.irq, self.timer, self.completed) = (None, false, None),
            // It does so when no hard interrupt is active.
            Change::Softirq(vector) => {
                let since = self.since;
                *self = Context {
                    softirq: Some(vector),
                    since,
                    ..Context::default()
                }
            }
            Change::SoftirqEnd => {
                *self = Context {
                    since: self.since,
                    ..Context::default()
                }
            }
            Change::Timer(runs) => self.timer = runs,
        }
        if self.interrupt() == before {
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
        self.interrupt().is_none()
    }

    /// Where a wake-up comes from.
    #[inline]
    pub(crate) fn source(&self) -> Source {
        if self.timer {
            return Source::Timer;
        }
        if let Some(request) = self.completed {
            return Source::Disk(request);
        }
        match (self.irq, self.softirq, self.received) {
            (None, Some(_), Some(segment)) => Source::Network(segment),
            (None, None, _) => Source::Thread,
            (Some(irq), ..) => Source::Interrupt(irq),
            (None, Some(vector), None) => Source::Interrupt(Interrupt::Softirq(vector)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(source(Change::SoftirqEnd), Source::Thread);
        assert_eq!(source(Change::Softirq(3)), softirq);
        let irq = Interrupt::Irq(37);
        assert_eq!(source(Change::Irq(irq)), Source::Interrupt(irq));
        assert_eq!(source(Change::IrqEnd), softirq);
        assert_eq!(source(Change::Timer(true)), Source::Timer);
        assert_eq!(source(Change::SoftirqEnd), Source::Thread);
        assert_eq!(source(Change::LocalTimer(Interrupt::Vector(0))), Source::Timer);
        assert_eq!(source(Change::IrqEnd), Source::Thread);
    }

    #[test]
    fn what_is_done_in_an_interrupt_ends_with_it() {
        let request = RequestKey { device: 8, sector: 9 };
        let mut context = Context::default();
        context.change(0, Change::Softirq(3));
        context.receives(SEGMENT);
        assert_eq!(context.source(), Source::Network(SEGMENT));
        context.change(1, Change::Irq(Interrupt::Irq(1)));
        assert_eq!(context.source(), Source::Interrupt(Interrupt::Irq(1)));
        context.completes(request);
        assert_eq!(context.source(), Source::Disk(request));
        context.change(2, Change::IrqEnd);
        assert_eq!(context.source(), Source::Network(SEGMENT));
        context.change(3, Change::SoftirqEnd);
        assert_eq!(context.source(), Source::Thread);
    }

    #[test]
    fn interrupts_follow_each_other_without_gaps() {
        let mut context = Context::default();
        let irq = Interrupt::Irq(5);
        assert_eq!(context.change(10, Change::Softirq(1)), None);
        let softirq = Interrupt::Softirq(1);
        assert_eq!(context.change(12, Change::Timer(true)), None);
        assert_eq!(context.change(13, Change::Irq(irq)), Some((10, softirq)));
        assert_eq!(context.change(15, Change::IrqEnd), Some((13, irq)));
        assert_eq!(context.change(19, Change::SoftirqEnd), Some((15, softirq)));
        assert!(context.is_thread());
    }
}
