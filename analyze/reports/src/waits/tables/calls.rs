//! Time of calls by wait reason: by call, thread and process.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_kernel_model::Syscall;
use tracebraid_threads::WaitReason;

use crate::waits::report::{Row, Who};
use crate::waits::sums::{CallSums, CallTotals};
use crate::waits::tables::{PROCESS, SYSCALL, THREAD, WHY};
use tracebraid_engine::parallel;
use tracebraid_follow::{Process, Thread, share};
use tracebraid_statistics::Distribution;
use tracebraid_tables::{Column, Section, Unit, Value, distribution_columns, distribution_values};

const CALLS: Column = Column::new("calls", "Calls", Unit::Count);
const TOTAL: Column = Column::new("total_ns", "Total", Unit::Duration);
const SHARE: Column = Column::new("share", "Of calls", Unit::Share);

/// Wait reasons in the order of [`WaitReason::ALL`], and their columns.
const PARTS: [(WaitReason, Column); 16] = [
    (WaitReason::Running, part("running_ns", "Running")),
    (WaitReason::Preempted, part("preempted_ns", "Preempted")),
    (WaitReason::Runnable, part("runnable_ns", "Runnable")),
    (WaitReason::Lwp, part("lwp_ns", "LWP")),
    (
        WaitReason::BlockDevice,
        part("block_device_ns", "Block device"),
    ),
    (WaitReason::Network, part("network_ns", "Network")),
    (WaitReason::Timer, part("timer_ns", "Timer")),
    (WaitReason::UserInput, part("user_input_ns", "User input")),
    (WaitReason::Device, part("device_ns", "Device")),
    (WaitReason::Ipi, part("ipi_ns", "IPI")),
    (WaitReason::Futex, part("futex_ns", "Futex")),
    (WaitReason::Child, part("child_ns", "Child")),
    (WaitReason::Signal, part("signal_ns", "Signal")),
    (WaitReason::Thread, part("thread_ns", "Thread")),
    (WaitReason::Kernel, part("kernel_ns", "Kernel")),
    (WaitReason::Unknown, part("unknown_ns", "Unknown")),
];

/// Names of the reasons to which the report charges the time of calls.
pub fn reason_names() -> Vec<&'static str> {
    PARTS.map(|(why, _)| why.name()).to_vec()
}

const fn part(key: &'static str, title: &'static str) -> Column {
    Column::new(key, title, Unit::Duration)
}

/// Nanoseconds; sums above 584 years saturate.
fn time(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// The column `about`, then calls, time, and time by wait reason. In narrow tables, reasons with
/// less time in all rows are hidden first; time spent running never.
fn parts<'t>(about: Column, rows: impl Iterator<Item = &'t CallTotals>) -> Vec<Column> {
    let mut sums = [0u128; PARTS.len()];
    for totals in rows {
        for (sum, (why, _)) in sums.iter_mut().zip(&PARTS) {
            *sum += totals.parts[why.index()];
        }
    }
    let rank = |at: usize| match PARTS[at].0 {
        WaitReason::Running => 0,
        _ => {
            let less = |other: usize| (sums[other], Reverse(other)) < (sums[at], Reverse(at));
            1 + (0..PARTS.len()).filter(|&other| less(other)).count() as u8
        }
    };
    let columns = (0..PARTS.len()).map(|at| PARTS[at].1.left_out(rank(at)));
    [about, CALLS, TOTAL].into_iter().chain(columns).collect()
}

fn parts_row(about: Value, totals: &CallTotals) -> Vec<Value> {
    let parts = PARTS
        .iter()
        .map(|part| time(totals.parts[part.0.index()]).into());
    [about, totals.calls.into(), time(totals.time).into()]
        .into_iter()
        .chain(parts)
        .collect()
}

/// The columns `about`, then wait reason, share, and the distribution over calls.
fn reason_columns(about: &[Column]) -> Vec<Column> {
    let about = about.iter().copied().chain([WHY, SHARE]);
    about.chain(distribution_columns()).collect()
}

/// A row for each wait reason that occurred, greatest first.
fn reason_rows(about: &[Value], sums: &CallSums) -> Vec<Vec<Value>> {
    let whole = time(sums.totals().time);
    let mut parts = sums.parts();
    parts.retain(|(_, part)| part.summary().count() > 0);
    parts.sort_by_key(|(why, part)| (Reverse(time(part.summary().sum())), *why));
    let row = |(why, part): (WaitReason, Cow<'_, Distribution>)| {
        let own = [
            why.name().into(),
            share(time(part.summary().sum()), whole).into(),
        ];
        let distribution = distribution_values(&part);
        about
            .iter()
            .cloned()
            .chain(own)
            .chain(distribution)
            .collect()
    };
    parts.into_iter().map(row).collect()
}

