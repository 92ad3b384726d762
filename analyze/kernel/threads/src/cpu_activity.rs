//! Activity on a CPU, for reports that do not follow system calls: the current thread and the
//! interrupts on top of it.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Innermost, Interrupt, InterruptStep, Interrupts, TimerKind};

/// The current thread of a CPU and its active interrupts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuActivity {
    /// The current thread, if known; 0 is the idle thread.
    pub tid: Option<i32>,
    interrupts: Interrupts,
}

/// Context that wakes a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Waker {
    /// The thread with this id; 0 is the idle thread.
    Thread(i32),
    /// An interrupt.
    Interrupt(Interrupt),
    /// A timer function.
    Timer(TimerKind),
    /// Neither an interrupt nor a known thread.
    Unknown,
}

impl CpuActivity {
    /// The state after a switch to `tid`: no interrupt is active.
    #[inline(always)]
    pub fn of(tid: i32) -> CpuActivity {
        CpuActivity {
            tid: Some(tid),
            ..CpuActivity::default()
        }
    }

    /// Context that wakes a thread now. `tid` is the waker that the event record itself names, if
    /// any.
    #[inline]
    pub fn waker(&self, tid: Option<i32>) -> Waker {
        match self.interrupts.innermost() {
            Some(Innermost::Timer(kind)) => Waker::Timer(kind),
            Some(Innermost::Interrupt(interrupt)) => Waker::Interrupt(interrupt),
            None => tid.or(self.tid).map_or(Waker::Unknown, Waker::Thread),
        }
    }

    /// Applies the beginning or end of an interrupt.
    #[inline(always)]
    pub fn interrupt(&mut self, step: InterruptStep) {
        self.interrupts.step(step);
    }

    /// True if an interrupt is active.
    #[inline(always)]
    pub fn is_interrupted(&self) -> bool {
        self.interrupts.interrupt().is_some()
    }
}
