//! Where the time of calls went: by call, thread and process.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_kernel_model::Syscall;
use tracebraid_threads::WaitReason;

use crate::waits::report::{Row, Who};
use crate::waits::sums::CallSums;
use crate::waits::tables::{PROCESS, SYSCALL, THREAD, WHY};
use tracebraid_follow::{Process, Thread, share};
use tracebraid_tables::{Column, Section, Unit, Value, distribution_columns, distribution_values};

const CALLS: Column = Column::new("calls", "Calls", Unit::Count);
const TOTAL: Column = Column::new("total_ns", "Total", Unit::Duration);
const SHARE: Column = Column::new("share", "Share", Unit::Share);

/// Reasons of which the report tells calls' times, in the order of [`WaitReason::ALL`], and their columns; what is seldom is
/// left out first.
const PARTS: [(WaitReason, Column); 15] = [
    (WaitReason::Running, part("running_ns", "Running", 0)),
    (WaitReason::Preempted, part("preempted_ns", "Preempted", 12)),
    (WaitReason::Runnable, part("runnable_ns", "Runnable", 14)),
    (
        WaitReason::BlockDevice,
        part("block_device_ns", "Block device", 13),
    ),
    (WaitReason::Network, part("network_ns", "Network", 11)),
    (WaitReason::Timer, part("timer_ns", "Timer", 10)),
    (WaitReason::UserInput, part("user_input_ns", "User input", 1)),
    (WaitReason::Device, part("device_ns", "Device", 3)),
    (WaitReason::Ipi, part("ipi_ns", "IPI", 2)),
    (WaitReason::Futex, part("futex_ns", "Futex", 9)),
    (WaitReason::Child, part("child_ns", "Child", 6)),
    (WaitReason::Signal, part("signal_ns", "Signal", 4)),
    (WaitReason::Thread, part("thread_ns", "Thread", 8)),
    (WaitReason::Kernel, part("kernel_ns", "Kernel", 5)),
    (WaitReason::Unknown, part("unknown_ns", "Unknown", 7)),
];

const fn part(key: &'static str, title: &'static str, order: u8) -> Column {
    Column::new(key, title, Unit::Duration).left_out(order)
}

/// Nanoseconds; more than 584 years together are not told apart.
fn time(sums: &CallSums, why: WaitReason) -> u64 {
    u64::try_from(sums.part_of(why).summary().sum()).unwrap_or(u64::MAX)
}

fn total(sums: &CallSums) -> u64 {
    u64::try_from(sums.whole().summary().sum()).unwrap_or(u64::MAX)
}

/// Behind what a row is about: calls, time, and its parts.
fn parts(about: Column) -> Vec<Column> {
    let columns = PARTS.iter().map(|part| part.1);
    [about, CALLS, TOTAL].into_iter().chain(columns).collect()
}

fn parts_row(about: Value, sums: &CallSums) -> Vec<Value> {
    let calls = sums.whole().summary().count();
    let parts = PARTS.iter().map(|part| time(sums, part.0).into());
    [about, calls.into(), total(sums).into()]
        .into_iter()
        .chain(parts)
        .collect()
}

/// Behind what a row is about: why, the share, and how parts are distributed over calls.
fn reason_columns(about: &[Column]) -> Vec<Column> {
    let about = about.iter().copied().chain([WHY, SHARE]);
    about.chain(distribution_columns()).collect()
}

/// A row for each why that there was, the greatest first.
fn reason_rows(about: &[Value], sums: &CallSums) -> Vec<Vec<Value>> {
    let whole = total(sums);
    let mut whys: Vec<WaitReason> = WaitReason::ALL.to_vec();
    whys.retain(|why| sums.part_of(*why).summary().count() > 0);
    whys.sort_by_key(|why| (Reverse(time(sums, *why)), *why));
    let row = |why: WaitReason| {
        let own = [why.name().into(), share(time(sums, why), whole).into()];
        let distribution = distribution_values(&sums.part_of(why));
        about.iter().cloned().chain(own).chain(distribution).collect()
    };
    whys.into_iter().map(row).collect()
}

/// All calls by why.
pub(crate) fn reasons(all: &CallSums) -> Section {
    let rows = reason_rows(&[], all);
    Section::new("reasons", "Where the time went", reason_columns(&[]), rows).short()
}

fn sorted(by_call: &BTreeMap<Syscall, CallSums>) -> Vec<(Syscall, &CallSums)> {
    let mut sorted: Vec<_> = by_call.iter().map(|(call, sums)| (*call, sums)).collect();
    sorted.sort_by_key(|(call, sums)| (Reverse(total(sums)), call.user_name()));
    sorted
}

pub(crate) fn of_calls(by_call: &BTreeMap<Syscall, CallSums>) -> Section {
    let rows = sorted(by_call).into_iter();
    let rows = rows.map(|(call, sums)| parts_row(call.user_name().into(), sums));
    Section::new("syscalls", "By system call", parts(SYSCALL), rows.collect())
}

pub(crate) fn of_calls_and_reasons(by_call: &BTreeMap<Syscall, CallSums>) -> Section {
    let rows = sorted(by_call).into_iter();
    let rows = rows.flat_map(|(call, sums)| reason_rows(&[call.user_name().into()], sums));
    let columns = reason_columns(&[SYSCALL]);
    let title = "By system call and why";
    Section::new("syscall_reasons", title, columns, rows.collect())
}

fn by_thread(rows: &[Row]) -> Vec<(&Thread, CallSums)> {
    let sum = |row: &Row| {
        let mut sum = CallSums::default();
        row.calls.iter().for_each(|(_, sums)| sum.merge(sums));
        sum
    };
    let mut sums: Vec<_> = rows.iter().map(|row| (&row.thread, sum(row))).collect();
    sums.sort_by_key(|(thread, sum)| (Reverse(total(sum)), thread.trace, thread.tid));
    sums
}

pub(crate) fn of_threads(rows: &[Row]) -> Section {
    let rows = by_thread(rows).into_iter();
    let rows = rows.map(|(thread, sums)| parts_row(thread.clone().into(), &sums));
    Section::new("threads", "By thread", parts(THREAD), rows.collect())
}

pub(crate) fn of_threads_and_reasons(rows: &[Row]) -> Section {
    let rows = by_thread(rows).into_iter();
    let rows = rows.flat_map(|(thread, sums)| reason_rows(&[thread.clone().into()], &sums));
    let columns = reason_columns(&[THREAD]);
    Section::new("thread_reasons", "By thread and why", columns, rows.collect())
}

pub(crate) fn of_processes(who: &Who<'_>, rows: &[Row]) -> Section {
    let threads = by_thread(rows).into_iter();
    let threads = threads.map(|(thread, sums)| (thread.clone(), sums));
    let people = who.people;
    let mut sums: Vec<(Process, CallSums)> =
        people.processes(threads, |sum: &mut CallSums, sums| sum.merge(&sums));
    sums.sort_by_key(|(process, sum)| (Reverse(total(sum)), process.trace, process.pid, process.tid));
    let row = |(process, sums): &(Process, CallSums)| parts_row(Thread::from(process).into(), sums);
    let rows = sums.iter().map(row).collect();
    Section::new("processes", "By process", parts(PROCESS), rows)
}
