//! Tables of stretches.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;

use crate::cpu::GROUPINGS;
use crate::cpu::report::CpuThread;
use crate::cpu::rules::{Bounds, Rules};
use crate::cpu::state::CpuPartial;
use crate::cpu::stretches::{Cut, Ran, Stretches};
use crate::groups::{self, Groups, OfThreads};
use tracebraid_follow::{By, CpuKey, Head, People, Thread, ThreadKey};
use tracebraid_statistics::{Bins, Distribution, Ranges};
use tracebraid_tables::{
    Column, Forms, Section, Unit, Value, View, distribution_columns, distribution_values,
};

const THREAD: Column = Column::new("thread", "Thread", Unit::Thread);
const CPU: Column = Column::new("cpu", "CPU", Unit::Cpu);

/// A selected thread and its stretches.
struct Row<'a> {
    key: ThreadKey,
    thread: Arc<Thread>,
    stretches: &'a Stretches,
}

/// The requested tables of the given threads.
pub(super) fn lists(
    rules: &Rules,
    head: &Head,
    partial: &mut CpuPartial,
    threads: &[CpuThread],
) -> (Vec<Section>, Ranges) {
    let log = in_order(std::mem::take(&mut partial.log));
    let rows: Vec<Row<'_>> = threads.iter().filter_map(|row| of(partial, row)).collect();
    if let Some(bounds) = &rules.bounds {
        return (vec![frequencies(head, &rows, bounds)], Ranges::default());
    }
    let shown: BTreeMap<ThreadKey, &Arc<Thread>> =
        rows.iter().map(|row| (row.key, &row.thread)).collect();
    let mut sections = vec![
        by_cpu(rules, partial),
        by_thread(&rows),
        list(
            ("longest", "Longest running intervals"),
            View::Top,
            &shown,
            longest(rules, &rows),
        ),
        list(("log", "Running intervals"), View::Log, &shown, log),
    ];
    let groups = |by| groups((head, &partial.people), &rows, by);
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        groups::OF,
        groups,
    ));
    sections.retain(|section| rules.options.views.views.contains(&section.view));
    (sections, ranges(rules, &rows))
}

fn of<'a>(partial: &'a CpuPartial, row: &CpuThread) -> Option<Row<'a>> {
    let thread = &row.thread;
    let (trace, tid) = (thread.trace, thread.tid?);
    let key = ThreadKey { trace, tid };
    Some(Row {
        key,
        thread: Arc::new(thread.clone()),
        stretches: partial.usage.find(key)?.stretches.as_deref()?,
    })
}

/// Stretches of all threads, in total and by CPU.
fn by_cpu(rules: &Rules, partial: &CpuPartial) -> Section {
    let chosen = partial.cpus.iter().filter(|cpu| {
        let is_chosen = rules.selection.cpus.contains(cpu.key.cpu);
        is_chosen && cpu.lengths.summary().count() > 0
    });
    let mut all = Distribution::default();
    chosen.clone().for_each(|cpu| all.merge(&cpu.lengths));
    let row = |cpu: Option<CpuKey>, lengths: &Distribution| {
        let trace = cpu.map(|cpu| u64::from(cpu.trace)).into();
        let cpu = cpu.map(|cpu| u64::from(cpu.cpu)).into();
        let about = [trace, cpu].into_iter();
        about.chain(distribution_values(lengths)).collect()
    };
    let total = (all.summary().count() > 0).then(|| row(None, &all));
    let cpus = chosen.map(|cpu| row(Some(cpu.key), &cpu.lengths));
    let trace = Column::new("trace", "Trace", Unit::Id);
    let about = [trace.optional(), CPU.optional()].into_iter();
    let columns = about.chain(distribution_columns()).collect();
    let rows = total.into_iter().chain(cpus).collect();
    Section::new("stretches", "Running intervals", columns, rows)
        .short()
        .only(Forms::JSON.and(Forms::LAMI))
}

