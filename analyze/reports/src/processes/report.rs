//! The report.

use std::cmp::Reverse;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;

use crate::processes::ProcessPartial;
use crate::processes::life::{Life, Named, NamedBy};
use crate::processes::lists::lists;
use crate::processes::tree::{Node, Place, ProcessKey, Threads, tree};
use tracebraid_follow::{Head, Input, KernelReport, Selection, Thread, ThreadKey, nanoseconds};
use tracebraid_tables::Lists;

/// The tree of processes. Times in nanoseconds, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessesReport {
    /// The range and the machines.
    #[serde(flatten)]
    pub head: Head,
    /// All together.
    pub total: ProcessTotal,
    /// Each before those that it made.
    pub processes: Vec<ProcessRow>,
    /// Their lives, as far as they are asked for.
    #[serde(flatten)]
    pub lists: Lists,
}

/// All processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessTotal {
    /// Number of processes, whether or not they are listed.
    pub processes: u64,
    /// Number of their threads.
    pub threads: u64,
    /// Time on CPUs.
    pub active_ns: u64,
    /// System calls that ended in the range.
    pub syscalls: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Ends of system calls of which it is not known who made them.
    pub unknown_thread: u64,
}

/// A process. What begins with `tree_` is of it and all that it made, and that these made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessRow {
    /// Names the row, as an id may be that of several processes one after the other.
    pub id: u64,
    /// The row of the process that made it.
    pub parent: Option<u64>,
    /// How many processes lead to it.
    pub depth: u32,
    /// Index of the trace.
    pub trace: u32,
    /// Its first thread.
    pub tid: i32,
    /// The same, if the trace tells that it is a process; `None` for a thread whose process is not known.
    pub pid: Option<i32>,
    /// Its last known name.
    pub name: Option<String>,
    /// Process that made it, if the trace tells; 0 is the kernel.
    pub parent_pid: Option<i32>,
    /// When it was made, if that was recorded.
    #[serde(serialize_with = "nanoseconds", rename = "begin_ns")]
    pub begin: Option<Timestamp>,
    /// When the last of its threads ended, if that was recorded.
    #[serde(serialize_with = "nanoseconds", rename = "end_ns")]
    pub end: Option<Timestamp>,
    /// The names that its first thread was given, and when.
    pub names: Vec<ProcessName>,
    /// Number of its threads that were seen.
    pub threads: u64,
    /// Its time on CPUs.
    pub active_ns: u64,
    /// The same of the tree.
    pub tree_active_ns: u64,
    /// Its system calls that ended in the range.
    pub syscalls: u64,
    /// The same of the tree.
    pub tree_syscalls: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// The same of the tree.
    pub tree_read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// The same of the tree.
    pub tree_written_bytes: u64,
}

/// A name that a process was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessName {
    /// When.
    #[serde(serialize_with = "nanoseconds", rename = "time_ns")]
    pub time: Option<Timestamp>,
    /// The name.
    pub name: String,
    /// By what.
    pub by: NamedBy,
}

impl KernelReport for ProcessesReport {
    fn head(&self) -> &Head {
        &self.head
    }

    fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Keeps those with the most CPU time of the tree. Whatever is kept, its parent is: that has as
    /// much at least, and comes before.
    fn truncate(&mut self, rows: usize) {
        let mut best: Vec<usize> = (0..self.processes.len()).collect();
        best.sort_by_key(|&at| (Reverse(self.processes[at].tree_active_ns), at));
        best.truncate(rows);
        best.sort_unstable();
        let kept = best.into_iter().map(|at| self.processes[at].clone());
        self.processes = kept.collect();
        self.lists.truncate(rows);
    }
}

impl ProcessRow {
    /// The process: its first thread stands for it.
    pub(super) fn thread(&self) -> Thread {
        Thread {
            trace: self.trace,
            tid: Some(self.tid),
            pid: self.pid,
            name: self.name.clone(),
        }
    }

    /// How long it lived in nanoseconds, if its begin and its end were recorded.
    pub(super) fn life(&self) -> Option<u64> {
        let (begin, end) = (self.begin?.0, self.end?.0);
        (begin <= end).then(|| end.abs_diff(begin))
    }

