//! The report.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_kernel_model::{KernelEvent, Syscall};

use crate::kernel::{Input, Tasks, Thread};
use crate::report::{Report, Section, Total, Unit, View};
use crate::stats::{Bins, Ranges};
use crate::waits::machine::Machine;
use crate::waits::sums::{CallSums, Wait};
use crate::waits::why::Why;
use crate::waits::{WaitRules, tables};

/// What is shown of a thread's calls.
pub(super) struct Row {
    pub(super) thread: Thread,
    pub(super) calls: Vec<(Syscall, CallSums)>,
}

/// Who the threads are, and which of them are asked for.
pub(super) struct Who<'a> {
    rules: &'a WaitRules,
    pub(super) tasks: &'a Tasks<usize>,
}

impl Who<'_> {
    /// The thread at a place, if it is asked for.
    pub(super) fn shown(&self, place: u32) -> Option<Thread> {
        let thread = self.tasks.thread(place as usize);
        self.rules.selection.threads.shows(&thread).then_some(thread)
    }

    /// The thread at a place.
    pub(super) fn thread(&self, place: u32) -> Thread {
        self.tasks.thread(place as usize)
    }
}

pub(super) fn report(rules: &WaitRules, input: &Input, tasks: &Tasks<usize>, machine: Machine) -> Report {
    let who = Who { rules, tasks };
    if rules.ranges.is_some() {
        return frequencies(&who, input, &machine);
    }
    let knows = input.sources.has(|event| matches!(event, KernelEvent::Switch(_)));
    let counted = machine.sums.iter().flat_map(|sums| sums.calls());
    let notes = rules.selection.unmatched_calls(counted.map(|(call, _)| call));
    let rows = rows(&who, &machine, knows);
    let mut by_call: BTreeMap<Syscall, CallSums> = BTreeMap::new();
    let mut all = CallSums::default();
    for (call, sums) in rows.iter().flat_map(|row| &row.calls) {
        by_call.entry(*call).or_default().merge(sums);
        all.merge(sums);
    }
    let mut sections = vec![
        tables::reasons(&all),
        tables::of_calls(&by_call),
        tables::of_calls_and_reasons(&by_call),
        tables::of_threads(&rows),
        tables::of_threads_and_reasons(&rows),
        tables::of_processes(&who, &rows),
    ];
    sections.extend(tables::of_futexes(&who, &machine.futexes));
    sections.push(tables::of_sockets(&who, &machine.sockets));
    let unfinished = machine.unfinished(rules, |place| who.shown(place).is_some());
    let nobodys = machine.nobodys;
    sections.extend(lists(&who, machine));
    sections.retain(|section| rules.selection.shows(section.view));
    Report {
        head: input.head(),
        totals: totals(&all, unfinished, nobodys),
        sections,
        ranges: ranges(&all),
        notes,
    }
}

fn rows(who: &Who<'_>, machine: &Machine, knows: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, sums) in machine.sums.iter().enumerate() {
        let mut calls: Vec<_> = sums.calls().map(|(call, sums)| (call, sums.clone())).collect();
        if let Some(thread) = who.shown(place as u32).filter(|_| !calls.is_empty()) {
            if !knows {
                calls.iter_mut().for_each(|(_, sums)| sums.forget_parts());
            }
            calls.sort_by_key(|(call, _)| *call);
            rows.push(Row { thread, calls });
        }
    }
    rows
}

fn totals(all: &CallSums, unfinished: u64, nobodys: u64) -> Vec<Total> {
    let whole = all.whole();
    let time = u64::try_from(whole.summary().sum()).unwrap_or(u64::MAX);
    vec![
        Total::new("calls", "system calls", whole.summary().count().into()),
        Total::new("time_ns", "in them", time.into()).of(Unit::Duration),
        Total::new("unfinished", "not finished", unfinished.into()),
        Total::new("unknown_thread", "events of unknown threads", nobodys.into()),
    ]
}

/// The longest waits, and all.
fn lists(who: &Who<'_>, machine: Machine) -> Vec<Section> {
    let top = who.rules.selection.top();
    let mut longest: Vec<Wait> = (machine.sums.into_iter())
        .flat_map(|sums| sums.top.into_sorted(top))
        .filter(|wait| who.shown(wait.place).is_some())
        .collect();
    let key = |wait: &Wait| who.tasks.key(wait.place as usize);
    longest.sort_by_key(|wait| (Reverse(wait.duration), wait.begin, key(wait)));
    longest.truncate(top);
    let mut log = machine.log;
    log.retain(|wait| who.shown(wait.place).is_some());
    log.sort_by_key(|wait| (wait.end(), key(wait), wait.begin));
    vec![
        tables::list(who, "longest", "Longest waits", View::Top, &longest),
        tables::list(who, "log", "Waits", View::Log, &log),
    ]
}

fn ranges(all: &CallSums) -> Ranges {
    let range = |why: Why| {
        let part = all.part_of(why);
        let summary = part.summary();
        Some((why.name().to_owned(), (summary.min()?, summary.max()?)))
    };
    Why::ALL.into_iter().filter_map(range).collect()
}

/// The second pass's report: how often parts of each size occurred.
fn frequencies(who: &Who<'_>, input: &Input, machine: &Machine) -> Report {
    let mut all = vec![Bins::default(); Why::ALL.len()];
    let shown = machine.sums.iter().enumerate();
    let shown = shown.filter(|(place, _)| who.shown(*place as u32).is_some());
    for (own, bins) in shown.flat_map(|(_, sums)| sums.bins.iter().enumerate()) {
        all[own].merge(bins);
    }
    let ranges = who.rules.ranges.iter().flatten();
    let groups = Why::ALL.into_iter().zip(ranges).zip(&all);
    let groups = groups.filter_map(|((why, range), bins)| Some((why.name().to_owned(), (*range)?, bins)));
    Report {
        head: input.head(),
        sections: vec![crate::report::frequencies(tables::WHY, groups.collect())],
        ..Report::default()
    }
}
