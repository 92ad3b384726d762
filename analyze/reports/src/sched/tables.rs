//! The tables of the report.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_kernel_model::TaskState;

use crate::sched::life::Now;
use crate::sched::report::{Row, waker};
use crate::sched::stats::{ByCause, Counts, Latency, REASONS};
use crate::sched::{SchedPartial, SchedRules};
use tracebraid_engine::parallel;
use tracebraid_follow::{Input, Thread};
use tracebraid_statistics::{Distribution, Summary};
use tracebraid_tables::{
    Column, Section, Sentence, Unit, Value, View, distribution_columns, distribution_values,
};

const THREAD: Column = Column::new("thread", "Thread", Unit::Thread);
const PRIORITY: Column = Column::new("priority", "Prio", Unit::Id).optional();
const CONTEXT: Column = Column::new("waker_context", "From", Unit::Text);
const WAKER: Column = Column::new("waker", "Waker", Unit::Thread).optional();
const PREEMPTOR: Column = Column::new("preemptor", "Preempted by", Unit::Thread).optional();

/// The columns `about`, then those of a distribution.
fn distributed(about: &[Column]) -> Vec<Column> {
    about
        .iter()
        .copied()
        .chain(distribution_columns())
        .collect()
}

fn values(about: impl IntoIterator<Item = Value>, latencies: &Distribution) -> Vec<Value> {
    about
        .into_iter()
        .chain(distribution_values(latencies))
        .collect()
}

fn priority(priority: Option<i32>) -> Value {
    priority.map(i64::from).into()
}