    /// True if it is asked for.
    pub(super) fn is_chosen(&self, selection: &Selection) -> bool {
        selection.threads.shows(&self.thread())
    }
}

pub(super) fn report(selection: &Selection, input: &Input, partial: ProcessPartial) -> ProcessesReport {
    let unknown_thread = partial.nobodys;
    let mut threads = Threads::default();
    for (key, lives) in partial.machine.lives.entries() {
        let key = Some(key).filter(|key| key.tid > 0);
        if let Some(key) = key {
            threads.add(key, lives.all(), partial.people.thread(key).pid);
        }
    }
    let nodes = threads.processes();
    let head = input.head();
    let mut total = ProcessTotal {
        processes: nodes.len() as u64,
        unknown_thread,
        ..ProcessTotal::default()
    };
    for node in nodes.values() {
        total.threads += node.threads;
        total.active_ns += node.own.active;
        total.syscalls += node.own.calls;
        total.read_bytes += node.own.read;
        total.written_bytes += node.own.written;
    }
    let places = tree(&nodes);
    let rows: Vec<ProcessRow> = places
        .iter()
        .enumerate()
        .filter_map(|(id, place)| Some(row(&partial, id, place, nodes.get(&place.key)?)))
        .collect();
    ProcessesReport {
        total,
        lists: lists(selection, &rows),
        processes: shown(selection, &head, rows),
        head,
    }
}

fn row(partial: &ProcessPartial, id: usize, place: &Place, node: &Node<'_>) -> ProcessRow {
    let ProcessKey { trace, id: tid, .. } = place.key;
    let life = node.first;
    let (own, whole) = (node.own, place.whole);
    ProcessRow {
        id: id as u64,
        parent: place.parent.map(|parent| parent as u64),
        depth: place.depth,
        trace,
        tid,
        pid: node.is_process.then_some(tid),
        name: name(partial, ThreadKey { trace, tid }, node),
        parent_pid: node.parent_pid,
        begin: life.and_then(|life| life.begin).map(Timestamp),
        end: node.end.map(Timestamp),
        names: life.map(names).unwrap_or_default(),
        threads: node.threads,
        active_ns: own.active,
        tree_active_ns: whole.active,
        syscalls: own.calls,
        tree_syscalls: whole.calls,
        read_bytes: own.read,
        tree_read_bytes: whole.read,
        written_bytes: own.written,
        tree_written_bytes: whole.written,
    }
}

fn names(life: &Life) -> Vec<ProcessName> {
    let name = |named: &Named| ProcessName {
        time: Some(Timestamp(named.time)),
        name: named.name.text(),
        by: named.by,
    };
    life.names.iter().map(name).collect()
}

/// The last known name: of the last life under an id, switches tell it, too.
fn name(partial: &ProcessPartial, key: ThreadKey, node: &Node<'_>) -> Option<String> {
    let given = || Some(node.first?.names.last()?.name.text());
    let known = || partial.people.thread(key).name;
    let name = if node.is_last || node.first.is_none() {
        known().or_else(given)
    } else {
        given()
    };
    name.filter(|name| !name.is_empty())
}

/// The processes that are there in the range and were chosen, and those that lead to them.
fn shown(selection: &Selection, head: &Head, rows: Vec<ProcessRow>) -> Vec<ProcessRow> {
    let is_there = |row: &ProcessRow| {
        row.begin
            .is_none_or(|begin| head.end.is_none_or(|end| begin <= end))
            && row
                .end
                .is_none_or(|end| head.begin.is_none_or(|begin| begin <= end))
    };
    let mut keep = vec![false; rows.len()];
    for (at, row) in rows.iter().enumerate().rev() {
        // Children come later, and have been asked.
        keep[at] |= is_there(row) && row.is_chosen(selection);
        if let Some(parent) = row.parent.filter(|_| keep[at]) {
            keep[parent as usize] = true;
        }
    }
    let rows = rows.into_iter().zip(keep);
    rows.filter_map(|(row, keep)| keep.then_some(row)).collect()
}
