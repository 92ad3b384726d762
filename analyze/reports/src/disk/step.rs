//! What happens to requests and bios.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Device, Rwbs};

use crate::disk::request::SectorRange;

/// Something happens to a request or bio.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) device: Device,
    pub(super) place: SectorRange,
    pub(super) deed: Deed,
}

/// What happens.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Deed {
    /// It waits in the queue.
    Queue,
    /// The driver has it; by that thread, if the event names it.
    Issue { rwbs: Rwbs, tid: Option<i32> },
    /// It, or a part of it, is done.
    Complete { rwbs: Rwbs, failed: bool },
    /// It goes back to the queue.
    Requeue,
    /// It becomes a part of another request.
    MergeRequest,
    /// The bio becomes a part of a request.
    MergeBio,
    /// The bio came from another device.
    Remap { from: Device },
}

/// The same, and who runs on the CPU where it happens, if that is known.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct DiskItem {
    pub(super) work: Work,
    pub(super) runs: Option<i32>,
}