/// Sorts rows, greatest first, then by thread.
fn sorted<'a, 'r, K: Ord>(
    rows: &'a [Row<'r>],
    greatest: impl Fn(&Row<'r>) -> K,
    keep: impl Fn(&Row<'r>) -> bool,
) -> Vec<&'a Row<'r>> {
    let mut rows: Vec<_> = rows.iter().filter(|row| keep(row)).collect();
    rows.sort_by_key(|row| (Reverse(greatest(row)), row.thread.trace, row.thread.tid));
    rows
}

/// The distribution of all latencies.
pub(super) fn latency(all: &Distribution) -> Section {
    let rows = (all.summary().count() > 0).then(|| values([], all));
    Section::new(
        "latency",
        "Wake-up latency",
        distributed(&[]),
        rows.into_iter().collect(),
    )
    .short()
}

pub(super) fn threads(rows: &[Row<'_>]) -> Section {
    let count = |row: &Row<'_>| row.latencies.summary().count();
    let rows = sorted(
        rows,
        |row| row.latencies.summary().sum(),
        |row| count(row) > 0,
    );
    let row = |row: &Row<'_>| values([row.thread.clone().into()], &row.latencies);
    let rows = parallel::map(rows, row);
    Section::new(
        "threads",
        "Wake-up latency by thread",
        distributed(&[THREAD]),
        rows,
    )
}

pub(super) fn priorities(by_priority: &BTreeMap<Option<i32>, Distribution>) -> Section {
    let row = |(own, latencies): (&Option<i32>, &Distribution)| values([priority(*own)], latencies);
    let rows = by_priority.iter().map(row).collect();
    let columns = distributed(&[PRIORITY]);
    Section::new("priorities", "Wake-up latency by priority", columns, rows).short()
}

/// Context, id and name of the cause; trace and id of the thread.
type CauseKey = (
    &'static str,
    Option<(Option<i32>, Option<String>)>,
    u32,
    Option<i32>,
);
type CauseLine = (Option<Thread>, Thread, Distribution);

/// Durations by cause and affected thread, greatest first.
fn by_cause<G: Ord>(
    partial: &SchedPartial,
    rows: &[Row<'_>],
    of: impl Fn(&Counts) -> &ByCause + Sync,
    greatest: impl Fn(&Distribution) -> G,
) -> Vec<(CauseKey, CauseLine)> {
    let of_row = |row: &Row<'_>| {
        let mut lines: BTreeMap<CauseKey, CauseLine> = BTreeMap::new();
        for (by, durations) in of(row.counts).entries() {
            let (context, by) = waker(partial, row.thread.trace, by);
            let who = by.as_ref().map(|by| (by.tid, by.name.clone()));
            let key: CauseKey = (context, who, row.thread.trace, row.thread.tid);
            let line = lines
                .entry(key)
                .or_insert_with(|| (by, row.thread.clone(), Distribution::default()));
            line.2.merge(durations);
        }
        lines
    };
    let lines = parallel::map(rows.iter().collect(), of_row);
    let mut lines: Vec<_> = lines.into_iter().flatten().collect();
    // Keys of two rows differ, since they contain the thread.
    lines.sort_by(|(a, a_line), (b, b_line)| {
        let by_size = greatest(&b_line.2).cmp(&greatest(&a_line.2));
        by_size.then_with(|| a.cmp(b))
    });
    lines
}

/// Latencies by waker and woken thread.
pub(super) fn wakers(partial: &SchedPartial, rows: &[Row<'_>]) -> Section {
    let lines = by_cause(
        partial,
        rows,
        |counts| &counts.wakers,
        |all| all.summary().count(),
    );
    let row = |((context, ..), (by, thread, latencies)): (CauseKey, CauseLine)| {
        values([context.into(), by.into(), thread.into()], &latencies)
    };
    let rows = parallel::map(lines, row);
    let columns = distributed(&[CONTEXT.left_out(8), WAKER, THREAD]);
    Section::new("wakers", "Who woke whom", columns, rows)
}

/// Waits by preemptor and preempted thread.
pub(super) fn preempted_by(partial: &SchedPartial, rows: &[Row<'_>]) -> Section {
    let lines = by_cause(
        partial,
        rows,
        |counts| &counts.preempted,
        |all| all.summary().sum(),
    );
    let summaries = lines.iter().map(|(_, (.., waits))| waits.summary());
    let (count, total) = summaries.fold((0, 0), |(count, total), of| {
        (count + of.count(), total + of.sum())
    });
    let sum = Sentence::default()
        .words("  ")
        .number(count, "wait", "waits")
        .words(", ")
        .value(
            Unit::Duration,
            Value::from(u64::try_from(total).unwrap_or(u64::MAX)),
        )
        .words(" in total");
    let row = |(_, (by, thread, waits)): (CauseKey, CauseLine)| {
        values([by.into(), thread.into()], &waits)
    };
    let rows = parallel::map(lines, row);
    let mut columns = distributed(&[PREEMPTOR, THREAD]);
    // The sum matters more here than the distribution.
    let totals = columns.iter_mut().filter(|column| column.key == "total_ns");
    totals.for_each(|total| *total = total.left_out(0));
    let title = "Waits after preemption, by the thread that took the CPU";
    Section::new("preempted_by", title, columns, rows).noted((count > 0).then_some(sum))
}

/// True for switches of threads that began to wait.
pub(super) fn is_voluntary(reason: usize) -> bool {
    TaskState::ALL
        .get(reason)
        .is_some_and(|state| !state.is_runnable())
}

/// True for switches of threads that were still runnable.
pub(super) fn is_involuntary(reason: usize) -> bool {
    TaskState::ALL
        .get(reason)
        .is_some_and(|state| state.is_runnable())
}

fn reason_name(reason: usize) -> &'static str {
    TaskState::ALL
        .get(reason)
        .map_or("unknown", |state| state.name())
}

pub(super) fn reasons(rows: &[Row<'_>]) -> Section {
    let count = |reason: usize| -> u64 { rows.iter().map(|row| row.counts.switches[reason]).sum() };
    let kind = |reason| match (is_voluntary(reason), is_involuntary(reason)) {
        (true, _) => Value::text("voluntary"),
        (_, true) => Value::text("involuntary"),
        _ => Value::None,
    };
    let rows = (0..REASONS).filter(|&reason| count(reason) > 0);
    let rows = rows.map(|reason| {
        vec![
            reason_name(reason).into(),
            kind(reason),
            count(reason).into(),
        ]
    });
    let columns = vec![
        Column::new("reason", "Reason", Unit::Text),
        Column::new("kind", "Kind", Unit::Text).optional(),
        Column::new("switches", "Switches", Unit::Count),
    ];
    Section::new("reasons", "Switches by reason", columns, rows.collect()).short()
}

/// Columns of reasons, with the order in which they are hidden.
const REASON_COLUMNS: [Column; REASONS] = [
    Column::new("runnable", "Runnable", Unit::Count).left_out(10),
    Column::new("preempted", "Preempted", Unit::Count).left_out(12),
    Column::new("sleeping", "Sleeping", Unit::Count).left_out(13),
    Column::new("disk_sleep", "Disk sleep", Unit::Count).left_out(11),
    Column::new("stopped", "Stopped", Unit::Count).left_out(5),
    Column::new("traced", "Traced", Unit::Count).left_out(4),
    Column::new("dead", "Dead", Unit::Count).left_out(8),
    Column::new("zombie", "Zombie", Unit::Count).left_out(7),
    Column::new("parked", "Parked", Unit::Count).left_out(3),
    Column::new("idle", "Idle", Unit::Count).left_out(9),
    Column::new("ready", "Ready", Unit::Count).left_out(6),
    Column::new("other", "Other", Unit::Count).left_out(2),
    Column::new("unknown", "Unknown", Unit::Count).left_out(1),
];

pub(super) fn thread_switches(rows: &[Row<'_>]) -> Section {
    let sum = |row: &Row<'_>, which: fn(usize) -> bool| -> u64 {
        let counts = row.counts.switches.iter().enumerate();
        counts
            .filter(|(reason, _)| which(*reason))
            .map(|(_, count)| count)
            .sum()
    };
    let rows = sorted(rows, |row| sum(row, |_| true), |row| sum(row, |_| true) > 0);
    let row = |row: &Row<'_>| {
        let sums = [
            sum(row, |_| true),
            sum(row, is_voluntary),
            sum(row, is_involuntary),
        ];
        let counts = sums.into_iter().chain(row.counts.switches).map(Value::from);
        std::iter::once(row.thread.clone().into())
            .chain(counts)
            .collect()
    };
    let mut columns = vec![
        THREAD,
        Column::new("switches", "Switches", Unit::Count),
        Column::new("voluntary", "Voluntary", Unit::Count),
        Column::new("involuntary", "Involuntary", Unit::Count),
    ];
    columns.extend(REASON_COLUMNS);
    let rows = parallel::map(rows, row);
    Section::new("thread_switches", "Switches from threads", columns, rows)
}

const WAIT_COLUMNS: [Column; 4] = [
    Column::new("waits", "Waits", Unit::Count),
    Column::new("wait_ns", "Total", Unit::Duration),
    Column::new("average_wait_ns", "Average", Unit::Duration).optional(),
    Column::new("max_wait_ns", "Max", Unit::Duration).optional(),
];

fn wait_values(waits: &Summary) -> [Value; 4] {
    [
        waits.count().into(),
        u64::try_from(waits.sum()).unwrap_or(u64::MAX).into(),
        waits.mean().into(),
        waits.max().into(),
    ]
}

/// The number of threads that wait for each CPU, and their waiting times.
pub(super) fn queues(rules: &SchedRules, input: &Input, partial: &mut SchedPartial) -> Section {
    let head = input.head();
    open_waits(rules, partial, head.end.map_or(i64::MIN, |end| end.0));
    let duration = head.duration_ns;
    let mut rows = Vec::new();
    let peaks = partial.machine.cpus.iter();
    let peaks: Vec<_> = peaks.map(|(key, cpu)| (*key, cpu.queue.peak)).collect();
    for (key, peak) in peaks {
        let peak = u64::try_from(peak).unwrap_or(0);
        let cpu = partial.sums.cpus.get(key);
        let is_chosen = rules.selection.cpus.contains(key.cpu);
        if !is_chosen || (peak == 0 && cpu.queued == 0 && cpu.waits.count() == 0) {
            continue;
        }
        // A wait is confirmed only when the thread runs, and some threads do so on unrecorded CPUs.
        let is_whole = rules.recorded.is_whole(key.trace);
        let average = (duration > 0 && is_whole).then(|| cpu.queued as f64 / duration as f64);
        let peak = is_whole.then_some(peak);
        let (trace, number) = (u64::from(key.trace), u64::from(key.cpu));
        let mut row = vec![trace.into(), number.into(), average.into(), peak.into()];
        row.extend(wait_values(&cpu.waits));
        rows.push(row);
    }
    let mut columns = vec![
        TRACE,
        Column::new("cpu", "CPU", Unit::Cpu),
        Column::new("average_length", "Avg length", Unit::Number).optional(),
        Column::new("max_length", "Max length", Unit::Count).optional(),
    ];
    columns.extend(WAIT_COLUMNS);
    Section::new("queues", "Run queues", columns, rows)
        .short()
        .of_all_threads()
}

/// Adds the waits that are open at the end of the range.
fn open_waits(rules: &SchedRules, partial: &mut SchedPartial, end: i64) {
    let cpus = &mut partial.sums.cpus;
    for (_, life) in partial.machine.threads.entries() {
        if let Now::Waiting { moved, place, .. } = life.now {
            let waited = rules.selection.window.clip(moved, end);
            cpus.get(place.cpu).queued += u128::from(waited);
        }
    }
}

pub(super) fn thread_waits(rows: &[Row<'_>]) -> Section {
    let rows = sorted(
        rows,
        |row| row.counts.waits.sum(),
        |row| row.counts.waits.count() > 0,
    );
    let row = |row: &Row<'_>| {
        let thread = std::iter::once(row.thread.clone().into());
        thread.chain(wait_values(&row.counts.waits)).collect()
    };
    let columns = std::iter::once(THREAD).chain(WAIT_COLUMNS).collect();
    let rows = parallel::map(rows, row);
    Section::new(
        "thread_waits",
        "Waits in run queues by thread",
        columns,
        rows,
    )
}

/// Index of the trace, shown if there are several hosts.
const TRACE: Column = Column::new("trace", "Trace", Unit::Id);
const MIGRATIONS: Column = Column::new("migrations", "Migrations", Unit::Count);

pub(super) fn thread_migrations(rows: &[Row<'_>]) -> Section {
    let rows = sorted(
        rows,
        |row| row.counts.migrations,
        |row| row.counts.migrations > 0,
    );
    let row = |row: &Row<'_>| vec![row.thread.clone().into(), row.counts.migrations.into()];
    let rows = rows.into_iter().map(row).collect();
    Section::new(
        "thread_migrations",
        "Migrations by thread",
        vec![THREAD, MIGRATIONS],
        rows,
    )
}

pub(super) fn migrations(partial: &SchedPartial) -> Section {
    let row = |(pair, count): &((tracebraid_follow::CpuKey, tracebraid_follow::CpuKey), u64)| {
        let (from, to) = pair;
        vec![
            u64::from(from.trace).into(),
            u64::from(from.cpu).into(),
            u64::from(to.cpu).into(),
            (*count).into(),
        ]
    };
    let rows = partial.sums.migrations.iter().map(row).collect();
    let columns = vec![
        TRACE,
        Column::new("from_cpu", "From CPU", Unit::Cpu),
        Column::new("to_cpu", "To CPU", Unit::Cpu),
        MIGRATIONS,
    ];
    Section::new("migrations", "Migrations", columns, rows).of_all_threads()
}

/// A table with a row for each latency.
pub(super) fn list(
    key: &'static str,
    title: &str,
    view: View,
    partial: &SchedPartial,
    latencies: &[Latency],
) -> Section {
    let row = |latency: &Latency| {
        let thread = partial.people.thread(latency.thread);
        let (context, by) = waker(partial, thread.trace, latency.by);
        vec![
            Timestamp(latency.begin).into(),
            Timestamp(latency.end()).into(),
            latency.duration.into(),
            priority(latency.priority),
            u64::from(latency.cpu.cpu).into(),
            thread.into(),
            context.into(),
            by.into(),
        ]
    };
    Section {
        view,
        ..Section::new(
            key,
            title,
            vec![
                Column::new("wakeup_ns", "Wake-up", Unit::Time),
                Column::new("switch_ns", "Switch", Unit::Time).left_out(2),
                Column::new("latency_ns", "Latency", Unit::Duration),
                PRIORITY.left_out(3),
                Column::new("cpu", "CPU", Unit::Cpu).left_out(4),
                THREAD,
                CONTEXT.left_out(1),
                WAKER.left_out(5),
            ],
            parallel::map(latencies.iter().collect(), row),
        )
    }
}
