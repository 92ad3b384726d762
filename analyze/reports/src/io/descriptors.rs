//! Which process has which descriptors, and what each of them was when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::FdType;

use crate::io::call::NO_FD;
use crate::io::change::Change;
use crate::kernel::{Table, ThreadKey};

/// What a descriptor was from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Since {
    time: i64,
    kind: FdType,
    cloexec: bool,
}

/// The descriptors of a process, each with its history.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Process {
    fds: BTreeMap<i32, Vec<Since>>,
    /// Other threads that are known to live.
    others: u32,
}

/// Descriptors of all processes. Changes must be told in the order of time.
///
/// A change at a time holds for calls that begin at that time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Descriptors {
    processes: Table<Process>,
    /// Processes of threads, with their history; who is not in it is alone in its process.
    members: Table<Vec<(i64, i32)>>,
    /// Processes by trace and address of their table, in the state dump.
    tables: BTreeMap<u32, BTreeMap<i64, i32>>,
    /// Entries of histories, and how many there were after the last forgetting.
    entries: usize,
    kept: usize,
}

/// What is looked up, and up to when it stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) kind: FdType,
    /// It may be another from this time on.
    pub(super) until: Option<i64>,
}

impl Descriptors {
    /// What a thread's descriptor was at a time.
    pub(super) fn kind(&self, thread: ThreadKey, fd: i32, time: i64) -> Answer {
        let (process, moves) = self.process_at(thread, time);
        let history = self
            .processes
            .find(process)
            .and_then(|process| process.fds.get(&fd));
        let history = history.map(Vec::as_slice).unwrap_or_default();
        let after = history.partition_point(|since| since.time <= time);
        let kind = after
            .checked_sub(1)
            .and_then(|at| history.get(at))
            .map_or(FdType::Unknown, |since| since.kind);
        let changes = history.get(after).map(|since| since.time);
        Answer {
            kind,
            until: moves.into_iter().chain(changes).min(),
        }
    }

    fn process_at(&self, thread: ThreadKey, time: i64) -> (ThreadKey, Option<i64>) {
        let Some(history) = self.members.find(thread) else {
            return (thread, None);
        };
        let after = history.partition_point(|(since, _)| *since <= time);
        let tid = after
            .checked_sub(1)
            .and_then(|at| history.get(at))
            .map_or(thread.tid, |(_, pid)| *pid);
        (thread.with(tid), history.get(after).map(|(since, _)| *since))
    }

    /// The process of a thread now.
    fn process_of(&self, thread: ThreadKey) -> ThreadKey {
        let last = self.members.find(thread).and_then(|history| history.last());
        thread.with(last.map_or(thread.tid, |(_, pid)| *pid))
    }

    /// What a process's descriptor is now.
    fn now(&self, process: ThreadKey, fd: i32) -> (FdType, bool) {
        let history = self
            .processes
            .find(process)
            .and_then(|process| process.fds.get(&fd));
        history
            .and_then(|history| history.last())
            .map_or((FdType::Unknown, false), |since| (since.kind, since.cloexec))
    }

    fn set(&mut self, process: ThreadKey, fd: i32, time: i64, kind: FdType, cloexec: bool) {
        if fd == NO_FD {
            return;
        }
        let history = self.processes.get(process).fds.entry(fd).or_default();
        match history.last() {
            Some(last) if (last.kind, last.cloexec) == (kind, cloexec) => return,
            None if (kind, cloexec) == (FdType::Unknown, false) => return,
            _ => {}
        }
        history.push(Since { time, kind, cloexec });
        self.entries += 1;
    }

    /// A thread changed its process's descriptors.
    pub(super) fn change(&mut self, thread: ThreadKey, time: i64, change: Change) {
        let process = self.process_of(thread);
        match change {
            Change::Opened { fd, kind, cloexec } => self.set(process, fd, time, kind, cloexec),
            Change::Pair {
                fds: (first, second),
                kind,
                cloexec,
            } => {
                self.set(process, first, time, kind, cloexec);
                self.set(process, second, time, kind, cloexec);
            }
            Change::Accepted {
                fd,
                from,
                kind,
                cloexec,
            } => {
                let kind = kind.unwrap_or_else(|| match self.now(process, from).0 {
                    FdType::Unknown => FdType::Socket,
                    kind => kind,
                });
                self.set(process, fd, time, kind, cloexec);
            }
            Change::Duplicated { from, to, cloexec } => {
                let kind = self.now(process, from).0;
                self.set(process, to, time, kind, cloexec);
            }
            Change::CloseOnExec { fd, cloexec } => {
                let kind = self.now(process, fd).0;
                self.set(process, fd, time, kind, cloexec);
            }
            Change::Closed { fd } => self.set(process, fd, time, FdType::Unknown, false),
            Change::Range {
                first,
                last,
                only_flag,
            } => {
                for fd in self.fds(process) {
                    if (first..=last).contains(&i64::from(fd)) {
                        let kind = if only_flag {
                            self.now(process, fd).0
                        } else {
                            FdType::Unknown
                        };
                        self.set(process, fd, time, kind, only_flag);
                    }
                }
            }
        }
    }

