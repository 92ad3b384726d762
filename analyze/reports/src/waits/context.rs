//! In which context something happens on a CPU: what has interrupted the thread that runs there.

use serde::{Deserialize, Serialize};

use crate::kernel::CpuKey;

/// What is active on a CPU besides its thread. A chunk does not know what was when it began: each
/// part is [`BEFORE`] until an event says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Context {
    /// The handler of a hard interrupt: its number and [`SOME`].
    irq: u16,
    /// A softirq: its vector and [`SOME`].
    softirq: u8,
    /// The function of a timer.
    timer: u8,
    /// A block request was completed, in this very handler or by this thread.
    disk: u8,
}

const BEFORE: u8 = 0;
const NOTHING: u8 = 1;
/// This, and whatever is more, is something.
const SOME: u8 = 2;

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
    /// Nothing but the thread.
    const THREAD: Context = Context {
        irq: NOTHING as u16,
        softirq: NOTHING,
        timer: NOTHING,
        disk: NOTHING,
    };

    /// What it is if that was before.
    pub(super) fn after(self, earlier: Context) -> Context {
        let part = |own: u8, earlier| if own == BEFORE { earlier } else { own };
        Context {
            irq: if self.irq == u16::from(BEFORE) {
                earlier.irq
            } else {
                self.irq
            },
            softirq: part(self.softirq, earlier.softirq),
            timer: part(self.timer, earlier.timer),
            disk: part(self.disk, earlier.disk),
        }
    }

    /// The thread does something: nothing interrupts it.
    #[inline(always)]
    pub(super) fn thread(&mut self) {
        *self = Context::THREAD;
    }

    /// The handler of an interrupt begins, on top of whatever is active.
    pub(super) fn enter_irq(&mut self, number: i64) {
        let number = u16::try_from(number).unwrap_or(u16::MAX - u16::from(SOME));
        self.irq = number.saturating_add(SOME.into());
        self.disk = NOTHING;
    }

    /// It ends.
    pub(super) fn leave_irq(&mut self) {
        self.irq = NOTHING.into();
        self.timer = NOTHING;
        self.disk = NOTHING;
    }

    /// A softirq begins: it does so when no hard interrupt is active.
    pub(super) fn enter_softirq(&mut self, vector: i64) {
        let vector = u8::try_from(vector).unwrap_or(u8::MAX - SOME);
        *self = Context {
            softirq: vector.saturating_add(SOME),
            ..Context::THREAD
        };
    }

    /// The function of a timer begins or ends.
    pub(super) fn timer(&mut self, runs: bool) {
        self.timer = if runs { SOME } else { NOTHING };
    }

    /// A block request is completed.
    pub(super) fn completes(&mut self) {
        self.disk = SOME;
    }

    /// Where a wake-up comes from. When a trace begins, nothing is active.
    pub(super) fn source(self) -> Source {
        if self.timer >= SOME {
            Source::Timer
        } else if self.disk >= SOME {
            Source::Disk
        } else if self.irq >= SOME.into() {
            Source::Irq(self.irq - u16::from(SOME))
        } else if self.softirq >= SOME {
            Source::Softirq(self.softirq - SOME)
        } else {
            Source::Thread
        }
    }
}

/// The contexts of CPUs, in the order of their keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Contexts(Vec<(CpuKey, Context)>);

impl Contexts {
    #[inline]
    pub(super) fn at(&mut self, cpu: CpuKey) -> &mut Context {
        // Most often there is one trace, with all CPUs from 0 on.
        let direct = cpu.cpu as usize;
        let at = match self.0.get(direct) {
            Some((key, _)) if *key == cpu => direct,
            _ => self
                .0
                .binary_search_by_key(&cpu, |context| context.0)
                .unwrap_or_else(|at| {
                    self.0.insert(at, (cpu, Context::default()));
                    at
                }),
        };
        &mut self.0[at].1
    }

    /// Joins what comes later to this.
    pub(super) fn merge(&mut self, later: Contexts) {
        for (cpu, context) in later.0 {
            let own = self.at(cpu);
            *own = context.after(*own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_counts() {
        let mut context = Context::default();
        assert_eq!(context.source(), Source::Thread);
        context.enter_softirq(3);
        assert_eq!(context.source(), Source::Softirq(3));
        context.enter_irq(37);
        assert_eq!(context.source(), Source::Irq(37));
        context.completes();
        assert_eq!(context.source(), Source::Disk);
        context.leave_irq();
        assert_eq!(context.source(), Source::Softirq(3));
        context.timer(true);
        assert_eq!(context.source(), Source::Timer);
        context.thread();
        assert_eq!(context.source(), Source::Thread);
    }

    #[test]
    fn what_was_before_counts_where_nothing_was_said() {
        let mut earlier = Context::default();
        earlier.enter_softirq(1);
        let mut later = Context::default();
        later.enter_irq(9);
        assert_eq!(later.after(earlier).source(), Source::Irq(9));
        later.leave_irq();
        assert_eq!(later.after(earlier).source(), Source::Softirq(1));
        assert_eq!(later.source(), Source::Thread);
    }
}
