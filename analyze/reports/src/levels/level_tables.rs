//! The tables of the report.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_follow::{People, Thread, ThreadKey};
use tracebraid_kernel_model::Syscall;
use tracebraid_tables::{Column, Section, Unit, Value};

use crate::levels::LevelPartial;
use crate::levels::level_sums::Spent;
use crate::levels::report::{LwpRow, ProcessRow, UltRow};

pub(super) const THREAD: Column = Column::new("thread", "User-level thread", Unit::Thread);

pub(super) const fn count(key: &'static str, title: &'static str) -> Column {
    Column::new(key, title, Unit::Count)
}

pub(super) const fn duration(key: &'static str, title: &'static str) -> Column {
    Column::new(key, title, Unit::Duration)
}

/// A part of a whole; none of nothing.
pub(super) fn share(part: u64, whole: u64) -> Value {
    match whole {
        0 => Value::None,
        _ => Value::Part(part, whole),
    }
}

fn mean(spent: Spent) -> Value {
    spent
        .ns
        .checked_div(spent.count)
        .map_or(Value::None, Value::Unsigned)
}

fn list(numbers: impl Iterator<Item = u32>) -> Value {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    Value::text(numbers.join(","))
}

pub(super) fn processes(
    people: &People,
    processes: &BTreeMap<(u32, Option<i32>), ProcessRow>,
) -> Section {
    let columns = vec![
        Column::new("process", "Process", Unit::Thread),
        Column::new("runtime", "Runtime", Unit::Text).left_out(2),
        count("lwps", "LWPs"),
        count("threads", "User-level threads").headed("Threads"),
        Column::new("cpus", "CPUs", Unit::Text).left_out(1),
        duration("active_ns", "Active"),
        duration("scheduler_ns", "Scheduler"),
        duration("preempted_ns", "LWP preempted").headed("Preempted"),
        duration("ready_ns", "Ready without an LWP").headed("Ready"),
    ];
    let row = |((trace, pid), row): (&(u32, Option<i32>), &ProcessRow)| {
        let process = match pid {
            Some(pid) => people.thread(ThreadKey {
                trace: *trace,
                tid: *pid,
            }),
            None => Thread {
                trace: *trace,
                ..Thread::default()
            },
        };
        vec![
            process.into(),
            Value::text(row.runtime.clone()),
            row.lwps.into(),
            row.threads.into(),
            list(row.cpus.iter().copied()),
            row.active_ns.into(),
            row.scheduler_ns.into(),
            row.preempted_ns.into(),
            row.ready_ns.into(),
        ]
    };
    let rows = processes.iter().map(row).collect();
    Section::new("processes", "Processes", columns, rows).short()
}

const ULT: &[Column] = &[
    THREAD,
    Column::new("ult", "Id in the runtime", Unit::Id)
        .headed("Id")
        .left_out(9),
    duration("active_ns", "Active"),
    count("active_slices", "Active slices")
        .headed("Slices")
        .left_out(8),
    duration("average_slice_ns", "Average slice")
        .headed("Slice")
        .left_out(7)
        .optional(),
    count("idle_slices", "Idle slices").left_out(14),
    duration("idle_ns", "Idle").left_out(13),
    duration("preempted_ns", "LWP preempted").headed("Preempted"),
    count("preemptions", "Preemptions of the LWP")
        .headed("Times")
        .left_out(10),
    duration("kernel_ns", "LWP waits in the kernel").headed("Kernel"),
    duration("lwp_ready_ns", "LWP waits for a CPU")
        .headed("CPU wait")
        .left_out(4),
    duration("ready_ns", "Ready without an LWP").headed("LWP wait"),
    duration("blocked_ns", "Blocked").left_out(3),
    duration("call_ns", "System calls that the runtime reports")
        .headed("Calls")
        .left_out(12),
    duration("unknown_ns", "Unknown").left_out(15),
    count("switches", "Returns to an LWP")
        .headed("Returns")
        .left_out(11),
    Column::new("same_cpu", "Returns to the same CPU", Unit::Share)
        .headed("Same CPU")
        .left_out(6)
        .optional(),
    Column::new("same_lwp", "Returns to the same LWP", Unit::Share)
        .headed("Same LWP")
        .left_out(5)
        .optional(),
    count("cpu_migrations", "Migrations between CPUs")
        .headed("CPU migr.")
        .left_out(2),
    count("lwp_migrations", "Migrations between LWPs")
        .headed("LWP migr.")
        .left_out(1),
];

pub(super) fn threads(ults: &[UltRow<'_>]) -> Section {
    let mut rows: Vec<_> = ults.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.sums.active.ns), row.key));
    let row = |row: &UltRow<'_>| {
        let of = row.sums;
        let idle = [of.preempted, of.kernel, of.lwp_ready, of.ready];
        let idle_ns = idle.iter().map(|spent| spent.ns).sum::<u64>() + of.blocked_ns();
        vec![
            row.thread.clone().into(),
            row.described.ult.into(),
            of.active.ns.into(),
            of.active.count.into(),
            mean(of.active),
            of.idle_slices.into(),
            idle_ns.into(),
            of.preempted.ns.into(),
            of.preempted.count.into(),
            of.kernel.ns.into(),
            of.lwp_ready.ns.into(),
            of.ready.ns.into(),
            of.blocked_ns().into(),
            of.calls.ns.into(),
            of.unknown_ns.into(),
            of.returns.into(),
            share(of.same_cpu, of.returns),
            share(of.same_lwp, of.returns),
            of.cpu_migrations.into(),
            (of.returns - of.same_lwp).into(),
        ]
    };
    let rows = rows.into_iter().map(row).collect();
    Section::new("threads", "User-level threads", ULT.to_vec(), rows)
}

