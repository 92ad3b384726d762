//! Threads with their ids in all PID namespaces, as listed by the kernel (`bpf/tasks.h`).

use std::collections::{BTreeSet, HashMap};
use std::io::{BufReader, Read};
use std::sync::Arc;

use libbpf_rs::{Iter, Link};

use crate::bpf::failed;
use crate::error::RecordError;
use crate::raw::{u32_at, u64_at};
use crate::shared::{MOST_LEVELS, SEEN_SIZE};

/// A thread that existed at a time: `struct seen`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Task {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) time: u64,
    /// Thread id in the initial namespace, as in event records.
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// Process id in the namespace of this process, and the level of that namespace.
    own_pid: u32,
    own_level: usize,
    /// Level of its innermost namespace.
    level: usize,
    pub(crate) flags: u32,
    pub(crate) state: u32,
    pub(crate) exit_state: u32,
    pub(crate) cpu: u32,
    /// True if BPF follows its process.
    pub(crate) is_target: bool,
    pub(crate) name: [u8; 16],
    /// By level.
    numbers: [Numbers; MOST_LEVELS],
}

/// Ids of a thread in a PID namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    /// 0 if the parent is outside the namespace.
    pub(crate) parent: u32,
    /// Inode of the namespace.
    pub(crate) namespace: u32,
}

/// Offset of the ids by level.
const NUMBERS: usize = 72;

impl Task {
    fn parse(bytes: &[u8]) -> Option<Task> {
        let at = |place: usize| u32_at(bytes, 8 + 4 * place);
        let mut task = Task {
            time: u64_at(bytes, 0)?,
            tid: at(0)?,
            pid: at(1)?,
            parent: at(2)?,
            own_pid: at(4)?,
            own_level: at(5)? as usize,
            level: at(6)? as usize,
            flags: at(7)?,
            state: at(8)?,
            exit_state: at(9)?,
            cpu: at(10)?,
            is_target: at(11)? != 0,
            name: *bytes.get(56..)?.first_chunk()?,
            numbers: Default::default(),
        };
        for (level, numbers) in task.numbers.iter_mut().enumerate() {
            let at = |array: usize| u32_at(bytes, NUMBERS + 4 * (array * MOST_LEVELS + level));
            *numbers = Numbers {
                tid: at(0)?,
                pid: at(1)?,
                parent: at(2)?,
                namespace: at(3)?,
            };
        }
        Some(task)
    }

    /// Ids from the initial namespace to the innermost one.
    pub(crate) fn numbers(&self) -> &[Numbers] {
        self.numbers.get(..=self.level).unwrap_or(&self.numbers)
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.tid == self.pid
    }

    /// The id of its process under `/proc`.
    pub(crate) fn number_in(&self, proc: Proc) -> Option<u32> {
        let level = self.own_level.checked_sub(proc.above)?;
        let number = match level == self.own_level {
            true => self.own_pid,
            false => self.numbers.get(level)?.pid,
        };
        (number != 0).then_some(number)
    }
}

/// The PID namespace whose ids `/proc` has: that for which it was mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proc {
    /// Number of levels above the namespace of this process.
    above: usize,
}

impl Proc {
    /// `None` if no `/proc` is mounted that contains this process.
    pub(crate) fn mounted() -> Option<Proc> {
        Proc::parse(&std::fs::read_to_string("/proc/self/status").ok()?)
    }

    /// `NSpid` has an id for each namespace from that of `/proc` down to that of the process.
    fn parse(status: &str) -> Option<Proc> {
        let numbers = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))?;
        let above = numbers.split_whitespace().count().checked_sub(1)?;
        Some(Proc { above })
    }
}

/// Lists threads; clones list the same threads.
#[derive(Clone, Debug)]
pub(crate) struct TaskIterator(Arc<Link>);

impl TaskIterator {
    pub(crate) fn new(link: Link) -> TaskIterator {
        TaskIterator(Arc::new(link))
    }

    /// Passes each thread in the PID namespace of this process to `to`, soon after the kernel has
    /// been read.
    pub(crate) fn each(&self, mut to: impl FnMut(Task)) -> Result<(), RecordError> {
        let unreadable =
            |error: std::io::Error| RecordError::Load(format!("cannot list threads: {error}"));
        // The kernel returns a few pages at a time.
        let mut tasks = BufReader::with_capacity(32 << 10, Iter::new(&self.0).map_err(failed)?);
        let mut bytes = [0; SEEN_SIZE];
        loop {
            match tasks.read_exact(&mut bytes) {
                Ok(()) => Task::parse(&bytes).into_iter().for_each(&mut to),
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(unreadable(error)),
            }
        }
    }

    pub(crate) fn list(&self) -> Result<Vec<Task>, RecordError> {
        let mut tasks = Vec::new();
        self.each(|task| tasks.push(task))?;
        Ok(tasks)
    }

