//! On whose behalf packets are sent.

use serde::{Deserialize, Serialize};

use crate::net::interface::InterfaceKey;

/// What a CPU does.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Context {
    /// The thread that runs, if that is known.
    pub(super) tid: Option<i32>,
    /// It is in a softirq, whoever runs.
    pub(super) in_softirq: bool,
}

impl Context {
    /// A CPU was switched to that thread: this does not happen in softirqs.
    #[inline(always)]
    pub(super) fn of(tid: i32) -> Context {
        Context {
            tid: Some(tid),
            in_softirq: false,
        }
    }
}

/// What happens on a CPU, in the context that it is in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// A softirq begins, or ends.
    Softirq(bool),
    Queue(Queued),
}

/// A packet is queued.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Queued {
    pub(super) interface: InterfaceKey,
    pub(super) bytes: u64,
    /// The thread, if the event names it.
    pub(super) tid: Option<i32>,
}
