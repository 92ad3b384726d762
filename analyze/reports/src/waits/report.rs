//! Builds the report from the sums.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_kernel_model::{Category, KernelEvent, Syscall};
use tracebraid_threads::WaitReason;

use crate::groups::{self, Groups, OfThreads};
use crate::waits::sums::{CallSums, CallTotals, Sums, Wait};
use crate::waits::wait_sums::WaitSums;
use crate::waits::{GROUPINGS, WaitPartial, WaitRules, chosen_reasons, tables};
use tracebraid_engine::parallel;
use tracebraid_follow::{By, Head, Input, People, Table, Thread, ThreadKey};
use tracebraid_statistics::{Bins, Distribution, Powers, Ranges, keep_first_by_key};
use tracebraid_tables::{Group, Report, Section, Total, Unit, View};

/// The row of a thread.
pub(super) struct Row {
    pub(super) thread: Thread,
    pub(super) calls: Vec<(Syscall, CallSums)>,
}

/// The threads, and the selection among them.
pub(super) struct Who<'a> {
    rules: &'a WaitRules,
    pub(super) people: &'a People,
}

impl Who<'_> {
    /// The thread, if it is selected.
    pub(super) fn shown(&self, thread: ThreadKey) -> Option<Thread> {
        let thread = self.thread(thread);
        self.rules
            .selection
            .threads
            .shows(&thread)
            .then_some(thread)
    }

    /// The thread, whether or not it is selected.
    pub(super) fn thread(&self, thread: ThreadKey) -> Thread {
        self.people.thread(thread)
    }
}

pub(super) fn report(rules: &WaitRules, input: &Input, partial: WaitPartial) -> Report {
    let WaitPartial {
        people,
        sums,
        machine,
        nobodys,
        ..
    } = partial;
    let who = Who {
        rules,
        people: &people,
    };
    let WaitSums {
        threads: sums,
        futexes,
        sockets,
        log,
    } = sums;
    if rules.ranges.is_some() {
        return frequencies(&who, input, &sums);
    }
    let knows = input
        .sources
        .has(|event| matches!(event, KernelEvent::Switch(_)));
    let counted = sums.entries().flat_map(|(_, sums)| sums.calls.iter());
    let mut notes = rules.options.calls.unmatched(counted.map(|(call, _)| call));
    let (rows, longest) = rows(&who, sums, knows);
    let by_call = by_call(&rows);
    let mut all = CallSums::default();
    by_call.values().for_each(|sums| all.merge(sums));
    notes.extend(chosen_reasons::unmatched(&rules.options.reasons, &all));
    let threads = tables::by_thread(&rows);
    let mut sections = vec![
        tables::reasons(&all),
        tables::of_calls(&by_call),
        tables::of_calls_and_reasons(&by_call),
        tables::of_threads(&threads),
        tables::of_threads_and_reasons(&threads),
        tables::of_processes(&who, &threads),
    ];
    sections.extend(tables::of_futexes(&who, &futexes));
    sections.push(tables::of_sockets(&who, &sockets));
    let head = input.head();
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        tables::WHY,
        |by| match by {
            By::Reason => by_reason(&all),
            By::Call => groups::most_first(by_call.iter().map(of_call).collect()),
            by => of_threads((&head, &people), &rows).groups(by),
        },
    ));
    let unfinished = machine.unfinished(rules, |thread| who.shown(thread).is_some());
    sections.extend(lists(&who, longest, log));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        head,
        totals: totals(&all, waits_of_runtimes(&by_call), unfinished, nobodys),
        sections,
        ranges: ranges(&all),
        notes,
        ..Report::default()
    }
}

/// The calls of the selected threads, and their longest waits. Without switches (`knows` is false),
/// wait reasons are unknown.
fn rows(who: &Who<'_>, sums: Table<Sums>, knows: bool) -> (Vec<Row>, Vec<Wait>) {
    let top = who.rules.options.views.top();
    let of_thread = |(thread, sums): (ThreadKey, Sums)| {
        let thread = who.shown(thread)?;
        let longest = sums.top.into_greatest(top);
        let mut calls: Vec<(Syscall, CallSums)> = sums.calls.into_entries().collect();
        if !knows {
            calls.iter_mut().for_each(|(_, sums)| sums.forget_parts());
        }
        calls.sort_by_key(|(call, _)| *call);
        Some((Row { thread, calls }, longest))
    };
    let (mut rows, mut longest) = (Vec::new(), Vec::new());
    for (row, waits) in parallel::map(sums.into_entries(), of_thread)
        .into_iter()
        .flatten()
    {
        longest.extend(waits);
        if !row.calls.is_empty() {
            rows.push(row);
        }
    }
    (rows, longest)
}

