//! In which context something happens on a CPU: what has interrupted the thread that runs there.

use serde::{Deserialize, Serialize};

/// What is active on a CPU besides its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Context {
    /// The handler of a hard interrupt: its number.
    irq: Option<u16>,
    /// A softirq: its vector.
    softirq: Option<u8>,
    /// The function of a timer.
    timer: bool,
    /// A block request was completed, in this very handler or by this thread.
    disk: bool,
}

/// Something interrupts a thread, or ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Interrupt {
    /// The handler of the hard interrupt of that number begins.
    Irq(u16),
    /// An interrupt of the processor begins, of its timer or another one.
    Vector {
        is_timer: bool,
    },
    /// One of these ends.
    IrqEnd,
    /// The softirq of that vector begins.
    Softirq(u8),
    SoftirqEnd,
    /// The function of a timer begins or ends.
    Timer(bool),
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
    /// From the handler of that interrupt.
    Irq(u16),
    /// From the softirq of that vector.
    Softirq(u8),
}

impl Context {
    /// Something interrupts the thread, or ends.
    #[inline]
    pub(super) fn change(&mut self, interrupt: Interrupt) {
        match interrupt {
            // On top of whatever is active.
            Interrupt::Irq(number) => (self.irq, self.disk) = (Some(number), false),
            Interrupt::Vector { is_timer } => {
                (self.irq, self.timer, self.disk) = (Some(0), is_timer, false);
            }
            Interrupt::IrqEnd => (self.irq, self.timer, self.disk) = (None, false, false),
            // It does so when no hard interrupt is active.
            Interrupt::Softirq(vector) => {
                *self = Context {
                    softirq: Some(vector),
                    ..Context::default()
                }
            }
            Interrupt::SoftirqEnd => *self = Context::default(),
            Interrupt::Timer(runs) => self.timer = runs,
            Interrupt::Completes => self.disk = true,
        }
    }

    /// Where a wake-up comes from.
    #[inline]
    pub(super) fn source(self) -> Source {
        match self {
            Context { timer: true, .. } => Source::Timer,
            Context { disk: true, .. } => Source::Disk,
            Context {
                irq: Some(number), ..
            } => Source::Irq(number),
            Context {
                softirq: Some(vector),
                ..
            } => Source::Softirq(vector),
            _ => Source::Thread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_counts() {
        let mut context = Context::default();
        let mut source = |interrupt| {
            context.change(interrupt);
            context.source()
        };
        assert_eq!(source(Interrupt::SoftirqEnd), Source::Thread);
        assert_eq!(source(Interrupt::Softirq(3)), Source::Softirq(3));
        assert_eq!(source(Interrupt::Irq(37)), Source::Irq(37));
        assert_eq!(source(Interrupt::Completes), Source::Disk);
        assert_eq!(source(Interrupt::IrqEnd), Source::Softirq(3));
        assert_eq!(source(Interrupt::Timer(true)), Source::Timer);
        assert_eq!(source(Interrupt::SoftirqEnd), Source::Thread);
        assert_eq!(source(Interrupt::Vector { is_timer: true }), Source::Timer);
        assert_eq!(source(Interrupt::IrqEnd), Source::Thread);
    }
}
