//! Activity on a CPU, for reports that follow no system calls: its thread, and what interrupts
//! that.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Innermost, Interrupt, InterruptStep, Interrupts, TimerKind};

/// Activity on a CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuActivity {
    /// The thread that runs, if that is known; 0 is the idle thread.
    pub tid: Option<i32>,
    interrupts: Interrupts,
}

/// Who wakes a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Waker {
    /// The thread with that id; 0 is the idle thread.
    Thread(i32),
    /// An interrupt.
    Interrupt(Interrupt),
    /// The function of a timer.
    Timer(TimerKind),
    /// Neither an interrupt nor a known thread.
    Unknown,
}

impl CpuActivity {
    /// After a switch to the thread: nothing interrupts it.
    #[inline(always)]
    pub fn of(tid: i32) -> CpuActivity {
        CpuActivity {
            tid: Some(tid),
            ..CpuActivity::default()
        }
    }

    /// Who wakes a thread now; `tid`: the thread that the event record itself names.
    #[inline]
    pub fn waker(&self, tid: Option<i32>) -> Waker {
        match self.interrupts.innermost() {
            Some(Innermost::Timer(kind)) => Waker::Timer(kind),
            Some(Innermost::Interrupt(interrupt)) => Waker::Interrupt(interrupt),
            None => tid.or(self.tid).map_or(Waker::Unknown, Waker::Thread),
        }
    }

    /// Begins or ends an interruption.
    #[inline(always)]
    pub fn interrupt(&mut self, step: InterruptStep) {
        self.interrupts.step(step);
    }

    /// True if an interrupt is active, and not the thread.
    #[inline(always)]
    pub fn is_interrupted(&self) -> bool {
        self.interrupts.interrupt().is_some()
    }
}
