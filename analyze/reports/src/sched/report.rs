//! Builds the report from the sums.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_engine::parallel;
use tracebraid_threads::Waker;

use crate::groups::{self, Groups, OfThreads};
use crate::sched::freq::{Bounds, Group};
use crate::sched::stats::{Counts, Latency, REASONS};
use crate::sched::{GROUPINGS, SchedPartial, SchedRules, tables};
use tracebraid_follow::{By, Head, Input, Interrupt, People, Thread, ThreadKey};
use tracebraid_statistics::{Distribution, Ranges, keep_first_by_key};
use tracebraid_tables::{Report, Total, View};

/// A selected thread.
pub(super) struct Row<'a> {
    pub(super) key: ThreadKey,
    pub(super) thread: Thread,
    pub(super) counts: &'a Counts,
    pub(super) latencies: Distribution,
}

pub(super) fn report(rules: &SchedRules, input: &Input, mut partial: SchedPartial) -> Report {
    let queues = tables::queues(rules, input, &mut partial);
    let log = std::mem::take(&mut partial.sums.log);
    let rows = rows(rules, &partial);
    let all = sum(&rows);
    let by_priority = by_priority(&rows);
    let mut sections = vec![
        tables::latency(&all),
        tables::threads(&rows),
        tables::priorities(&by_priority),
        tables::wakers(&partial, &rows),
        tables::reasons(&rows),
        tables::thread_switches(&rows),
        queues,
        tables::thread_waits(&rows),
        tables::preempted_by(&partial, &rows),
        tables::thread_migrations(&rows),
        tables::migrations(&partial),
        tables::list(
            "longest",
            "Longest latencies",
            View::Top,
            &partial,
            &longest(rules, &rows),
        ),
    ];
    if rules.options.views.shows(View::Log) {
        let log = in_order(&rows, log);
        sections.push(tables::list("log", "Latencies", View::Log, &partial, &log));
    }
    let head = input.head();
    let groups = |by| groups((&head, &partial.people), &rows, &by_priority, by);
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        groups::OF,
        groups,
    ));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        head,
        totals: totals(&rows, &all, pending(rules, &partial)),
        sections,
        ranges: ranges(&rows, &by_priority, &all),
        notes: notes(rules, &partial),
        ..Report::default()
    }
}

/// A warning if no latency has one of the selected priorities.
fn notes(rules: &SchedRules, partial: &SchedPartial) -> Vec<String> {
    let mut threads = partial.sums.counts.entries();
    let is_met = rules.options.priorities.is_empty()
        || threads.any(|(_, counts)| !counts.priorities.is_empty());
    let note =
        "--prio matches no selected latency; `tracebraid cpu` shows the priorities of threads";
    (!is_met).then(|| note.to_owned()).into_iter().collect()
}

/// The selected threads, in no order.
fn rows<'a>(rules: &SchedRules, partial: &'a SchedPartial) -> Vec<Row<'a>> {
    let row = |(key, counts): (ThreadKey, &'a Counts)| Row {
        key,
        thread: partial.people.thread(key),
        counts,
        latencies: counts.latencies(),
    };
    let mut rows = parallel::map(partial.sums.counts.entries().collect(), row);
    rows.retain(|row| rules.selection.threads.shows(&row.thread));
    rows
}

