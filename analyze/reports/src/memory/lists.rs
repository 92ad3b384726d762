//! Tables of single allocations and releases of pages.

use std::cmp::Reverse;
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;

use crate::memory::moves::{Move, Moves, PageMove, size};
use crate::memory::{Done, MemoryPartial, MemoryRules};
use tracebraid_follow::{Thread, ThreadKey};
use tracebraid_tables::{Column, Section, Unit, Value, View};

/// A selected thread and its moves; no thread for moves of unknown threads.
struct Row<'a> {
    thread: Option<Arc<Thread>>,
    moves: &'a Moves,
}

/// A move with its row.
type Moved<'a> = (Move, &'a Row<'a>);

/// The tables. With `only_batches`, releases are recorded in batches only.
pub(super) fn lists(
    rules: &MemoryRules,
    partial: &MemoryPartial,
    only_batches: bool,
) -> Vec<Section> {
    let rows = rows(rules, partial);
    vec![
        list(
            ("largest", "Largest allocations"),
            View::Top,
            &largest(rules, &rows),
        ),
        list(("log", "Pages"), View::Log, &log(&rows, only_batches)),
        distribution(&rows, only_batches),
    ]
}

fn rows<'a>(rules: &MemoryRules, partial: &'a MemoryPartial) -> Vec<Row<'a>> {
    let own = |(key, done): (ThreadKey, &'a Done)| {
        let mut thread = partial.people.thread(key);
        if key.tid == 0 {
            thread.name = Some("idle".to_owned());
        }
        row(rules, thread, true, done)
    };
    let threads = partial.threads.entries().filter_map(own);
    let unknown = row(rules, Thread::default(), false, &partial.unknown);
    threads.chain(unknown).collect()
}

/// The row of a thread that is selected and moved pages.
fn row<'a>(rules: &MemoryRules, thread: Thread, is_known: bool, done: &'a Done) -> Option<Row<'a>> {
    let moves = done.moves.as_deref()?;
    let is_shown = rules.selection.threads.shows(&thread);
    let thread = is_known.then(|| Arc::new(thread));
    is_shown.then_some(Row { thread, moves })
}

/// Sort key of a thread among the moves of one time and CPU.
fn rank(row: &Row<'_>) -> Option<(u32, Option<i32>)> {
    row.thread.as_ref().map(|thread| (thread.trace, thread.tid))
}

fn largest<'a>(rules: &MemoryRules, rows: &'a [Row<'a>]) -> Vec<Moved<'a>> {
    let most = rules.keeps.top;
    let of_each = |row: &'a Row<'a>| {
        let own = row.moves.top.clone().into_sorted(most);
        own.into_iter().map(move |moved| (moved, row))
    };
    let mut largest: Vec<Moved<'_>> = rows.iter().flat_map(of_each).collect();
    largest.sort_by_key(|(moved, row)| (Reverse(*moved), rank(row)));
    largest.truncate(most);
    largest
}

/// All moves in the order of time.
fn log<'a>(rows: &'a [Row<'a>], only_batches: bool) -> Vec<Moved<'a>> {
    let is_told = |moved: &&Move| moved.what != PageMove::Batched || only_batches;
    let of_each = |row: &'a Row<'a>| {
        let own = row.moves.log.iter().filter(is_told);
        own.map(move |moved| (*moved, row))
    };
    let mut log: Vec<Moved<'_>> = rows.iter().flat_map(of_each).collect();
    log.sort_by_key(|(moved, row)| {
        (
            moved.time.0,
            moved.cpu.0,
            rank(row),
            moved.what,
            moved.order,
        )
    });
    log
}

/// A table with a row for each move.
fn list((key, title): (&'static str, &str), view: View, moves: &[Moved<'_>]) -> Section {
    let row = |(moved, row): &Moved<'_>| {
        let what = match moved.what {
            PageMove::Allocated => "allocated",
            PageMove::Failed => "failed",
            PageMove::Freed | PageMove::Batched => "freed",
        };
        vec![
            Timestamp(moved.time.0).into(),
            what.into(),
            u64::from(moved.order).into(),
            moved.size().into(),
            u64::from(moved.cpu.0.cpu).into(),
            row.thread.clone().into(),
        ]
    };
    let columns = vec![
        Column::new("time_ns", "Time", Unit::Time),
        Column::new("event", "Event", Unit::Text),
        Column::new("order", "Order", Unit::Id).left_out(1),
        Column::new("size_bytes", "Size", Unit::Bytes),
        Column::new("cpu", "CPU", Unit::Cpu).left_out(2),
        Column::new("thread", "Thread", Unit::Thread).optional(),
    ];
    let rows = moves.iter().map(row).collect();
    Section {
        view,
        ..Section::new(key, title, columns, rows)
    }
}

/// Numbers of allocations and releases by size.
fn distribution(rows: &[Row<'_>], only_batches: bool) -> Section {
    let mut all = Moves::default();
    for row in rows {
        all.add_orders(&row.moves.orders);
        all.batched += row.moves.batched;
    }
    if only_batches && all.batched > 0 {
        all.add_orders(&[[0, all.batched]]);
    }
    let group = |(at, name): (usize, &str)| {
        let counts: Vec<u64> = all.orders.iter().map(|counts| counts[at]).collect();
        let last = counts.iter().rposition(|&count| count > 0);
        let upto = last.map_or(0, |last| last + 1);
        let counts = counts.into_iter().zip(0u8..).take(upto);
        let rows = counts.map(|(count, order)| {
            let order_and_size = [u64::from(order).into(), size(order).into()];
            let about = std::iter::once(Value::text(name)).chain(order_and_size);
            about.chain([count.into()]).collect()
        });
        rows.collect::<Vec<Vec<Value>>>()
    };
    Section {
        key: "distribution",
        title: "Pages by size".to_owned(),
        view: View::Freq,
        columns: vec![
            Column::new("of", "Of", Unit::Text),
            Column::new("order", "Order", Unit::Id),
            Column::new("size_bytes", "Size", Unit::Bytes),
            Column::new("count", "Count", Unit::Count),
        ],
        rows: ["allocated", "freed"]
            .into_iter()
            .enumerate()
            .flat_map(group)
            .collect(),
        is_long: false,
        ..Section::default()
    }
}
