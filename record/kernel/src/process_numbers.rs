//! Process ids in the initial PID namespace, which event records contain, and in the namespace of
//! this process.

use std::sync::Arc;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::bpf::Programs;
use crate::contexts::OwnThread;
use crate::error::RecordError;
use crate::tasks::{Proc, Task, TaskIterator, unfollowed_descendants};

/// The processes of the machine, with their ids in PID namespaces.
#[derive(Clone, Debug)]
pub struct Processes {
    /// The iterator over threads, and the map of process ids; `None` without BPF.
    kernel: Option<(TaskIterator, Arc<MapHandle>)>,
    own: u32,
}

impl Processes {
    /// Without programs, event records contain the ids of the namespace of this process.
    pub(crate) fn new(programs: Option<&Programs>) -> Result<Processes, RecordError> {
        Ok(match programs {
            Some(programs) => Processes {
                kernel: Some((programs.tasks().clone(), Arc::new(programs.numbers()?))),
                own: programs.own_process(),
            },
            None => Processes {
                kernel: None,
                own: std::process::id(),
            },
        })
    }

    /// Id of this process in the initial PID namespace.
    pub(crate) fn own(&self) -> u32 {
        self.own
    }

    /// Ids of this process and of its parent.
    pub(crate) fn own_thread(&self) -> OwnThread {
        let tasks = self.list().unwrap_or_default();
        let own = tasks.iter().find(|task| task.pid == self.own);
        OwnThread {
            process: self.own,
            parent: own.map_or(0, |task| task.parent),
        }
    }

    pub(crate) fn list(&self) -> Result<Vec<Task>, RecordError> {
        let tasks = self.kernel.as_ref().map(|(tasks, _)| tasks.list());
        Ok(tasks.transpose()?.unwrap_or_default())
    }

    /// Ids of followed processes that still run, in the initial PID namespace.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn followed(&self) -> Result<Vec<u32>, RecordError> {
        let followed = self.kernel.as_ref().map(|(tasks, _)| tasks.followed());
        Ok(followed.transpose()?.unwrap_or_default())
    }

    /// Ids of running processes that are not followed although an ancestor is: they existed before
    /// the recording.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn unfollowed_descendants(&self) -> Result<Vec<u32>, RecordError> {
        Ok(unfollowed_descendants(&self.list()?, self.own))
    }

    /// For each process of this PID namespace and of those below: its id in the initial namespace,
    /// its id under `/proc`, and its id in its own namespace (the result of its `getpid`).
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn numbers(&self) -> Result<Vec<[u32; 3]>, RecordError> {
        let proc = Proc::mounted();
        let numbers = |task: Task| {
            let own = task.numbers().last().map_or(0, |numbers| numbers.pid);
            let number = task.number_in(proc?).filter(|_| task.is_leader())?;
            Some([task.pid, number, own])
        };
        Ok(self.list()?.into_iter().filter_map(numbers).collect())
    }

    /// Translates an id in the namespace of this process into the initial PID namespace, even if
    /// the process has ended since the recording began.
    pub fn initial(&self, number: u32) -> Option<u32> {
        let (_, numbers) = match &self.kernel {
            Some(kernel) if self.own != std::process::id() => kernel,
            _ => return Some(number),
        };
        let found = numbers
            .lookup(&number.to_ne_bytes(), MapFlags::ANY)
            .ok()??;
        Some(u32::from_ne_bytes(*found.first_chunk()?))
    }
}
