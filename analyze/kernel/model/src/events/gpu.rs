//! Jobs of GPUs, and waits for them.
//!
//! The events of the kernel's scheduler of GPU jobs (`gpu_scheduler`), of fences (`dma_fence`), and
//! of the drivers i915, xe and amdgpu. Fields are those of the kernel's headers
//! (`drivers/gpu/drm/scheduler/gpu_scheduler_trace.h`, `include/trace/events/dma_fence.h`,
//! `drivers/gpu/drm/{i915,xe,amd/amdgpu}/*_trace.h`), before and since Linux 6.16, which renamed the
//! events of the scheduler and replaced the addresses of fences by their numbers.

use serde::{Deserialize, Serialize};

use crate::events::Edge;
use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;

/// Step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStep {
    /// A thread puts the job into the driver's queue.
    Queue,
    /// The job cannot run yet: it waits for another fence.
    Hold,
    /// The driver hands the job to the ring.
    Run,
    /// A thread hands the job to the ring, without a queue of the driver.
    Submit,
    /// The job is complete.
    Done,
    /// A fence is signaled, which may be that of a job: the job is complete.
    Signaled,
    /// A fence is freed, which may be that of a job.
    Destroy,
}

impl JobStep {
    /// True if a job may begin with the step.
    pub fn begins(self) -> bool {
        matches!(self, JobStep::Queue | JobStep::Run | JobStep::Submit)
    }

    /// True if the step ends a job.
    pub fn completes(self) -> bool {
        matches!(self, JobStep::Done | JobStep::Signaled)
    }
}

/// Where the events of a job come from. Some jobs have events of several sources, of which one
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum JobSource {
    /// The kernel's scheduler, which most drivers use.
    Scheduler,
    /// A driver with a scheduler of its own (i915).
    OwnScheduler,
    /// A driver that uses the kernel's scheduler (amdgpu, xe).
    Driver,
    /// Fences alone.
    Fence,
}

/// The fence that is signaled when a job is complete. It identifies the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fence {
    /// Numbers of the timeline and on it: the lower 32 bits, since `dma_fence` events have no more.
    Number {
        /// Number of the timeline.
        context: u32,
        /// Number on the timeline.
        seqno: u32,
    },
    /// Address in the kernel, which a later fence may get again.
    Address(u64),
}

#[derive(Clone, Debug)]
enum FenceField {
    Number { context: IntField, seqno: IntField },
    Address(IntField),
}

impl FenceField {
    fn find(finder: &Finder<'_>) -> Option<FenceField> {
        let number = |[context, seqno]: [&str; 2]| {
            Some(FenceField::Number {
                context: finder.int(&[context])?,
                seqno: finder.int(&[seqno])?,
            })
        };
        // In events with `fence_context`, `ctx` is the fence that the job waits for. xe's events of
        // jobs have only the address, its events of fences also `ctx`.
        number(["fence_context", "fence_seqno"])
            .or_else(|| number(["context", "seqno"]))
            .or_else(|| finder.int(&["fence"]).map(FenceField::Address))
            .or_else(|| number(["ctx", "seqno"]))
    }

    fn get(&self, body: &mut Body<'_, '_>) -> Option<Fence> {
        Some(match self {
            FenceField::Number { context, seqno } => Fence::Number {
                context: context.get(body)? as u32,
                seqno: seqno.get(body)? as u32,
            },
            FenceField::Address(address) => Fence::Address(address.get(body)? as u64),
        })
    }
}

/// A ring of a device, which executes jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ring {
    /// Name of the device or of its driver; empty if unknown.
    pub device: String,
    /// Name of the ring.
    pub name: String,
}

#[derive(Clone, Debug)]
enum RingField {
    Named {
        device: Option<TextField>,
        name: TextField,
    },
    /// An engine of i915.
    Engine {
        device: IntField,
        class: IntField,
        instance: IntField,
    },
    /// A queue of xe, which its firmware puts on an engine.
    Firmware {
        device: Option<TextField>,
        queue: IntField,
    },
}

