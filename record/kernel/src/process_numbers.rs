//! Numbers of processes in the initial PID namespace, which event records have, and in the namespace of this process.

use std::sync::Arc;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::bpf::Programs;
use crate::contexts::OwnThread;
use crate::error::RecordError;
use crate::tasks::{Proc, Task, TaskIterator, unfollowed_descendants};

/// Processes as the kernel numbers them.
#[derive(Clone, Debug)]
pub struct Processes {
    /// The threads, and the map of their processes' numbers; `None` where BPF may not be used.
    kernel: Option<(TaskIterator, Arc<MapHandle>)>,
    own: u32,
}

impl Processes {
    /// As those programs number them. Without BPF, event records have the numbers of the namespace of this process.
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

    /// The number of this process.
    pub(crate) fn own(&self) -> u32 {
        self.own
    }

    /// This process and its parent.
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

    /// Processes that are followed and still run, by their numbers in the initial PID namespace.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn followed(&self) -> Result<Vec<u32>, RecordError> {
        let followed = self.kernel.as_ref().map(|(tasks, _)| tasks.followed());
        Ok(followed.transpose()?.unwrap_or_default())
    }

    /// Processes that run and are not followed, though an ancestor is: they were there before the recording.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn unfollowed_descendants(&self) -> Result<Vec<u32>, RecordError> {
        Ok(unfollowed_descendants(&self.list()?, self.own))
    }

    /// Of each process of this PID namespace, or of one below: its number in the initial one, the number under /proc, and
    /// that in its own namespace, which is what the process itself knows.
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

    /// The number in the initial PID namespace of a process with that number in the namespace of this process, even if the
    /// process has ended since the recording began.
    pub fn initial(&self, number: u32) -> Option<u32> {
        let (_, numbers) = match &self.kernel {
            Some(kernel) if self.own != std::process::id() => kernel,
            _ => return Some(number),
        };
        let found = numbers.lookup(&number.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(u32::from_ne_bytes(*found.first_chunk()?))
    }
}