    fn fds(&self, process: ThreadKey) -> Vec<i32> {
        self.processes
            .find(process)
            .map(|process| process.fds.keys().copied().collect())
            .unwrap_or_default()
    }

    /// A process executes a program.
    pub(super) fn exec(&mut self, thread: ThreadKey, time: i64) {
        let process = self.process_of(thread);
        for fd in self.fds(process) {
            if self.now(process, fd).1 {
                self.set(process, fd, time, FdType::Unknown, false);
            }
        }
    }

    /// A thread is made. Without its process it is taken for a process of its own.
    pub(super) fn fork(
        &mut self,
        parent: ThreadKey,
        time: i64,
        child: i32,
        child_pid: Option<i32>,
        parent_pid: Option<i32>,
    ) {
        if let Some(pid) = parent_pid {
            self.member(parent, time, pid);
        }
        let child_key = parent.with(child);
        match child_pid.filter(|&pid| pid != child) {
            Some(pid) => {
                self.put_member(child_key, time, pid);
                self.processes.get(parent.with(pid)).others += 1;
            }
            None => {
                let from = self.process_of(parent);
                self.put_member(child_key, time, child);
                for fd in self.fds(child_key) {
                    self.set(child_key, fd, time, FdType::Unknown, false);
                }
                for fd in self.fds(from) {
                    let (kind, cloexec) = self.now(from, fd);
                    self.set(child_key, fd, time, kind, cloexec);
                }
                self.processes.get(child_key).others = 0;
            }
        }
    }

    /// A thread ends. With its last thread a process closes everything.
    pub(super) fn exit(&mut self, thread: ThreadKey, time: i64) {
        let process = self.process_of(thread);
        if self.processes.find(process).is_none() {
            return;
        }
        let others = &mut self.processes.get(process).others;
        if *others > 0 {
            *others -= 1;
            return;
        }
        for fd in self.fds(process) {
            self.set(process, fd, time, FdType::Unknown, false);
        }
    }

    fn put_member(&mut self, thread: ThreadKey, time: i64, pid: i32) {
        if self.process_of(thread).tid != pid {
            self.members.get(thread).push((time, pid));
            self.entries += 1;
        }
    }

    /// A thread turns out to belong to a process; what it seemed to have alone is the process's.
    pub(super) fn member(&mut self, thread: ThreadKey, time: i64, pid: i32) {
        if self.process_of(thread).tid == pid {
            return;
        }
        let own = self.process_of(thread) == thread;
        self.put_member(thread, time, pid);
        let process = thread.with(pid);
        if own {
            for fd in self.fds(thread) {
                let (kind, cloexec) = self.now(thread, fd);
                if self.now(process, fd).0 == FdType::Unknown {
                    self.set(process, fd, time, kind, cloexec);
                }
                self.set(thread, fd, time, FdType::Unknown, false);
            }
            self.processes.get(process).others += 1;
        }
    }

    /// State dump: a process's table is at that address.
    pub(super) fn table(&mut self, thread: ThreadKey, pid: i32, address: i64) {
        self.tables.entry(thread.trace).or_default().insert(address, pid);
    }

    /// State dump: a process, or whoever has the table, has a descriptor. What is known of it
    /// already was seen when it was opened, and is better.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn holds(
        &mut self,
        trace: u32,
        time: i64,
        pid: Option<i32>,
        table: Option<i64>,
        fd: i32,
        kind: FdType,
        cloexec: bool,
    ) {
        let by_table = || self.tables.get(&trace)?.get(&table?).copied();
        let Some(pid) = pid.or_else(by_table) else { return };
        let process = self.process_of(ThreadKey { trace, tid: pid });
        if self.now(process, fd).0 == FdType::Unknown {
            self.set(process, fd, time, kind, cloexec);
        }
    }

    /// Forgets what was before a time for which nobody will ask any more, if that is worth it.
    pub(super) fn forget(&mut self, before: i64) {
        if self.entries < 2 * self.kept + 4096 {
            return;
        }
        self.entries = 0;
        for process in self.processes.values() {
            process.fds.retain(|_, history| {
                let after = history.partition_point(|since| since.time <= before);
                history.drain(..after.saturating_sub(1));
                let gone = |since: &Since| {
                    since.time <= before && (since.kind, since.cloexec) == (FdType::Unknown, false)
                };
                self.entries += history.len();
                !matches!(history.as_slice(), [only] if gone(only))
            });
        }
        self.processes
            .retain(|process| !process.fds.is_empty() || process.others > 0);
        for history in self.members.values() {
            let after = history.partition_point(|(since, _)| *since <= before);
            history.drain(..after.saturating_sub(1));
            self.entries += history.len();
        }
        self.kept = self.entries;
    }
}
