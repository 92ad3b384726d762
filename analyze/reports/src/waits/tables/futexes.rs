//! Futexes by address and by operation.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::waits::futex::{FutexSums, Futexes, Operation};
use crate::waits::report::Who;
use crate::waits::tables::PROCESS;
use tracebraid_follow::{Process, Thread, ThreadKey};
use tracebraid_tables::{Column, Section, Unit, Value, distribution_columns, distribution_values};

const OPERATION: Column = Column::new("operation", "Operation", Unit::Text);
const AGAIN: Column = Column::new("again", "Again", Unit::Count);
const TIMEOUTS: Column = Column::new("timeouts", "Timeouts", Unit::Count);
const INTERRUPTED: Column = Column::new("interrupted", "Interrupted", Unit::Count);

/// A futex of a process.
#[derive(Default)]
struct Futex {
    /// Calls that wait.
    waits: FutexSums,
    /// The threads of these calls.
    threads: BTreeSet<ThreadKey>,
    /// Calls that wake.
    wakes: FutexSums,
}

/// A thread's use of a futex: thread, address, operation, sums.
type Part<'a> = (ThreadKey, i64, Operation, &'a FutexSums);

pub(crate) fn of_futexes(who: &Who<'_>, futexes: &Futexes) -> [Section; 2] {
    let parts = || {
        let parts = futexes.entries().iter();
        parts.filter_map(|((thread, address, operation), sums)| {
            Some((who.shown(*thread)?, (*thread, *address, *operation, sums)))
        })
    };
    let people = who.people;
    let by_address = people.processes(parts(), |sum: &mut BTreeMap<i64, Futex>, part: Part<'_>| {
        add(sum.entry(part.1).or_default(), part);
    });
    let by_operation = people.processes(
        parts(),
        |sum: &mut BTreeMap<Operation, FutexSums>, part: Part<'_>| {
            sum.entry(part.2).or_default().merge(part.3)
        },
    );
    [addresses(who, by_address), operations(by_operation)]
}

fn add(futex: &mut Futex, (thread, _, operation, sums): Part<'_>) {
    if operation.waits() {
        futex.waits.merge(sums);
        futex.threads.insert(thread);
    } else if operation.wakes() {
        futex.wakes.merge(sums);
    }
}

fn addresses(who: &Who<'_>, sums: Vec<(Process, BTreeMap<i64, Futex>)>) -> Section {
    let rows = sums.into_iter().flat_map(|(process, futexes)| {
        let thread = Thread::from(&process);
        futexes
            .into_iter()
            .map(move |(address, futex)| (thread.clone(), address, futex))
    });
    let mut rows: Vec<(Thread, i64, Futex)> = rows.collect();
    rows.sort_by_key(|(process, address, futex)| {
        let total = futex.waits.calls.summary().sum();
        (
            Reverse(total),
            process.trace,
            process.pid,
            process.tid,
            *address as u64,
        )
    });
    let columns = [PROCESS, Column::new("address", "Address", Unit::Text)];
    let columns = columns.into_iter().chain(distribution_columns()).chain([
        AGAIN.left_out(9),
        TIMEOUTS.left_out(10),
        INTERRUPTED.left_out(8),
        Column::new("threads", "Threads", Unit::Count).left_out(11),
        Column::new("wakes", "Wakes", Unit::Count).left_out(12),
        Column::new("woken", "Woken", Unit::Count).left_out(6),
        Column::new("waker", "Most woken by", Unit::Thread).optional(),
        Column::new("waker_wakes", "Times", Unit::Count)
            .optional()
            .left_out(9),
    ]);
    let rows = rows.iter().map(|row| address(who, row)).collect();
    Section::new("futexes", "Futexes", columns.collect(), rows)
}

fn address(who: &Who<'_>, (process, address, futex): &(Thread, i64, Futex)) -> Vec<Value> {
    let Futex {
        waits,
        threads,
        wakes,
    } = futex;
    let most = waits
        .wakers
        .iter()
        .max_by_key(|(thread, count)| (*count, Reverse(*thread)));
    let wake_calls = wakes.calls.summary().count() + wakes.again;
    let own = [process.clone().into(), Value::Text(format!("{address:#x}"))];
    own.into_iter()
        .chain(distribution_values(&waits.calls))
        .chain([
            waits.again.into(),
            waits.timeouts.into(),
            waits.interrupted.into(),
            (threads.len() as u64).into(),
            wake_calls.into(),
            wakes.woken.into(),
            most.map(|(thread, _)| who.thread(*thread)).into(),
            most.map(|(_, count)| *count).into(),
        ])
        .collect()
}

fn operations(sums: Vec<(Process, BTreeMap<Operation, FutexSums>)>) -> Section {
    let rows = sums.into_iter().flat_map(|(process, operations)| {
        let thread = Thread::from(&process);
        operations
            .into_iter()
            .map(move |(operation, sums)| (thread.clone(), operation, sums))
    });
    let mut rows: Vec<(Thread, Operation, FutexSums)> = rows.collect();
    rows.sort_by_key(|(process, operation, sums)| {
        let total = sums.calls.summary().sum();
        (
            Reverse(total),
            process.trace,
            process.pid,
            process.tid,
            *operation,
        )
    });
    let columns = [PROCESS, OPERATION]
        .into_iter()
        .chain(distribution_columns());
    let columns = columns.chain([
        AGAIN.left_out(9),
        TIMEOUTS.left_out(10),
        INTERRUPTED.left_out(8),
    ]);
    let row = |(process, operation, sums): &(Thread, Operation, FutexSums)| {
        let own = [process.clone().into(), operation.name().into()];
        let ends = [sums.again, sums.timeouts, sums.interrupted];
        own.into_iter()
            .chain(distribution_values(&sums.calls))
            .chain(ends.map(Value::from))
            .collect()
    };
    let rows = rows.iter().map(row).collect();
    Section::new(
        "futex_operations",
        "Futex operations",
        columns.collect(),
        rows,
    )
}
