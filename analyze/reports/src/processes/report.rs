//! Builds the report from the lives.

use crate::processes::ProcessRules;
use tracebraid_ctf::clock::Timestamp;

use crate::processes::ProcessPartial;
use crate::processes::life::{Life, Named, NamedBy, Sums};
use crate::processes::lists::lists;
use crate::processes::sections;
use crate::processes::tree::{Node, ProcessKey, Threads, TreePosition, known, tree};
use tracebraid_engine::parallel;
use tracebraid_follow::{Head, Input, Selection, Thread, ThreadKey};
use tracebraid_tables::{Report, View, nothing_to_list};

/// Sums over all processes. Times in nanoseconds, sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessTotal {
    /// Number of processes, whether or not they are listed.
    pub(super) processes: u64,
    pub(super) threads: u64,
    pub(super) used: Sums,
    /// Ends of system calls of unknown threads.
    pub(super) unknown_thread: u64,
}

/// The row of a process.
#[derive(Clone, Debug)]
pub(super) struct ProcessRow {
    /// Unique in the report, since several processes in succession may have the same process id.
    pub(super) id: u64,
    /// The row of its creator.
    pub(super) parent: Option<u64>,
    /// Number of ancestors.
    pub(super) depth: u32,
    /// Index of the trace.
    pub(super) trace: u32,
    /// First thread of the process.
    pub(super) tid: i32,
    /// The process id, if the trace records that this is a process; `None` for a thread whose
    /// process is unknown.
    pub(super) pid: Option<i32>,
    /// Last known name of the process.
    pub(super) name: Option<String>,
    /// Process id of its creator, if recorded; 0 is the kernel.
    pub(super) parent_pid: Option<i32>,
    /// Time of creation, if recorded.
    pub(super) begin: Option<Timestamp>,
    /// Time of the end of its last thread, if recorded.
    pub(super) end: Option<Timestamp>,
    /// Names of its first thread, in the order of time.
    pub(super) names: Vec<ProcessName>,
    /// Number of its threads with events in the trace.
    pub(super) threads: u64,
    pub(super) used: Sums,
    /// Sums of the process and all its descendants.
    pub(super) tree: Sums,
}

/// A name of a process.
#[derive(Clone, Debug)]
pub(super) struct ProcessName {
    pub(super) time: Timestamp,
    pub(super) name: String,
    pub(super) by: NamedBy,
}

impl ProcessRow {
    /// The process, represented by its first thread.
    pub(super) fn thread(&self) -> Thread {
        Thread {
            trace: self.trace,
            tid: Some(self.tid),
            pid: self.pid,
            name: self.name.clone(),
        }
    }

    /// Lifetime in nanoseconds, if start and end were recorded.
    pub(super) fn life(&self) -> Option<u64> {
        let (begin, end) = (self.begin?.0, self.end?.0);
        (begin <= end).then(|| end.abs_diff(begin))
    }

    /// True if the process is selected.
    pub(super) fn is_chosen(&self, selection: &Selection) -> bool {
        selection.threads.shows(&self.thread())
    }
}

pub(super) fn report(rules: &ProcessRules, input: &Input, mut partial: ProcessPartial) -> Report {
    let open = std::mem::take(&mut partial.machine.open).into_threads();
    let report = report_of(rules, input, &partial);
    // Each thread has memory of its own, which is freed in parallel.
    parallel::map(open, drop);
    parallel::map(partial.machine.lives.into_entries(), drop);
    partial.garbage.free();
    report
}

fn report_of(rules: &ProcessRules, input: &Input, partial: &ProcessPartial) -> Report {
    let unknown_thread = partial.nobodys;
    let threads = partial
        .machine
        .lives
        .entries()
        .filter(|(key, _)| key.tid > 0);
    let threads = parallel::map(threads.collect(), |(key, lives)| {
        (key, known(lives.all(), partial.people.thread(key).pid))
    });
    let threads = Threads::new(threads);
    let nodes = threads.processes();
    let head = input.head();
    let mut total = ProcessTotal {
        processes: nodes.len() as u64,
        unknown_thread,
        ..ProcessTotal::default()
    };
    for node in nodes.values() {
        total.threads += node.threads;
        total.used.add(&node.own);
    }
    let places = tree(&nodes);
    let of_place =
        |(id, place): (usize, &TreePosition)| Some(row(partial, id, place, nodes.get(&place.key)?));
    let rows = parallel::map(places.iter().enumerate().collect(), of_place);
    let rows: Vec<ProcessRow> = rows.into_iter().flatten().collect();
    let lists = lists(rules, &rows);
    let shown = shown(&rules.selection, &head, rows);
    let is_chosen = !shown.is_empty();
    let mut report = Report {
        is_chosen: Some(is_chosen),
        notes: nothing_to_list(&lists)
            .filter(|_| is_chosen)
            .into_iter()
            .collect(),
        ..Report::default()
    };
    if rules.options.views.shows(View::Stats) {
        report.summary = vec![sections::summary(&head, &total)];
        report.totals = sections::totals(&total);
        report.sections = vec![sections::processes(&head, &shown, &lists)];
    } else {
        report.totals = sections::few_totals(&total);
    }
    report.sections.extend(lists);
    report.head = head;
    report
}

fn row(partial: &ProcessPartial, id: usize, place: &TreePosition, node: &Node<'_>) -> ProcessRow {
    let ProcessKey { trace, id: tid, .. } = place.key;
    let life = node.first;
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
        used: node.own,
        tree: place.whole,
    }
}

fn names(life: &Life) -> Vec<ProcessName> {
    let name = |named: &Named| ProcessName {
        time: Timestamp(named.time),
        name: named.name.text(),
        by: named.by,
    };
    life.names.iter().map(name).collect()
}

/// The last known name. Switches also contain the name of the last life under an id.
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

/// The selected processes that exist in the range, and their ancestors.
fn shown(selection: &Selection, head: &Head, rows: Vec<ProcessRow>) -> Vec<ProcessRow> {
    let is_there = |row: &ProcessRow| {
        row.begin
            .is_none_or(|begin| head.end.is_none_or(|end| begin <= end))
            && row
                .end
                .is_none_or(|end| head.begin.is_none_or(|begin| begin <= end))
    };
    let is_asked_for = |row: &ProcessRow| is_there(row) && row.is_chosen(selection);
    let mut keep = parallel::map(rows.iter().collect(), is_asked_for);
    for (at, row) in rows.iter().enumerate().rev() {
        // Children follow their parents, so they are processed first here.
        if let Some(parent) = row.parent.filter(|_| keep[at]) {
            keep[parent as usize] = true;
        }
    }
    let rows = rows.into_iter().zip(keep);
    rows.filter_map(|(row, keep)| keep.then_some(row)).collect()
}
