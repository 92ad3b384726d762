//! Who wakes: the function of a timer, the interrupt or the softirq that is active on the CPU, else the thread that runs there.

use serde::{Deserialize, Serialize};

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum By {
    /// The thread of that id; the idle thread is one.
    Thread(i32),
    Irq(u32),
    Softirq(u32),
    Timer(Wheel),
    Unknown,
}

/// Of which timers a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Wheel {
    /// Of those of high resolution.
    High,
    /// Of the timer wheel.
    Low,
}

impl Wheel {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Wheel::High => "hrtimer",
            Wheel::Low => "timer",
        }
    }
}

/// What is active on a CPU: its thread, and what interrupts it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Active {
    /// The thread that runs, if that is known.
    pub(super) tid: Option<i32>,
    /// The number of an interrupt.
    pub(super) irq: Option<u32>,
    /// The vector of a softirq.
    pub(super) softirq: Option<u32>,
    /// The function of a timer, which runs in one of these or in an interrupt of the processor.
    pub(super) timer: Option<Wheel>,
}

impl Active {
    /// Who wakes; `tid` is the thread that the event itself names.
    #[inline]
    pub(super) fn waker(&self, tid: Option<i32>) -> By {
        match (self.timer, self.irq, self.softirq) {
            (Some(wheel), ..) => By::Timer(wheel),
            (None, Some(irq), _) => By::Irq(irq),
            (None, None, Some(vector)) => By::Softirq(vector),
            (None, None, None) => tid.or(self.tid).map_or(By::Unknown, By::Thread),
        }
    }

    /// An interrupt of that number begins, on top of whatever is active; or one ends.
    #[inline(always)]
    pub(super) fn interrupt(&mut self, irq: Option<u32>) {
        (self.irq, self.timer) = (irq, None);
    }

    /// A softirq of that vector begins, or one ends: no timer's function runs on.
    #[inline(always)]
    pub(super) fn soft_interrupt(&mut self, vector: Option<u32>) {
        (self.softirq, self.timer) = (vector, None);
    }
}
