//! On whose behalf packets are sent.

use serde::{Deserialize, Serialize};

use crate::net::interface::InterfaceKey;
use tracebraid_follow::InterruptStep;

/// What happens on a CPU, in the context that it is in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum NetStep {
    /// A softirq begins, or ends.
    Softirq(InterruptStep),
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
