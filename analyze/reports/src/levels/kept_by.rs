//! The tables of the threads that had a CPU while user-level threads were ready.

use std::cmp::Reverse;

use tracebraid_follow::{Thread, ThreadKey};
use tracebraid_tables::{Column, Section, Unit, Value};

use crate::levels::LevelPartial;
use crate::levels::cpu_turns::{EARLIER, SIBLINGS, STRANGERS, UNKNOWN};
use crate::levels::level_sums::Spent;
use crate::levels::level_tables::{THREAD, count, duration, share};
use crate::levels::report::UltRow;

/// The part that a thread has in the delay of another.
#[derive(Clone, Copy)]
enum Keeper {
    /// User-level threads of the same process.
    Siblings,
    /// User-level threads of other processes.
    Strangers,
    /// The scheduler of an LWP of the same process.
    Scheduler,
    /// A thread for which the kernel preempted an LWP.
    Preemptor,
    Idle,
    Earlier,
    Unknown,
}

impl Keeper {
    fn name(self) -> &'static str {
        match self {
            Keeper::Siblings => "user-level threads",
            Keeper::Strangers => "other processes",
            Keeper::Scheduler => "scheduler",
            Keeper::Preemptor => "preemptor",
            Keeper::Idle => "idle",
            Keeper::Earlier => "earlier",
            Keeper::Unknown => "unknown",
        }
    }

    fn of(waiter: &UltRow<'_>, by: ThreadKey, thread: &Thread) -> Keeper {
        match by.tid {
            UNKNOWN => Keeper::Unknown,
            EARLIER => Keeper::Earlier,
            SIBLINGS => Keeper::Siblings,
            STRANGERS => Keeper::Strangers,
            0 => Keeper::Idle,
            _ if thread.pid == Some(waiter.described.pid) => Keeper::Scheduler,
            _ => Keeper::Preemptor,
        }
    }
}

pub(super) fn kept_by(partial: &LevelPartial, ults: &[UltRow<'_>]) -> Section {
    let of_row = |at: usize, row: &UltRow<'_>| {
        let key = row.key;
        let kept = row.sums.kept_by.iter();
        kept.map(move |(&tid, &spent)| (Reverse(spent.ns), key, tid, spent, at))
            .collect::<Vec<_>>()
    };
    let rows = ults.iter().enumerate();
    let mut lines: Vec<_> = rows.flat_map(|(at, row)| of_row(at, row)).collect();
    lines.sort_unstable_by_key(|line| (line.0, line.1, line.2));
    let row = |(_, key, tid, spent, at): (_, ThreadKey, i32, Spent, usize)| {
        let row = ults.get(at)?;
        let by = ThreadKey { tid, ..key };
        let thread = partial.named(by);
        let keeper = Keeper::of(row, by, &thread);
        let thread = match keeper {
            Keeper::Scheduler | Keeper::Preemptor => thread.into(),
            _ => Value::None,
        };
        Some(vec![
            row.thread.clone().into(),
            Value::text(keeper.name()),
            thread,
            spent.count.into(),
            spent.ns.into(),
            share(spent.ns, row.sums.ready.ns),
        ])
    };
    let columns = vec![
        THREAD,
        Column::new("keeper", "Kept by", Unit::Text),
        Column::new("keeper_thread", "Thread", Unit::Thread).optional(),
        count("turns", "Turns on the CPU")
            .headed("Turns")
            .left_out(1),
        duration("kept_ns", "Ready without an LWP").headed("Ready"),
        Column::new("share", "Share of the time ready", Unit::Share).headed("Share"),
    ];
    let rows = lines.into_iter().filter_map(row).collect();
    Section::new(
        "kept_by",
        "CPU in use while ready without an LWP",
        columns,
        rows,
    )
}

/// User-level threads for whose turns others waited.
pub(super) fn keepers(ults: &[UltRow<'_>]) -> Section {
    let mut rows: Vec<_> = ults.iter().filter(|row| row.sums.keeps.count > 0).collect();
    rows.sort_by_key(|row| (Reverse(row.sums.keeps.ns), row.key));
    let row = |row: &UltRow<'_>| {
        let keeps = row.sums.keeps;
        vec![
            row.thread.clone().into(),
            keeps.count.into(),
            keeps.ns.into(),
        ]
    };
    let columns = vec![
        THREAD,
        count("turns", "Turns on the CPU, once for each ready thread").headed("Turns"),
        duration("kept_ns", "Time in which others were ready").headed("Others ready"),
    ];
    let rows = rows.into_iter().map(row).collect();
    Section::new(
        "keepers",
        "User-level threads that had a CPU while others were ready",
        columns,
        rows,
    )
}