/// The threads for which the kernel took CPUs from LWPs with user-level threads.
pub(super) fn preempted_by(partial: &LevelPartial, ults: &[UltRow<'_>]) -> Section {
    let of_row = |row: &'_ UltRow<'_>| {
        let by = row.sums.preempted_by.iter();
        let key = row.key;
        by.map(move |(&tid, &spent)| (Reverse(spent.ns), key, tid, spent))
            .collect::<Vec<_>>()
    };
    let mut lines: Vec<_> = ults.iter().flat_map(of_row).collect();
    lines.sort_unstable_by_key(|line| (line.0, line.1, line.2));
    let threads: BTreeMap<ThreadKey, &Thread> =
        ults.iter().map(|row| (row.key, &row.thread)).collect();
    let name = |key: ThreadKey| partial.named(key);
    let row = |(_, key, tid, spent): (_, ThreadKey, i32, Spent)| {
        let thread = threads
            .get(&key)
            .map_or_else(|| name(key), |thread| (*thread).clone());
        let by = name(ThreadKey { tid, ..key });
        vec![
            thread.into(),
            by.into(),
            spent.count.into(),
            spent.ns.into(),
            mean(spent),
        ]
    };
    let columns = vec![
        THREAD,
        Column::new("preemptor", "Preempted by", Unit::Thread),
        count("preemptions", "Times"),
        duration("preempted_ns", "LWP preempted").headed("Preempted"),
        duration("average_ns", "Average").left_out(1).optional(),
    ];
    let rows = lines.into_iter().map(row).collect();
    Section::new(
        "preempted_by",
        "Delayed by preemption of the LWP",
        columns,
        rows,
    )
}

/// Waits that runtimes know, by thread and reason.
pub(super) fn blocked(ults: &[UltRow<'_>]) -> Section {
    let of_row = |row: &'_ UltRow<'_>| {
        let (key, thread) = (row.key, row.thread.clone());
        let blocked = row.sums.blocked.iter();
        let line = move |(&reason, &spent): (&Syscall, &Spent)| {
            (
                Reverse(spent.ns),
                key,
                reason_name(reason),
                thread.clone(),
                spent,
            )
        };
        blocked.map(line).collect::<Vec<_>>()
    };
    let mut lines: Vec<_> = ults.iter().flat_map(of_row).collect();
    lines.sort_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
    let row = |(_, _, reason, thread, spent): (_, _, String, Thread, Spent)| {
        vec![
            thread.into(),
            Value::text(reason),
            spent.count.into(),
            spent.ns.into(),
            mean(spent),
        ]
    };
    let columns = vec![
        THREAD,
        Column::new("reason", "Blocked by", Unit::Text),
        count("waits", "Times"),
        duration("blocked_ns", "Blocked"),
        duration("average_ns", "Average").left_out(1).optional(),
    ];
    let rows = lines.into_iter().map(row).collect();
    Section::new("blocked", "Waits in the runtime", columns, rows)
}

/// The runtime's word for a wait.
fn reason_name(reason: Syscall) -> String {
    if reason == Syscall::OTHER {
        return "unknown".to_owned();
    }
    let name = reason.user_name();
    name.strip_prefix(Syscall::USER_WAIT)
        .unwrap_or(name)
        .to_owned()
}

pub(super) fn lwps(lwps: &[LwpRow<'_>]) -> Section {
    let columns = vec![
        Column::new("lwp", "LWP", Unit::Thread),
        duration("threads_ns", "In user-level threads").headed("Threads"),
        duration("scheduler_ns", "In its scheduler").headed("Scheduler"),
        duration("idle_ns", "Waits in its scheduler").headed("Idle"),
        duration("preempted_ns", "Preempted"),
        duration("blocked_ns", "Waits in the kernel with a user-level thread").headed("Kernel"),
        duration("ready_ns", "Waits for a CPU")
            .headed("CPU wait")
            .left_out(3),
        count("switches", "Switches to user-level threads")
            .headed("Switches")
            .left_out(1),
        Column::new("cpus", "CPUs", Unit::Text).left_out(2),
    ];
    let row = |row: &LwpRow<'_>| {
        let (own, with) = (row.own, row.with);
        vec![
            row.thread.clone().into(),
            with.threads.ns.into(),
            own.active.ns.into(),
            own.kernel.ns.into(),
            (own.preempted.ns + with.preempted.ns).into(),
            with.blocked.ns.into(),
            (own.lwp_ready.ns + with.ready.ns).into(),
            with.switches.into(),
            list(with.cpus.iter().copied()),
        ]
    };
    let rows = lwps.iter().map(row).collect();
    Section::new("lwps", "LWPs", columns, rows)
}
