//! Builds the report from the sums.

use std::cmp::Reverse;

use crate::memory::sums::{Count, Sums};
use crate::memory::{MemoryPartial, MemoryRules, is_free, lists};
use tracebraid_follow::{Input, People, Process, Thread};
use tracebraid_tables::{Column, Report, Section, Total, Unit, Value, View};

const THREAD: Column = Column::new("thread", "Thread", Unit::Thread);

/// A table: its title, and its counts (the first is the sort key) with their columns.
struct Table {
    key: &'static str,
    title: &'static str,
    columns: &'static [(Count, Column)],
    /// The first two counts are allocations and releases, whose difference is shown.
    has_balance: bool,
}

const fn count(key: &'static str, title: &'static str) -> Column {
    Column::new(key, title, Unit::Count)
}

const BALANCE: Column = Column::new("balance_pages", "Balance", Unit::Number);

const PAGES: Table = Table {
    key: "threads",
    title: "Pages by thread",
    columns: &[
        (Count::Allocated, count("allocated_pages", "Allocated")),
        (Count::Freed, count("freed_pages", "Freed")),
        (
            Count::Batched,
            count("batched_pages", "In batches").left_out(1),
        ),
        (Count::Failed, count("failed", "Failed").left_out(2)),
    ],
    has_balance: true,
};

const OTHERS: [Table; 4] = [
    Table {
        key: "faults",
        title: "Page faults by thread",
        columns: &[
            (Count::UserFaults, count("user_faults", "User")),
            (Count::KernelFaults, count("kernel_faults", "Kernel")),
            (Count::Faults, count("other_faults", "Other").left_out(1)),
        ],
        has_balance: false,
    },
    Table {
        key: "objects",
        title: "Kernel objects by thread",
        columns: &[
            (
                Count::Taken,
                Column::new("allocated_bytes", "Allocated", Unit::Bytes),
            ),
            (
                Count::Requested,
                Column::new("requested_bytes", "Requested", Unit::Bytes),
            ),
            (Count::Objects, count("objects", "Objects")),
            (Count::ObjectsFreed, count("freed_objects", "Freed")),
        ],
        has_balance: false,
    },
    Table {
        key: "cache",
        title: "Page cache by thread",
        columns: &[
            (Count::Cached, count("added_pages", "Added")),
            (Count::Uncached, count("removed_pages", "Removed")),
        ],
        has_balance: false,
    },
    Table {
        key: "reclaim",
        title: "Page reclaim by thread",
        columns: &[
            (Count::Reclaims, count("direct_reclaims", "Direct")),
            (Count::Reclaimed, count("reclaimed_pages", "Pages")),
            (Count::KswapdWakes, count("kswapd_wakes", "kswapd wakes")),
            (Count::Compactions, count("compactions", "Compactions")),
            (Count::Kills, count("kills", "Kills")),
        ],
        has_balance: false,
    },
];

/// Sums of threads, of the idle threads, and of unknown threads.
struct Parts {
    threads: Vec<(Thread, Sums)>,
    idle: Sums,
    unknown: Sums,
}

impl Parts {
    fn new(partial: &MemoryPartial, adjust: impl Fn(&Sums) -> Sums) -> Parts {
        let mut parts = Parts {
            threads: Vec::new(),
            idle: Sums::default(),
            unknown: adjust(&partial.unknown.sums),
        };
        for (thread, done) in partial.threads.entries() {
            let sums = adjust(&done.sums);
            match thread.tid {
                0 => parts.idle.merge(&sums),
                _ => parts.threads.push((partial.people.thread(thread), sums)),
            }
        }
        parts
    }
}

pub(super) fn report(rules: &MemoryRules, input: &Input, partial: &MemoryPartial) -> Report {
    // Releases in batches are recorded twice, unless only batches were recorded.
    let only_batches = !input.sources.has(is_free);
    let mut parts = Parts::new(partial, |sums| {
        let mut sums = *sums;
        if only_batches {
            sums.add(Count::Freed, sums.get(Count::Batched));
        }
        sums
    });
    let of_threads = parts
        .threads
        .iter()
        .fold(Sums::default(), |mut all, (_, sums)| {
            all.merge(sums);
            all
        });
    let by = [
        ("threads", of_threads),
        ("idle", parts.idle),
        ("unknown", parts.unknown),
    ];
    let head = input.head();
    let mut sections = vec![totals_by(&by)];
    parts
        .threads
        .retain(|(thread, _)| rules.selection.threads.shows(thread));
    sections.push(by_process(&partial.people, &parts.threads));
    sections.extend(
        [PAGES]
            .iter()
            .chain(&OTHERS)
            .map(|table| by_thread(table, &parts.threads)),
    );
    sections.extend(lists::lists(rules, &head, partial, only_batches));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        totals: totals(&by),
        sections,
        head,
        ..Report::default()
    }
}

fn all(by: &[(&str, Sums)]) -> Sums {
    by.iter().fold(Sums::default(), |mut all, (_, sums)| {
        all.merge(sums);
        all
    })
}