    /// Running processes that BPF follows, by their ids in the initial namespace.
    pub(crate) fn followed(&self) -> Result<Vec<u32>, RecordError> {
        let mut processes = Vec::new();
        self.each(|task| {
            // Ended threads may be listed until their process is waited for.
            if task.is_target && task.exit_state == 0 {
                processes.push(task.pid);
            }
        })?;
        processes.sort_unstable();
        processes.dedup();
        Ok(processes)
    }
}

/// Ids, in the initial namespace, of running processes that BPF does not follow although an
/// ancestor is followed. The recorder, `own`, is left out: a recorded shell may have started it.
pub(crate) fn unfollowed_descendants(tasks: &[Task], own: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<&Task>> = HashMap::new();
    for task in tasks
        .iter()
        .filter(|task| task.is_leader() && task.exit_state == 0)
    {
        children.entry(task.parent).or_default().push(task);
    }
    let followed = tasks
        .iter()
        .filter(|task| task.is_leader() && task.is_target);
    let mut parents: Vec<u32> = followed.map(|task| task.pid).collect();
    let mut found = BTreeSet::new();
    while let Some(parent) = parents.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if !child.is_target && child.pid != own && found.insert(child.pid) {
                parents.push(child.pid);
            }
        }
    }
    found.into_iter().collect()
}

/// The id in the initial namespace of a process with the given id in the namespace of this process.
pub(crate) fn resolve(tasks: &[Task], number: u32) -> Option<u32> {
    let task = tasks.iter().find(|task| task.own_pid == number);
    task.map(|task| task.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thread 70 of process 60 in a namespace of level 1, where their ids are 7 and 6.
    fn bytes(own_level: u32) -> Vec<u8> {
        let mut bytes = 5u64.to_le_bytes().to_vec();
        let own: [u32; 2] = if own_level == 0 { [70, 60] } else { [7, 6] };
        let head = [70, 60, 50, own[0], own[1], own_level, 1, 0, 1, 0, 3, 1];
        bytes.extend(head.iter().flat_map(|value: &u32| value.to_le_bytes()));
        bytes.extend(b"name\0\0\0\0\0\0\0\0\0\0\0\0");
        for [outer, inner] in [[70u32, 7], [60, 6], [50, 0], [900, 901]] {
            bytes.extend(outer.to_le_bytes());
            bytes.extend(inner.to_le_bytes());
            bytes.resize(bytes.len() + 4 * (MOST_LEVELS - 2), 0);
        }
        bytes
    }

    #[test]
    fn a_thread_has_its_numbers_in_each_namespace() {
        assert_eq!(bytes(0).len(), SEEN_SIZE);
        let task = Task::parse(&bytes(0)).unwrap();
        assert_eq!(
            (task.time, task.tid, task.pid, task.parent),
            (5, 70, 60, 50)
        );
        assert_eq!(&task.name[..5], b"name\0");
        let inner = Numbers {
            tid: 7,
            pid: 6,
            parent: 0,
            namespace: 901,
        };
        assert_eq!(task.numbers().len(), 2);
        assert_eq!(task.numbers()[1], inner);
        assert_eq!(Task::parse(&bytes(0)[1..]), None);
    }

    #[test]
    fn descendants_of_followed_processes_are_found_at_any_depth() {
        let task = |pid, parent, is_target| Task {
            pid,
            tid: pid,
            parent,
            is_target,
            ..Task::default()
        };
        let mut tasks = vec![
            task(1, 0, false),
            task(5, 1, true),
            task(6, 5, false),
            task(7, 6, false),
            task(8, 5, true),
            task(9, 8, false),
            task(10, 1, false),
            task(11, 5, false),
        ];
        // A thread, and a process that has ended.
        tasks.push(Task {
            tid: 12,
            ..task(6, 5, false)
        });
        tasks.push(Task {
            exit_state: 0x20,
            ..task(13, 5, false)
        });
        assert_eq!(unfollowed_descendants(&tasks, 11), [6, 7, 9]);
    }

    #[test]
    fn proc_may_be_that_of_an_outer_namespace() {
        let of = |status| Proc::parse(status).unwrap();
        let (same, outer) = (of("Name:\tx\nNSpid:\t7\n"), of("NSpid:\t70\t7\n"));
        let inside = Task::parse(&bytes(1)).unwrap();
        assert_eq!(inside.number_in(same), Some(6));
        assert_eq!(inside.number_in(outer), Some(60));
        let outside = Task::parse(&bytes(0)).unwrap();
        assert_eq!(outside.number_in(same), Some(60));
        assert_eq!(outside.number_in(outer), None);
        assert_eq!(resolve(&[inside.clone(), outside], 6), Some(60));
        assert_eq!(resolve(&[inside], 60), None);
    }
}
