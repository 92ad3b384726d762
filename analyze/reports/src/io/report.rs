//! Builds the report from the sums.

use std::collections::BTreeMap;

use tracebraid_kernel_model::{FdType, Syscall};

use crate::io::partial::IoPartial;
use crate::io::sections;
use crate::io::sums::Sums;
use crate::io::totals::{Losses, Sheet, Totals};
use crate::io::{IoAnalysis, IoOptions};
use tracebraid_follow::{People, Process, Thread, ThreadKey};
use tracebraid_tables::Report;

/// Sums over calls. Times and latencies in nanoseconds, sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IoStats {
    pub(super) sums: Sums,
    /// Calls that began in the range and whose exit is not in the trace, and exits in the range
    /// whose entry is not.
    pub(super) losses: Losses,
}

/// The row of a type of descriptor. A call between two descriptors counts for the type it reads
/// from, its written bytes for the type it writes to. Losses are not counted by type.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoType {
    pub(super) kind: FdType,
    pub(super) stats: IoStats,
}

/// The row of a system call. Losses are not counted by system call.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoSyscall {
    pub(super) call: Syscall,
    pub(super) stats: IoStats,
}

/// The row of a process, with its threads that made calls.
#[derive(Clone, Debug)]
pub(super) struct IoProcess {
    pub(super) process: Process,
    pub(super) stats: IoStats,
    pub(super) types: Vec<IoType>,
}

/// The row of a thread.
#[derive(Clone, Debug)]
pub(super) struct IoThread {
    pub(super) thread: Thread,
    pub(super) stats: IoStats,
    pub(super) types: Vec<IoType>,
}

impl IoStats {
    /// Mean over the calls, rounded down.
    pub(super) fn average_latency(&self) -> u64 {
        self.sums.latency.checked_div(self.sums.calls).unwrap_or(0)
    }
}

/// Notes for patterns of system calls that matched no call.
fn unmatched(options: &IoOptions, rows: &[IoSyscall]) -> Vec<String> {
    let seen = |call: &Syscall| rows.iter().any(|row| row.call.name() == call.name());
    options.calls.unmatched(Syscall::all().filter(seen))
}

/// Sums of a thread or process.
#[derive(Clone, Debug, Default)]
struct Account {
    total: Sums,
    losses: Losses,
    types: BTreeMap<FdType, Sums>,
}

impl Account {
    fn add(&mut self, other: &Account) {
        self.total.add(&other.total);
        self.losses.unfinished += other.losses.unfinished;
        self.losses.unstarted += other.losses.unstarted;
        for (kind, sums) in &other.types {
            self.types.entry(*kind).or_default().add(sums);
        }
    }

    fn of(sheet: &Sheet, losses: Losses) -> Account {
        let mut account = Account {
            losses,
            ..Account::default()
        };
        for (_, kind, sums) in sheet {
            account.total.add(sums);
            account.types.entry(*kind).or_default().add(sums);
        }
        account
    }

    fn stats(&self) -> IoStats {
        stats(&self.total, self.losses)
    }

    fn types(&self) -> Vec<IoType> {
        self.types
            .iter()
            .map(|(kind, sums)| IoType {
                kind: *kind,
                stats: stats(sums, Losses::default()),
            })
            .collect()
    }
}

fn stats(sums: &Sums, losses: Losses) -> IoStats {
    IoStats {
        sums: *sums,
        losses,
    }
}

/// Sort key: most bytes, then most calls first.
fn order(stats: &IoStats) -> std::cmp::Reverse<(u64, u64)> {
    let sums = &stats.sums;
    std::cmp::Reverse((sums.read.saturating_add(sums.written), sums.calls))
}

pub(super) fn report(analysis: &IoAnalysis, partial: IoPartial) -> Report {
    let (totals, people) = partial.finish(&analysis.rules);
    let (accounts, syscalls) = sums(analysis, &totals, &people);
    let mut total = Account::default();
    accounts.values().for_each(|account| total.add(account));
    let mut syscalls: Vec<_> = syscalls
        .into_iter()
        .map(|(call, sums)| IoSyscall {
            call,
            stats: stats(&sums, Losses::default()),
        })
        .collect();
    syscalls.sort_by_key(|row| (order(&row.stats), row.call.name()));
    let head = analysis.input.head();
    let stats = total.stats();
    Report {
        totals: sections::totals(&stats),
        summary: sections::summary(&head, &stats),
        is_chosen: Some(stats.sums.calls > 0),
        notes: unmatched(&analysis.rules.options, &syscalls),
        sections: vec![
            sections::types(&total.types()),
            sections::syscalls(&syscalls),
            sections::processes(processes(&accounts, &people)),
            sections::threads(threads(&accounts, &people)),
        ],
        head,
        ..Report::default()
    }
}

/// Sums of the selected calls, by thread and by system call.
fn sums(
    analysis: &IoAnalysis,
    totals: &Totals,
    people: &People,
) -> (BTreeMap<ThreadKey, Account>, BTreeMap<Syscall, Sums>) {
    let mut accounts: BTreeMap<ThreadKey, Account> = BTreeMap::new();
    let mut syscalls: BTreeMap<Syscall, Sums> = BTreeMap::new();
    let filter = &analysis.input.selection.threads;
    let chosen = analysis.rules.options.calls.chosen();
    for (key, sheet) in totals
        .sheets
        .entries()
        .filter(|(key, _)| filter.shows(&people.thread(*key)))
    {
        let sheet: Sheet = sheet
            .iter()
            .filter(|(call, ..)| chosen.contain(*call))
            .copied()
            .collect();
        if sheet.is_empty() {
            continue;
        }
        accounts
            .entry(key)
            .or_default()
            .add(&Account::of(&sheet, Losses::default()));
        for (call, _, sums) in &sheet {
            syscalls.entry(*call).or_default().add(sums);
        }
    }
    for (key, losses) in totals
        .losses
        .entries()
        .filter(|(key, _)| filter.shows(&people.thread(*key)))
    {
        if *losses != Losses::default() {
            accounts
                .entry(key)
                .or_default()
                .add(&Account::of(&Vec::new(), *losses));
        }
    }
    (accounts, syscalls)
}

fn threads(accounts: &BTreeMap<ThreadKey, Account>, people: &People) -> Vec<IoThread> {
    let row = |(key, account): (&ThreadKey, &Account)| IoThread {
        thread: people.thread(*key),
        stats: account.stats(),
        types: account.types(),
    };
    let mut rows: Vec<_> = accounts.iter().map(row).collect();
    rows.sort_by_key(|row| (order(&row.stats), row.thread.trace, row.thread.tid));
    rows
}

fn processes(accounts: &BTreeMap<ThreadKey, Account>, people: &People) -> Vec<IoProcess> {
    let of_threads = accounts
        .iter()
        .map(|(key, account)| (people.thread(*key), account));
    let sums = people.processes(of_threads, |sum: &mut Account, account| sum.add(account));
    let row = |(process, account): (Process, Account)| IoProcess {
        process,
        stats: account.stats(),
        types: account.types(),
    };
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| {
        let process = &row.process;
        (order(&row.stats), process.trace, process.pid, process.tid)
    });
    rows
}
