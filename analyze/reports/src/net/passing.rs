//! Events of packets between the network stack and the driver.

use serde::{Deserialize, Serialize};

use crate::net::interface::{Begun, End};

/// An event of the packet with that buffer address.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Passing {
    /// The packet is queued, or received.
    Begin(u64, Begun),
    /// The packet reaches the driver, or its buffer is released.
    End(u64, End),
}

impl Passing {
    /// The packet, if it is queued for sending.
    #[inline(always)]
    pub(super) fn queues(self) -> Option<(u64, Begun)> {
        match self {
            Passing::Begin(buffer, begun) if begun.is_sent => Some((buffer, begun)),
            _ => None,
        }
    }
}
