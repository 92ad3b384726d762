//! Tables of single allocations and releases of pages.

use std::cmp::Reverse;
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;

use crate::memory::moves::{Move, Moves, PageMove};
use crate::memory::sizes::Sizes;
use crate::memory::{Done, MemoryPartial, MemoryRules};
use tracebraid_follow::{Head, Thread, ThreadKey};
use tracebraid_tables::{Column, Section, Unit, View};

/// A selected thread and its moves; no thread for moves of unknown threads.
pub(super) struct Row<'a> {
    pub(super) thread: Option<Arc<Thread>>,
    pub(super) moves: &'a Moves,
}

/// A move with its row.
type Moved<'a> = (Move, &'a Row<'a>);

/// The tables. With `only_batches`, releases are recorded in batches only.
pub(super) fn lists(
    rules: &MemoryRules,
    head: &Head,
    partial: &MemoryPartial,
    only_batches: bool,
) -> Vec<Section> {
    let rows = rows(rules, partial);
    let sizes = Sizes {
        head,
        people: &partial.people,
        rows: &rows,
        only_batches,
    };
    vec![
        list(
            ("largest", "Largest allocations"),
            View::Top,
            &largest(rules, &rows),
        ),
        list(("log", "Pages"), View::Log, &log(&rows, only_batches)),
        sizes.section(&rules.options.views),
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
