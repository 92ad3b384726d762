//! The sender of packets: a thread or a softirq.

use serde::{Deserialize, Serialize};

use crate::net::interface::InterfaceKey;
use tracebraid_follow::InterruptStep;

/// A step on a CPU that depends on the context of the CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum NetStep {
    /// A softirq begins or ends.
    Softirq(InterruptStep),
    Queue(Queued),
}

/// A packet is queued.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Queued {
    pub(super) interface: InterfaceKey,
    pub(super) bytes: u64,
    /// The thread, if the event contains it.
    pub(super) tid: Option<i32>,
}