fn by_call<'a>(rows: &'a [Row]) -> BTreeMap<Syscall, CallSums> {
    let calls = |row: &'a Row| row.calls.iter().map(|(call, sums)| (*call, sums));
    parallel::sums_by_key(rows, calls, CallSums::merge)
}

/// Number of waits of user-level threads, which are in the form of system calls.
fn waits_of_runtimes(by_call: &BTreeMap<Syscall, CallSums>) -> u64 {
    let by_call = by_call.iter();
    let waits = by_call.filter(|(call, _)| call.category() == Category::UserLevel);
    waits.map(|(_, sums)| sums.totals().calls).sum()
}

fn totals(all: &CallSums, waits: u64, unfinished: u64, nobodys: u64) -> Vec<Total> {
    let CallTotals { calls, time, .. } = all.totals();
    let time = u64::try_from(time).unwrap_or(u64::MAX);
    let calls = calls.saturating_sub(waits);
    vec![
        Total::new("calls", "system calls", calls.into()).or_one("system call"),
        Total::new("ult_waits", "waits of user-level threads", waits.into())
            .or_one("wait of a user-level thread"),
        Total::new("time_ns", "of call time", time.into()).of(Unit::Duration),
        Total::new("unfinished", "unfinished", unfinished.into()),
        Total::new(
            "unknown_thread",
            "events of unknown threads",
            nobodys.into(),
        )
        .or_one("event of an unknown thread"),
    ]
}

/// The longest waits, and the log.
fn lists(who: &Who<'_>, mut longest: Vec<Wait>, mut log: Vec<Wait>) -> Vec<Section> {
    let top = who.rules.options.views.top();
    // Of waits of a thread with equal start and duration, the later ones come first.
    let order = |wait: &Wait| {
        (
            Reverse(wait.duration),
            wait.begin,
            wait.thread,
            Reverse(*wait),
        )
    };
    keep_first_by_key(&mut longest, top, order);
    log.retain(|wait| who.shown(wait.thread).is_some());
    log.sort_by_key(|wait| (wait.end(), wait.thread, wait.begin));
    vec![
        tables::list(who, "longest", "Longest waits", View::Top, &longest),
        tables::list(who, "log", "Waits", View::Log, &log),
    ]
}

fn ranges(all: &CallSums) -> Ranges {
    let range = |(why, part): (WaitReason, Cow<'_, Distribution>)| {
        let summary = part.summary();
        Some((why.name().to_owned(), (summary.min()?, summary.max()?)))
    };
    all.parts().into_iter().filter_map(range).collect()
}

fn by_reason(all: &CallSums) -> Groups {
    let group = |(why, part): (WaitReason, Cow<'_, Distribution>)| {
        (why.name().to_owned().into(), part.powers())
    };
    let groups: Groups = all.parts().into_iter().map(group).collect();
    let has_any = |(_, powers): &(Group, Powers)| powers.count() > 0;
    groups.into_iter().filter(has_any).collect()
}

fn of_call((call, sums): (&Syscall, &CallSums)) -> (Group, Powers) {
    (call.user_name().to_owned().into(), sums.powers())
}

fn of_threads<'a>((head, people): (&'a Head, &'a People), rows: &[Row]) -> OfThreads<'a> {
    let of_thread = |row: &Row| {
        let mut sum = Powers::default();
        (row.calls.iter()).for_each(|(_, sums)| sum.merge(&sums.powers()));
        (row.thread.clone(), sum)
    };
    let threads = parallel::map(rows.iter().collect(), of_thread);
    OfThreads {
        head,
        people,
        threads,
    }
}

/// The report of the second pass: histograms by wait reason.
fn frequencies(who: &Who<'_>, input: &Input, sums: &Table<Sums>) -> Report {
    let mut all = vec![Bins::default(); WaitReason::ALL.len()];
    let shown = sums
        .entries()
        .filter(|(thread, _)| who.shown(*thread).is_some());
    for (own, bins) in shown.flat_map(|(_, sums)| sums.bins.iter().enumerate()) {
        all[own].merge(bins);
    }
    let ranges = who.rules.ranges.iter().flatten();
    let groups = WaitReason::ALL.into_iter().zip(ranges).zip(&all);
    let groups =
        groups.filter_map(|((why, range), bins)| Some((why.name().to_owned(), (*range)?, bins)));
    Report {
        head: input.head(),
        sections: vec![tracebraid_tables::frequencies(
            tables::WHY,
            groups.collect(),
        )],
        ..Report::default()
    }
}