/// All calls by wait reason.
pub(crate) fn reasons(all: &CallSums) -> Section {
    let rows = reason_rows(&[], all);
    Section::new(
        "reasons",
        "Where the time of system calls went",
        reason_columns(&[]),
        rows,
    )
    .short()
}

fn sorted(by_call: &BTreeMap<Syscall, CallSums>) -> Vec<(Syscall, &CallSums, CallTotals)> {
    let all = by_call
        .iter()
        .map(|(call, sums)| (*call, sums, sums.totals()));
    let mut sorted: Vec<_> = all.collect();
    sorted.sort_by_key(|(call, _, totals)| (Reverse(time(totals.time)), call.user_name()));
    sorted
}

pub(crate) fn of_calls(by_call: &BTreeMap<Syscall, CallSums>) -> Section {
    let calls = sorted(by_call);
    let columns = parts(SYSCALL, calls.iter().map(|(_, _, totals)| totals));
    let rows = calls.iter();
    let rows = rows.map(|(call, _, totals)| parts_row(call.user_name().into(), totals));
    Section::new("syscalls", "By system call", columns, rows.collect())
}

pub(crate) fn of_calls_and_reasons(by_call: &BTreeMap<Syscall, CallSums>) -> Section {
    let rows = sorted(by_call).into_iter();
    let rows = rows.flat_map(|(call, sums, _)| reason_rows(&[call.user_name().into()], sums));
    let columns = reason_columns(&[SYSCALL]);
    let title = "By system call and reason";
    Section::new("syscall_reasons", title, columns, rows.collect())
}

/// The calls of threads, greatest total time first.
pub(crate) fn by_thread(rows: &[Row]) -> Vec<ThreadCalls<'_>> {
    let mut sorted: Vec<ThreadCalls<'_>> = parallel::map(rows.iter().collect(), |row| {
        let mut totals = CallTotals::default();
        row.calls
            .iter()
            .for_each(|(_, sums)| totals.add(&sums.totals()));
        ThreadCalls { row, totals }
    });
    sorted.sort_by_key(|of| {
        (
            Reverse(time(of.totals.time)),
            of.row.thread.trace,
            of.row.thread.tid,
        )
    });
    sorted
}

/// The calls of a thread.
pub(crate) struct ThreadCalls<'r> {
    row: &'r Row,
    totals: CallTotals,
}

impl ThreadCalls<'_> {
    /// Sums over all system calls.
    fn sums(&self) -> CallSums {
        let mut sums = CallSums::default();
        self.row
            .calls
            .iter()
            .for_each(|(_, of_call)| sums.merge(of_call));
        sums
    }
}

pub(crate) fn of_threads(threads: &[ThreadCalls<'_>]) -> Section {
    let row = |of: &ThreadCalls<'_>| parts_row(of.row.thread.clone().into(), &of.totals);
    let rows = parallel::map(threads.iter().collect(), row);
    let columns = parts(THREAD, threads.iter().map(|of| &of.totals));
    Section::new("threads", "By thread", columns, rows)
}

pub(crate) fn of_threads_and_reasons(threads: &[ThreadCalls<'_>]) -> Section {
    let rows = |of: &ThreadCalls<'_>| reason_rows(&[of.row.thread.clone().into()], &of.sums());
    let rows = parallel::map(threads.iter().collect(), rows);
    let columns = reason_columns(&[THREAD]);
    Section::new(
        "thread_reasons",
        "By thread and reason",
        columns,
        rows.into_iter().flatten().collect(),
    )
}

pub(crate) fn of_processes(who: &Who<'_>, threads: &[ThreadCalls<'_>]) -> Section {
    let threads = threads.iter().map(|of| (of.row.thread.clone(), of.totals));
    let people = who.people;
    let mut sums: Vec<(Process, CallTotals)> =
        people.processes(threads, |sum: &mut CallTotals, totals| sum.add(&totals));
    sums.sort_by_key(|(process, sum)| {
        (
            Reverse(time(sum.time)),
            process.trace,
            process.pid,
            process.tid,
        )
    });
    let row =
        |(process, sums): &(Process, CallTotals)| parts_row(Thread::from(process).into(), sums);
    let rows = sums.iter().map(row).collect();
    let columns = parts(PROCESS, sums.iter().map(|(_, totals)| totals));
    Section::new("processes", "By process", columns, rows)
}
