//! Finds the thread that caused the end of a wait, and when it did.

use tracebraid_kernel_model::Syscall;

use crate::cause::{ActorId, Wake};
use crate::graph::Graph;
use crate::path::Link;

/// The thread whose action ends a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) by: ActorId,
    /// When that thread did it, in nanoseconds from the origin; `None`: when the wait ended.
    pub(crate) at: Option<i64>,
    pub(crate) link: Link,
}

impl Graph {
    /// The thread that a wait of `own`, in that call about that object, was for.
    pub(crate) fn origin(
        &self,
        own: ActorId,
        (call, object, wake): (Syscall, u32, Wake),
    ) -> Option<Origin> {
        match wake {
            Wake::Thread(by) => Some(Origin {
                by,
                at: None,
                link: Link::Wakes { call, object },
            }),
            Wake::Packet(place) => {
                let packet = self.packets.get(place as usize)?;
                Some(Origin {
                    by: packet.by?,
                    at: Some(packet.sent?),
                    link: Link::Sends(place),
                })
            }
            Wake::Request(place) => {
                let request = self.requests.get(place as usize)?;
                Some(Origin {
                    by: request.by?,
                    at: Some(request.begin),
                    link: Link::Issues(place),
                })
            }
            // Paths show the activity of the device itself.
            Wake::Command(_) => None,
            Wake::Unknown | Wake::StillWaiting | Wake::Timer | Wake::Interrupt(_) => {
                let request = self.ring_request(call, object)?;
                Some(Origin {
                    by: request.by.filter(|by| *by != own)?,
                    at: Some(request.submitted),
                    link: Link::Submits(object),
                })
            }
        }
    }
}
