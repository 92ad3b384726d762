//! Deferred work of the kernel, and waits for its locks.

use crate::events::Edge;
use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// Step of a work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkStep {
    /// The item is queued.
    Queue,
    /// The item is ready for a worker.
    Activate,
    /// A worker begins the item.
    Start,
    /// The worker has finished the item.
    End,
}

/// Work for a kernel worker.
#[derive(Clone, Debug)]
pub struct Work {
    /// Step of the item.
    pub step: WorkStep,
    /// Address of the item.
    pub work: IntField,
    /// Address of the item's function.
    pub function: Option<IntField>,
    /// Name of the queue. Absent on older kernels.
    pub queue: Option<TextField>,
    /// Requested CPU.
    pub cpu: Option<IntField>,
}

impl Work {
    pub(crate) fn find(finder: &Finder<'_>, step: WorkStep) -> Option<Box<Work>> {
        Some(Box::new(Work {
            step,
            work: finder.int(&["work"])?,
            function: finder.int(&["function"]),
            queue: finder.text(&["workqueue"]),
            cpu: finder.int(&["cpu", "req_cpu"]),
        }))
    }
}

/// A wait for a lock of the kernel.
#[derive(Clone, Debug)]
pub struct Contention {
    /// The wait begins or ends.
    pub edge: Edge,
    /// Address of the lock.
    pub lock: IntField,
    /// Kind of the lock (begin), or 0 or an error number (end).
    pub detail: Option<IntField>,
}

impl Contention {
    pub(crate) fn find(finder: &Finder<'_>, edge: Edge) -> Option<Contention> {
        Some(Contention {
            edge,
            lock: finder.int(&["lock_addr"])?,
            detail: finder.int(&["flags", "ret"]),
        })
    }
}
