//! Packets on their way.

use serde::{Deserialize, Serialize};

use crate::net::interface::{Begun, End};

/// A packet is handed on, by address of its buffer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Passing {
    /// To an interface, or from it.
    Begin(u64, Begun),
    /// To the driver, or back to the memory.
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
