//! The tables of functions and of system calls.

use std::cmp::Reverse;

use tracebraid_follow::{Thread, ThreadKey};
use tracebraid_kernel_model::Syscall;
use tracebraid_tables::{Column, Section, Unit, Value};

use crate::levels::LevelPartial;
use crate::levels::call_stack::{CallSums, CallsOfThread};
use crate::levels::level_tables::{THREAD, count, duration};
use crate::levels::report::{LwpRow, UltRow};

/// The calls of a function by a thread.
struct CallRow<'a> {
    key: ThreadKey,
    thread: &'a Thread,
    name: &'a str,
    sums: CallSums,
}

fn nanoseconds(ns: i64) -> Value {
    Value::Unsigned(ns.max(0).unsigned_abs())
}

fn mean(ns: i64, calls: u64) -> Value {
    let ns = ns.max(0).unsigned_abs();
    ns.checked_div(calls).map_or(Value::None, Value::Unsigned)
}

/// By time on a CPU, then by thread and name.
fn sorted(mut rows: Vec<CallRow<'_>>) -> Vec<CallRow<'_>> {
    rows.sort_by_key(|row| (Reverse(row.sums.active_ns), row.key, row.name));
    rows
}

pub(super) fn functions(
    partial: &LevelPartial,
    ults: &[UltRow<'_>],
    lwps: &[LwpRow<'_>],
) -> Section {
    let ults = ults.iter().map(|row| (row.key, &row.thread, row.sums));
    let lwps = lwps.iter().map(|row| (row.key, &row.thread, row.own));
    let rows = ults.chain(lwps).flat_map(|(key, thread, sums)| {
        let calls = sums.made.functions.by_key.iter();
        calls.filter_map(move |(function, &sums)| {
            Some(CallRow {
                key,
                thread,
                name: partial.functions.get(function)?,
                sums,
            })
        })
    });
    let row = |row: CallRow<'_>| {
        let CallSums {
            calls,
            unfinished,
            active_ns,
            own_ns,
            wall_ns,
        } = row.sums;
        vec![
            row.thread.clone().into(),
            Value::text(row.name),
            calls.into(),
            unfinished.into(),
            nanoseconds(active_ns),
            nanoseconds(own_ns),
            wall_ns.into(),
            mean(active_ns, calls),
        ]
    };
    let columns = vec![
        THREAD,
        Column::new("function", "Function", Unit::Text),
        count("calls", "Calls"),
        count("unfinished", "Unfinished calls")
            .headed("Unfinished")
            .left_out(4),
        duration("active_ns", "Active"),
        duration("own_ns", "Active in the function itself").headed("Own"),
        duration("wall_ns", "From entry to exit")
            .headed("Wall")
            .left_out(2),
        duration("average_ns", "Mean active time of a call")
            .headed("Average")
            .left_out(3)
            .optional(),
    ];
    let rows = sorted(rows.collect()).into_iter().map(row).collect();
    Section::new("functions", "Functions", columns, rows)
}

pub(super) fn system_calls(ults: &[UltRow<'_>]) -> Section {
    let rows = ults.iter().flat_map(|ult| {
        let calls = ult.sums.made.system.by_key.iter();
        calls.map(|(&key, &sums)| CallRow {
            key: ult.key,
            thread: &ult.thread,
            name: u16::try_from(key).map_or("unknown", |number| Syscall(number).name()),
            sums,
        })
    });
    let row = |row: CallRow<'_>| {
        let CallSums {
            calls,
            unfinished,
            active_ns,
            wall_ns,
            ..
        } = row.sums;
        let active = active_ns.max(0).unsigned_abs();
        vec![
            row.thread.clone().into(),
            Value::text(row.name),
            calls.into(),
            unfinished.into(),
            active.into(),
            wall_ns.saturating_sub(active).into(),
            wall_ns
                .checked_div(calls)
                .map_or(Value::None, Value::Unsigned),
        ]
    };
    let columns = vec![
        THREAD,
        Column::new("call", "System call", Unit::Text).headed("Call"),
        count("calls", "Calls"),
        count("unfinished", "Unfinished calls")
            .headed("Unfinished")
            .left_out(2),
        duration("active_ns", "Active"),
        duration("waiting_ns", "Not on a CPU").headed("Waiting"),
        duration("average_ns", "Mean duration of a call")
            .headed("Average")
            .left_out(1)
            .optional(),
    ];
    let rows = sorted(rows.collect()).into_iter().map(row).collect();
    Section::new("calls", "System calls", columns, rows)
}

/// Points out exits without an entry.
pub(super) fn note(ults: &[UltRow<'_>]) -> Option<String> {
    let strays = |calls: &CallsOfThread| calls.strays;
    let strays: u64 = ults
        .iter()
        .map(|row| strays(&row.sums.made.functions))
        .sum();
    let exits = match strays {
        0 => return None,
        1 => "1 exit of a function has".to_owned(),
        _ => format!("{strays} exits of functions have"),
    };
    Some(format!(
        "{exits} no entry: the call began before the trace, or its entry was lost"
    ))
}
