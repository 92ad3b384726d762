//! Who wakes: the function of a timer, the interrupt or the softirq that is active on the CPU, else the thread that runs there.

use serde::{Deserialize, Serialize};

use crate::kernel::{Innermost, Interrupt, InterruptStep, Interrupts, TimerKind};

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum By {
    /// The thread of that id; the idle thread is one.
    Thread(i32),
    Interrupt(Interrupt),
    Timer(TimerKind),
    Unknown,
}

/// What is active on a CPU: its thread, and what interrupts it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Active {
    /// The thread that runs, if that is known.
    pub(super) tid: Option<i32>,
    interrupts: Interrupts,
}

impl Active {
    /// A CPU was switched to that thread: nothing interrupts it.
    #[inline(always)]
    pub(super) fn of(tid: i32) -> Active {
        Active {
            tid: Some(tid),
            ..Active::default()
        }
    }

    /// Who wakes; `tid` is the thread that the event itself names.
    #[inline]
    pub(super) fn waker(&self, tid: Option<i32>) -> By {
        match self.interrupts.innermost() {
            Some(Innermost::Timer(kind)) => By::Timer(kind),
            Some(Innermost::Interrupt(interrupt)) => By::Interrupt(interrupt),
            None => tid.or(self.tid).map_or(By::Unknown, By::Thread),
        }
    }

    /// Begins or ends an interruption.
    #[inline(always)]
    pub(super) fn interrupt(&mut self, step: InterruptStep) {
        self.interrupts.step(step);
    }
}
