//! Work that the kernel does later, and locks that it waits for.

use crate::events::Edge;
use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// What happens to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkStep {
    /// It is queued.
    Queue,
    /// A worker may take it.
    Activate,
    /// A worker begins.
    Start,
    /// The worker has done it.
    End,
}

/// Work for a kernel worker.
#[derive(Clone, Debug)]
pub struct Work {
    /// What happens to it.
    pub step: WorkStep,
    /// Its address.
    pub work: IntField,
    /// Address of its function.
    pub function: Option<IntField>,
    /// Name of the queue. Not with older kernels.
    pub queue: Option<TextField>,
    /// CPU that was asked for.
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

/// Somebody waits for a lock of the kernel.
#[derive(Clone, Debug)]
pub struct Contention {
    /// The wait begins or ends.
    pub edge: Edge,
    /// Address of the lock.
    pub lock: IntField,
    /// Kind of the lock (begin), or 0 or an error (end).
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
