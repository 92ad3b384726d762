//! Steps of jobs and waits.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::Edge;
use tracebraid_kernel_model::events::gpu::{Fence, GpuJob, GpuWait, JobStep};
use tracebraid_kernel_model::{Body, EventModel};

use crate::gpu::ring::{MetRings, RingRef};

/// A job of one of the traces, by the fence that is signaled when it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct JobKey {
    pub(super) trace: u32,
    pub(super) fence: Fence,
}

/// A step of a job or wait, by the thread that the event contains, if any.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) key: JobKey,
    pub(super) deed: Deed,
    pub(super) tid: Option<i32>,
}

/// The kind of step: see [`JobStep`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Deed {
    Queue(RingRef),
    Hold,
    Run(RingRef),
    Submit(RingRef),
    Done,
    Signaled,
    Destroy,
    WaitBegin,
    WaitEnd,
}

/// A step with the thread that runs on its CPU, if known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GpuItem {
    pub(super) step: Step,
    pub(super) runs: Option<i32>,
}

impl GpuItem {
    /// The thread of the step.
    pub(super) fn thread(&self) -> Option<i32> {
        self.step.tid.or(self.runs)
    }
}

/// The step of a job; `None` if the event record is too short, or the event is no step.
pub(super) fn of_job(
    rings: &mut MetRings,
    trace: u32,
    (model, job): (&EventModel, &GpuJob),
    body: &mut Body<'_, '_>,
) -> Option<Step> {
    let fence = job.fence(body)?;
    let mut ring = || Some(rings.get(trace, job.ring(body)?));
    let deed = match job.step {
        JobStep::Queue => Deed::Queue(ring()?),
        JobStep::Hold => Deed::Hold,
        JobStep::Run => Deed::Run(ring()?),
        JobStep::Submit => Deed::Submit(ring()?),
        JobStep::Done => Deed::Done,
        JobStep::Signaled => Deed::Signaled,
        JobStep::Destroy => Deed::Destroy,
    };
    Some(Step {
        key: JobKey { trace, fence },
        deed,
        tid: model.tid(body),
    })
}

/// The step of a wait; `None` if the event record is too short.
pub(super) fn of_wait(
    trace: u32,
    (model, wait): (&EventModel, &GpuWait),
    body: &mut Body<'_, '_>,
) -> Option<Step> {
    let fence = wait.fence(body)?;
    Some(Step {
        key: JobKey { trace, fence },
        deed: match wait.edge {
            Edge::Begin => Deed::WaitBegin,
            Edge::End => Deed::WaitEnd,
        },
        tid: model.tid(body),
    })
}
