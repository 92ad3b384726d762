//! What happens on a CPU, and what of it concerns others.

use serde::{Deserialize, Serialize};
use tracebraid_threads::Waker;

use tracebraid_follow::InterruptStep;

/// What happens on a CPU, by whatever is active there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum SchedStep {
    /// Begins or ends an interruption.
    Interrupt(InterruptStep),
    /// A thread is woken, as the event says by that one.
    Wake(Wakeup, Option<i32>),
    /// It does not matter what is active.
    Item(SchedItem),
}

/// A thread is woken, to run on that CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Wakeup {
    pub(super) tid: i32,
    pub(super) target: Option<u32>,
    /// It can run from now on.
    pub(super) is_ready: bool,
    /// True for the first event about the thread.
    pub(super) is_new: bool,
}

/// What happens to threads; played in the order of time over all CPUs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum SchedItem {
    Switch(Switched),
    Wake(Wakeup, Waker),
    Migrate {
        tid: i32,
        from: u32,
        to: u32,
    },
    /// A thread is made, and has yet to be woken.
    Made(i32),
    /// Nothing is left of a thread.
    Gone(i32),
    /// What runs there takes over the second id; nothing is left of its owner.
    Becomes {
        old: i32,
        tid: i32,
    },
    /// Events were lost.
    Lost,
}

/// A CPU goes from one thread to another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Switched {
    pub(super) prev: i32,
    pub(super) next: i32,
    /// See [`reason`](crate::sched::stats::reason).
    pub(super) reason: u8,
    /// The first one could have run on.
    pub(super) waits: bool,
    /// Of the second one.
    pub(super) priority: Option<i32>,
}
