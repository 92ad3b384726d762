//! The report.

use std::collections::BTreeMap;

use serde::Serialize;
use tracebraid_kernel_model::{FdType, Syscall};

use crate::io::IoAnalysis;
use crate::io::partial::IoPartial;
use crate::io::sums::Sums;
use crate::io::totals::{Losses, Sheet};
use tracebraid_follow::{Head, KernelReport, People, Process, Selection, Thread, ThreadKey};
use tracebraid_tables::Lists;

/// What was read and written. Times and latencies in nanoseconds, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IoReport {
    /// The range and the machines.
    #[serde(flatten)]
    pub head: Head,
    /// All together.
    pub total: IoStats,
    /// By type of descriptor; types without calls are left out.
    pub types: Vec<IoType>,
    /// By system call, most bytes first.
    pub syscalls: Vec<IoSyscall>,
    /// By process, most bytes first; threads whose process is not known are listed alone.
    pub processes: Vec<IoProcess>,
    /// By thread, most bytes first.
    pub threads: Vec<IoThread>,
    /// Tables of single calls, which the analysis of files makes; this one makes none.
    #[serde(flatten)]
    pub lists: Lists,
}

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IoStats {
    /// Calls that ended in the range.
    pub calls: u64,
    /// Those of them that failed.
    pub errors: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// From entry to exit, summed.
    pub latency_ns: u64,
    /// Mean over the calls, rounded down.
    pub average_latency_ns: u64,
    /// The longest.
    pub longest_latency_ns: u64,
    /// Calls that began in the range and whose end is not in the trace.
    pub unfinished: u64,
    /// Ends in the range of calls whose beginning is not in the trace.
    pub unstarted: u64,
}

/// A type of descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IoType {
    /// The type.
    #[serde(rename = "type")]
    pub kind: FdType,
    /// Calls with descriptors of that type. A call between two descriptors counts for what it
    /// reads from; its written bytes for what it writes to. Unfinished calls are not told apart.
    #[serde(flatten)]
    pub stats: IoStats,
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IoSyscall {
    /// Its name in the kernel.
    pub name: &'static str,
    /// Its calls. Unfinished calls are not told apart.
    #[serde(flatten)]
    pub stats: IoStats,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoProcess {
    /// Who it is; threads that made calls are counted.
    #[serde(flatten)]
    pub process: Process,
    /// Its calls.
    #[serde(flatten)]
    pub stats: IoStats,
    /// By type of descriptor.
    pub types: Vec<IoType>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoThread {
    /// Who it is.
    #[serde(flatten)]
    pub thread: Thread,
    /// Its calls.
    #[serde(flatten)]
    pub stats: IoStats,
    /// By type of descriptor.
    pub types: Vec<IoType>,
}

impl KernelReport for IoReport {
    fn head(&self) -> &Head {
        &self.head
    }

    fn is_empty(&self) -> bool {
        self.total.calls == 0
    }

    fn truncate(&mut self, rows: usize) {
        self.processes.truncate(rows);
        self.threads.truncate(rows);
        self.lists.truncate(rows);
    }
}

impl IoReport {
    /// What is amiss with the patterns that chose none of the system calls, for people.
    pub fn unmatched(&self, selection: &Selection) -> Vec<String> {
        let seen = |call: &Syscall| self.syscalls.iter().any(|row| row.name == call.name());
        selection.unmatched_calls(Syscall::all().filter(seen))
    }
}

/// Sums that are being added up.
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
        calls: sums.calls,
        errors: sums.errors,
        read_bytes: sums.read,
        written_bytes: sums.written,
        latency_ns: sums.latency,
        average_latency_ns: sums.latency.checked_div(sums.calls).unwrap_or(0),
        longest_latency_ns: sums.longest,
        unfinished: losses.unfinished,
        unstarted: losses.unstarted,
    }
}

/// Sort key: most bytes, then most calls first.
fn order(stats: &IoStats) -> std::cmp::Reverse<(u64, u64)> {
    std::cmp::Reverse((stats.read_bytes.saturating_add(stats.written_bytes), stats.calls))
}

pub(super) fn report(analysis: &IoAnalysis, partial: IoPartial) -> IoReport {
    let (totals, people) = partial.finish(&analysis.input.selection);
    let mut accounts: BTreeMap<ThreadKey, Account> = BTreeMap::new();
    let mut syscalls: BTreeMap<Syscall, Sums> = BTreeMap::new();
    let mut total = Account::default();
    let filter = &analysis.input.selection.threads;
    let chosen = analysis.input.selection.chosen_calls();
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
    accounts.values().for_each(|account| total.add(account));
    let mut syscalls: Vec<_> = syscalls
        .into_iter()
        .map(|(call, sums)| IoSyscall {
            name: call.name(),
            stats: stats(&sums, Losses::default()),
        })
        .collect();
    syscalls.sort_by_key(|row| (order(&row.stats), row.name));
    IoReport {
        head: analysis.input.head(),
        total: total.stats(),
        types: total.types(),
        syscalls,
        processes: processes(&accounts, &people),
        threads: threads(&accounts, &people),
        lists: Lists::default(),
    }
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
