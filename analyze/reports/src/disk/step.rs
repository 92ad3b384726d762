//! Steps of requests and bios.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Device, Rwbs};

use crate::disk::request::SectorRange;

/// A step of a request or bio.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) device: Device,
    pub(super) place: SectorRange,
    pub(super) deed: Deed,
}

/// The kind of step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Deed {
    /// The request enters the queue.
    Queue,
    /// The request is issued to the driver, by the thread `tid` if the event contains it.
    Issue { rwbs: Rwbs, tid: Option<i32> },
    /// The request, or a part of it, is complete.
    Complete { rwbs: Rwbs, failed: bool },
    /// The request is returned to the queue.
    Requeue,
    /// The request is merged into another one.
    MergeRequest,
    /// The bio is merged into a request.
    MergeBio,
    /// The bio comes from another device.
    Remap { from: Device },
}

/// A step with the thread that runs on its CPU, if known.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct DiskItem {
    pub(super) work: Work,
    pub(super) runs: Option<i32>,
}