fn totals(by: &[(&str, Sums)]) -> Vec<Total> {
    let all = all(by);
    let faults = [Count::UserFaults, Count::KernelFaults, Count::Faults];
    let faults: u64 = faults.into_iter().map(|count| all.get(count)).sum();
    vec![
        Total::new(
            "allocated_pages",
            "pages allocated",
            all.get(Count::Allocated).into(),
        )
        .or_one("page allocated"),
        Total::new("freed_pages", "pages freed", all.get(Count::Freed).into()).or_one("page freed"),
        Total::new("page_faults", "page faults", faults.into()).or_one("page fault"),
    ]
}

/// The values of a row.
fn values(table: &Table, sums: &Sums) -> Vec<Value> {
    let mut values: Vec<Value> = table
        .columns
        .iter()
        .map(|(count, _)| sums.get(*count).into())
        .collect();
    if table.has_balance {
        values.insert(2, balance(sums));
    }
    values
}

fn columns(table: &Table) -> Vec<Column> {
    let mut columns: Vec<Column> = table.columns.iter().map(|(_, column)| *column).collect();
    if table.has_balance {
        columns.insert(2, BALANCE);
    }
    columns
}

/// Pages allocated and not released.
fn balance(sums: &Sums) -> Value {
    let (taken, freed) = (sums.get(Count::Allocated), sums.get(Count::Freed));
    Value::Signed(taken.wrapping_sub(freed) as i64)
}

/// A row for each count, with the parts of threads, of the idle threads, and of unknown threads.
fn totals_by(by: &[(&'static str, Sums); 3]) -> Section {
    let all = [by[0].1, by[1].1, by[2].1, all(by)];
    let mut rows = Vec::new();
    for table in [PAGES]
        .iter()
        .chain(&OTHERS)
        .filter(|table| has(table, &all[3]))
    {
        let amounts = all.iter().map(|sums| values(table, sums));
        let mut amounts: Vec<_> = amounts.map(Vec::into_iter).collect();
        for column in columns(table) {
            let amounts = amounts.iter_mut().filter_map(Iterator::next);
            let what = [column.key.into()].into_iter();
            rows.push(what.chain(amounts).collect());
        }
    }
    Section {
        key: "totals",
        title: "Total".to_owned(),
        view: View::Stats,
        columns: vec![
            Column::new("what", "What", Unit::Text),
            count("threads", "Threads"),
            count("idle", "Idle"),
            count("unknown", "Unknown"),
            count("all", "All"),
        ],
        rows,
        is_long: false,
        ..Section::default()
    }
}

fn has(table: &Table, sums: &Sums) -> bool {
    table.columns.iter().any(|(count, _)| sums.get(*count) > 0)
}

/// Sort key for the rows of a table, greatest first.
fn most(table: &Table, sums: &Sums) -> Vec<Reverse<u64>> {
    table
        .columns
        .iter()
        .map(|(count, _)| Reverse(sums.get(*count)))
        .collect()
}

fn by_thread(table: &Table, threads: &[(Thread, Sums)]) -> Section {
    let mut rows: Vec<_> = threads
        .iter()
        .filter(|(_, sums)| has(table, sums))
        .collect();
    rows.sort_by_cached_key(|(thread, sums)| (most(table, sums), thread.trace, thread.tid));
    let row = |(thread, sums): &(Thread, Sums)| {
        let thread = [thread.clone().into()].into_iter();
        thread.chain(values(table, sums)).collect()
    };
    Section {
        key: table.key,
        title: table.title.to_owned(),
        view: View::Stats,
        columns: [THREAD].into_iter().chain(columns(table)).collect(),
        rows: rows.into_iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

/// Pages and faults by process.
fn by_process(people: &People, threads: &[(Thread, Sums)]) -> Section {
    let of_pages = threads
        .iter()
        .filter(|(_, sums)| has(&PAGES, sums) || has(&OTHERS[0], sums));
    let add = |sum: &mut Sums, sums: &Sums| sum.merge(sums);
    let threads = of_pages.map(|(thread, sums)| (thread.clone(), sums));
    let mut rows = people.processes(threads, add);
    rows.sort_by_cached_key(|(process, sums)| {
        let Process {
            trace, pid, tid, ..
        } = process;
        (
            most(&PAGES, sums),
            most(&OTHERS[0], sums),
            *trace,
            *pid,
            *tid,
        )
    });
    let row = |(process, sums): (Process, Sums)| {
        let who = [Thread::from(&process).into(), process.threads.into()].into_iter();
        let pages = values(&PAGES, &sums);
        who.chain(pages).chain(values(&OTHERS[0], &sums)).collect()
    };
    let about = [
        Column::new("process", "Process", Unit::Process),
        count("threads", "Threads").left_out(3),
    ];
    let columns = about.into_iter().chain(columns(&PAGES));
    Section {
        key: "processes",
        title: "By process".to_owned(),
        view: View::Stats,
        columns: columns.chain(self::columns(&OTHERS[0])).collect(),
        rows: rows.into_iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}