fn by_thread(rows: &[Row<'_>]) -> Section {
    let ran = rows
        .iter()
        .filter(|row| row.stretches.lengths.summary().count() > 0);
    let mut ran: Vec<&Row<'_>> = ran.collect();
    ran.sort_by_key(|row| (Reverse(row.stretches.lengths.summary().sum()), row.key));
    let row = |row: &Row<'_>| {
        let about = std::iter::once(row.thread.clone().into());
        about
            .chain(distribution_values(&row.stretches.lengths))
            .collect()
    };
    let columns = std::iter::once(THREAD)
        .chain(distribution_columns())
        .collect();
    let rows = ran.into_iter().map(row).collect();
    Section::new(
        "thread_stretches",
        "Running intervals by thread",
        columns,
        rows,
    )
    .of(View::Freq)
}

fn longest(rules: &Rules, rows: &[Row<'_>]) -> Vec<Ran> {
    let of_each = rows
        .iter()
        .flat_map(|row| row.stretches.top.clone().into_sorted(rules.top));
    let mut longest: Vec<Ran> = of_each.collect();
    longest.sort_by_key(|ran| (Reverse(ran.duration), ran.begin, ran.cpu));
    longest.truncate(rules.top);
    longest
}

/// Sorts stretches by end.
fn in_order(mut log: Vec<Ran>) -> Vec<Ran> {
    log.sort_unstable_by_key(|ran| (ran.end(), ran.cpu, ran.begin));
    log
}

/// A table with a row for each stretch of the shown threads.
fn list(
    (key, title): (&'static str, &str),
    view: View,
    shown: &BTreeMap<ThreadKey, &Arc<Thread>>,
    stretches: Vec<Ran>,
) -> Section {
    let row = |ran: Ran| {
        let thread = *shown.get(&ran.thread())?;
        let cut = match ran.cut {
            Cut::No => Value::None,
            Cut::Range => Value::text("range"),
            Cut::Loss => Value::text("loss"),
        };
        Some(vec![
            Timestamp(ran.begin).into(),
            Timestamp(ran.end()).into(),
            ran.duration.into(),
            u64::from(ran.cpu.cpu).into(),
            thread.clone().into(),
            cut,
        ])
    };
    let columns = vec![
        Column::new("begin_ns", "Begin", Unit::Time),
        Column::new("end_ns", "End", Unit::Time).left_out(1),
        Column::new("duration_ns", "Duration", Unit::Duration),
        CPU.left_out(3),
        THREAD,
        Column::new("cut_by", "Cut by", Unit::Text)
            .optional()
            .left_out(2),
    ];
    let rows = stretches.into_iter().filter_map(row).collect();
    Section::new(key, title, columns, rows).of(view)
}

/// Bounds of durations: of all shown threads, and of each of the first ones.
fn ranges(rules: &Rules, rows: &[Row<'_>]) -> Ranges {
    let mut all = Distribution::default();
    rows.iter()
        .for_each(|row| all.merge(&row.stretches.lengths));
    let range = |lengths: &Distribution| Some((lengths.summary().min()?, lengths.summary().max()?));
    let named = |row: &Row<'_>| Some((Bounds::name(row.key), range(&row.stretches.lengths)?));
    let threads = rows.iter().filter_map(named).take(rules.options.views.rows);
    let all = range(&all).map(|range| (Bounds::ALL.to_owned(), range));
    all.into_iter().chain(threads).collect()
}

fn groups((head, people): (&Head, &People), rows: &[Row<'_>], by: By) -> Groups {
    if by == By::Cpu {
        let cpus = rows.iter().flat_map(|row| &row.stretches.cpus);
        return groups::by_cpu(head, cpus);
    }
    let of_row = |row: &Row<'_>| ((*row.thread).clone(), row.stretches.lengths.powers());
    let threads = rows.iter().map(of_row).collect();
    OfThreads {
        head,
        people,
        threads,
    }
    .groups(by)
}

/// The table of the second pass: histograms of the durations of stretches.
fn frequencies(head: &Head, rows: &[Row<'_>], bounds: &Bounds) -> Section {
    let mut of_all = Bins::default();
    let freqs = rows.iter().filter_map(|row| row.stretches.freq.as_ref());
    freqs.for_each(|freq| of_all.merge(&freq.of_all));
    let all = bounds
        .all
        .map(|range| ("all".to_owned().into(), range, &of_all));
    let own = rows.iter().filter_map(|row| {
        let range = bounds.threads.get(&row.key)?;
        let group = groups::of_thread(head, &row.thread);
        Some((group, *range, &row.stretches.freq.as_ref()?.own))
    });
    tracebraid_tables::frequencies(groups::OF, all.into_iter().chain(own).collect())
}