/// Names of i915's classes of engines (`include/uapi/drm/i915_drm.h`).
const ENGINES: [&str; 5] = ["rcs", "bcs", "vcs", "vecs", "ccs"];

impl RingField {
    fn find(finder: &Finder<'_>) -> Option<RingField> {
        let engine = || {
            Some(RingField::Engine {
                device: finder.int(&["dev"])?,
                class: finder.int(&["class"])?,
                instance: finder.int(&["instance"])?,
            })
        };
        let device = || finder.text(&["dev", "driver"]);
        let named = || {
            Some(RingField::Named {
                device: device(),
                // Older kernels record only the address of `ring_name`.
                name: finder.text(&["name", "ring", "ring_name", "timeline"])?,
            })
        };
        let firmware = || {
            Some(RingField::Firmware {
                device: device(),
                queue: finder.int(&["guc_id"])?,
            })
        };
        engine().or_else(named).or_else(firmware)
    }

    fn get(&self, body: &mut Body<'_, '_>) -> Option<Ring> {
        let text = |field: &TextField, body: &mut Body<'_, '_>| {
            let bytes = field.bytes(body)?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        let device = |field: &Option<TextField>, body: &mut Body<'_, '_>| {
            let device = field.as_ref().and_then(|field| text(field, body));
            device.unwrap_or_default()
        };
        Some(match self {
            RingField::Named { device: of, name } => Ring {
                device: device(of, body),
                name: text(name, body)?,
            },
            RingField::Engine {
                device,
                class,
                instance,
            } => {
                let class = class.get(body)?;
                let name = usize::try_from(class).ok().and_then(|at| ENGINES.get(at));
                let name = name.map_or_else(|| format!("class{class}-"), |name| (*name).to_owned());
                Ring {
                    device: format!("card{}", device.get(body)?),
                    name: format!("{name}{}", instance.get(body)?),
                }
            }
            RingField::Firmware { device: of, queue } => Ring {
                device: device(of, body),
                name: format!("queue {}", queue.get(body)?),
            },
        })
    }
}

/// A step of a job.
#[derive(Clone, Debug)]
pub struct GpuJob {
    /// The step.
    pub step: JobStep,
    fence: FenceField,
    ring: Option<RingField>,
    /// Whether a request that leaves the hardware is complete.
    completed: Option<IntField>,
}

impl GpuJob {
    pub(crate) fn find(finder: &Finder<'_>, step: JobStep) -> Option<Box<GpuJob>> {
        let ring = RingField::find(finder);
        (ring.is_some() || !step.begins()).then_some(())?;
        Some(Box::new(GpuJob {
            step,
            fence: FenceField::find(finder)?,
            ring,
            completed: finder.int(&["completed"]),
        }))
    }

    /// The fence of the job; `None` if the event is no step of it: a request left the hardware
    /// because another one pre-empted it.
    pub fn fence(&self, body: &mut Body<'_, '_>) -> Option<Fence> {
        let completed = self.completed.as_ref().map(|field| field.get(body));
        match completed {
            Some(Some(0) | None) => None,
            _ => self.fence.get(body),
        }
    }

    /// The ring of the job.
    pub fn ring(&self, body: &mut Body<'_, '_>) -> Option<Ring> {
        self.ring.as_ref()?.get(body)
    }
}

/// A thread waits for a fence.
#[derive(Clone, Debug)]
pub struct GpuWait {
    /// The wait begins or ends.
    pub edge: Edge,
    fence: FenceField,
}

impl GpuWait {
    pub(crate) fn find(finder: &Finder<'_>, edge: Edge) -> Option<Box<GpuWait>> {
        let fence = FenceField::find(finder)?;
        Some(Box::new(GpuWait { edge, fence }))
    }

    /// The fence.
    pub fn fence(&self, body: &mut Body<'_, '_>) -> Option<Fence> {
        self.fence.get(body)
    }
}
