//! Who wakes: the interrupt or softirq that is active on the CPU, else the thread that runs there.

use serde::{Deserialize, Serialize};

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum By {
    /// The thread of that id; the idle thread is one.
    Thread(i32),
    Irq(u32),
    Softirq(u32),
    Unknown,
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
}

impl Active {
    /// Who wakes; `tid` is the thread that the event itself names.
    #[inline]
    pub(super) fn waker(&self, tid: Option<i32>) -> By {
        match (self.irq, self.softirq) {
            (Some(irq), _) => By::Irq(irq),
            (None, Some(vector)) => By::Softirq(vector),
            (None, None) => tid.or(self.tid).map_or(By::Unknown, By::Thread),
        }
    }
}