fn sum(rows: &[Row<'_>]) -> Distribution {
    let of_piece = |rows: &[Row<'_>]| {
        let mut all = Distribution::default();
        rows.iter().for_each(|row| all.merge(&row.latencies));
        all
    };
    let mut all = Distribution::default();
    let pieces = parallel::map_pieces(rows, of_piece);
    pieces.iter().for_each(|piece| all.merge(piece));
    all
}

fn by_priority<'a>(rows: &'a [Row<'_>]) -> BTreeMap<Option<i32>, Distribution> {
    let priorities = |row: &'a Row<'_>| {
        let priorities = row.counts.priorities.iter();
        priorities.map(|(priority, latencies)| (*priority, latencies))
    };
    parallel::sums_by_key(rows, priorities, Distribution::merge)
}

/// Number of selected threads that were woken and have not run.
fn pending(rules: &SchedRules, partial: &SchedPartial) -> u64 {
    let woken = partial.machine.threads.entries();
    let woken = woken.filter(|(_, life)| life.woken.is_some());
    let threads = woken.map(|(key, _)| partial.people.thread(key));
    threads
        .filter(|thread| rules.selection.threads.shows(thread))
        .count() as u64
}

fn totals(rows: &[Row<'_>], all: &Distribution, pending: u64) -> Vec<Total> {
    let switches = |which: fn(usize) -> bool| -> u64 {
        let counts = rows
            .iter()
            .flat_map(|row| row.counts.switches.iter().enumerate());
        counts
            .filter(|(reason, _)| which(*reason))
            .map(|(_, count)| count)
            .sum()
    };
    let migrations: u64 = rows.iter().map(|row| row.counts.migrations).sum();
    let total = |key, title, one, value: u64| Total::new(key, title, value.into()).or_one(one);
    vec![
        total(
            "latencies",
            "wake-ups with a switch",
            "wake-up with a switch",
            all.summary().count(),
        ),
        total("pending", "wake-ups pending", "wake-up pending", pending),
        total(
            "switches",
            "switches from threads",
            "switch from a thread",
            switches(|reason| reason < REASONS),
        ),
        total(
            "voluntary",
            "of them voluntary",
            "of them voluntary",
            switches(tables::is_voluntary),
        ),
        total(
            "involuntary",
            "involuntary",
            "involuntary",
            switches(tables::is_involuntary),
        ),
        total("migrations", "migrations", "migration", migrations),
    ]
}

fn longest(rules: &SchedRules, rows: &[Row<'_>]) -> Vec<Latency> {
    let most = rules.options.views.top();
    let of_piece = |rows: &[Row<'_>]| {
        let of_each = |row: &Row<'_>| row.counts.top.clone().into_greatest(most);
        rows.iter().flat_map(of_each).collect::<Vec<_>>()
    };
    let mut longest = parallel::map_pieces(rows, of_piece).concat();
    // Of equal start and duration, the later ones come first.
    let order = |latency: &Latency| {
        let place = (Reverse(latency.duration), latency.begin, latency.thread);
        (place, Reverse(*latency))
    };
    keep_first_by_key(&mut longest, most, order);
    longest
}

fn in_order(rows: &[Row<'_>], mut log: Vec<Latency>) -> Vec<Latency> {
    let shown: std::collections::HashSet<ThreadKey> = rows.iter().map(|row| row.key).collect();
    log.retain(|latency| shown.contains(&latency.thread));
    log.sort_by_key(|latency| (latency.end(), latency.cpu, latency.thread, latency.begin));
    log
}

/// The context of a waker, and its thread.
pub(super) fn waker(
    partial: &SchedPartial,
    trace: u32,
    by: Waker,
) -> (&'static str, Option<Thread>) {
    let context = |name: String| {
        let name = Some(name);
        Some(Thread {
            trace,
            name,
            ..Thread::default()
        })
    };
    match by {
        Waker::Thread(0) => {
            let mut idle = context("idle".to_owned());
            idle.iter_mut().for_each(|idle| idle.tid = Some(0));
            ("idle", idle)
        }
        Waker::Thread(tid) => (
            "thread",
            Some(partial.people.thread(ThreadKey { trace, tid })),
        ),
        Waker::Interrupt(interrupt @ Interrupt::Softirq(_)) => {
            ("softirq", context(interrupt.label()))
        }
        Waker::Interrupt(interrupt) => ("irq", context(interrupt.label())),
        Waker::Timer(kind) => ("timer", context(kind.name().to_owned())),
        Waker::Unknown => ("unknown", None),
    }
}

fn ranges(
    rows: &[Row<'_>],
    by_priority: &BTreeMap<Option<i32>, Distribution>,
    all: &Distribution,
) -> Ranges {
    let range = |group: Group, latencies: &Distribution| {
        let summary = latencies.summary();
        Some((group.key(), (summary.min()?, summary.max()?)))
    };
    let threads = rows.iter().filter_map(|row| {
        let key = ThreadKey {
            trace: row.thread.trace,
            tid: row.thread.tid?,
        };
        range(Group::Thread(key), &row.latencies)
    });
    let priorities = by_priority
        .iter()
        .filter_map(|(priority, latencies)| range(Group::Priority((*priority)?), latencies));
    threads
        .chain(priorities)
        .chain(range(Group::All, all))
        .collect()
}

fn groups(
    (head, people): (&Head, &People),
    rows: &[Row<'_>],
    by_priority: &BTreeMap<Option<i32>, Distribution>,
    by: By,
) -> Groups {
    if by == By::Priority {
        let group = |(priority, latencies): (&Option<i32>, &Distribution)| {
            Some((
                format!("priority {}", (*priority)?).into(),
                latencies.powers(),
            ))
        };
        return by_priority.iter().filter_map(group).collect();
    }
    let of_row = |row: &Row<'_>| (row.thread.clone(), row.latencies.powers());
    let threads = parallel::map(rows.iter().collect(), of_row);
    OfThreads {
        head,
        people,
        threads,
    }
    .groups(by)
}

/// The report of the second pass: histograms of latencies.
pub(super) fn frequencies(input: &Input, partial: &SchedPartial, bounds: &Bounds) -> Report {
    let head = input.head();
    let name = |group| match group {
        Group::All => "all".to_owned().into(),
        Group::Thread(key) => groups::of_thread(&head, &partial.people.thread(key)),
        Group::Priority(priority) => format!("priority {priority}").into(),
    };
    let groups = partial.sums.freq.groups(bounds);
    let groups = groups
        .map(|(group, range, bins)| (name(group), range, bins))
        .collect();
    let section = tracebraid_tables::frequencies(groups::OF, groups);
    Report {
        head,
        sections: vec![section],
        ..Report::default()
    }
}
