//! Events on a CPU, and those to play over all CPUs.

use serde::{Deserialize, Serialize};
use tracebraid_threads::Waker;

use tracebraid_follow::InterruptStep;

/// An event on a CPU, whose effect may depend on the running thread or interrupt.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum SchedStep {
    /// An interrupt begins or ends.
    Interrupt(InterruptStep),
    /// A thread is woken, by the given thread if the event contains it.
    Wake(Wakeup, Option<i32>),
    /// An event whose effect does not depend on the CPU's activity.
    Item(SchedItem),
}

/// A wake-up of a thread, to run on the CPU `target`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Wakeup {
    pub(super) tid: i32,
    pub(super) target: Option<u32>,
    /// True if the thread is runnable from now on.
    pub(super) is_ready: bool,
    /// True for the first wake-up of a new thread.
    pub(super) is_new: bool,
}

/// An event to play in the order of time over all CPUs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum SchedItem {
    Switch(Switched),
    Wake(Wakeup, Waker),
    Migrate {
        tid: i32,
        from: u32,
        to: u32,
    },
    /// A thread is created, and has yet to be woken.
    Made(i32),
    /// A thread is freed.
    Gone(i32),
    /// The running thread takes over the id `tid`, whose owner is freed.
    Becomes {
        old: i32,
        tid: i32,
    },
    /// Events were lost.
    Lost,
}

/// A switch from one thread to another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Switched {
    pub(super) prev: i32,
    pub(super) next: i32,
    /// See [`reason`](crate::sched::stats::reason).
    pub(super) reason: u8,
    /// True if the previous thread is still runnable.
    pub(super) waits: bool,
    /// Priority of the next thread.
    pub(super) priority: Option<i32>,
}
