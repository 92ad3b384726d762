//! Names of the kernel's own tracepoints, which perf and ftrace record, for those of LTTng.

use super::level_tracer::LevelFields;
use crate::events::Record;

const SYSCALLS: [[&str; 2]; 2] = [
    ["syscall_entry_", "syscalls:sys_enter_"],
    ["syscall_exit_", "syscalls:sys_exit_"],
];

const CLASSES: [[&str; 2]; 3] = [
    ["irq_softirq_", "irq:softirq_"],
    ["irq_handler_", "irq:irq_handler_"],
    ["net_if_receive_skb", "net:netif_receive_skb"],
];

const FIELDS: [[&str; 2]; 5] = [
    ["tid", "pid"],
    ["prev_tid", "prev_pid"],
    ["next_tid", "next_pid"],
    ["parent_tid", "parent_pid"],
    ["child_tid", "child_pid"],
];

fn replaced(name: &str, pairs: &[[&str; 2]], from: usize) -> Option<String> {
    pairs.iter().find_map(|pair| {
        Some(format!(
            "{}{}",
            pair[1 - from],
            name.strip_prefix(pair[from])?
        ))
    })
}

fn renamed(name: &str, from: usize) -> Option<String> {
    replaced(name, &SYSCALLS, from).or_else(|| replaced(name, &CLASSES, from))
}

/// An event of LTTng with the names of the kernel's tracepoints.
pub(super) fn of_tracepoint(name: &str, fields: LevelFields) -> (String, LevelFields) {
    let own = renamed(name, 0).unwrap_or_else(|| format!("sched:{name}"));
    let field = |(field, value): (&'static str, _)| {
        let pair = FIELDS.iter().find(|pair| pair[0] == field);
        // LTTng's ids of processes; the kernel has only those of threads in these events.
        let is_process = FIELDS.iter().any(|pair| pair[1] == field);
        (!is_process).then(|| (pair.map_or(field, |pair| pair[1]), value))
    };
    (own, fields.into_iter().filter_map(field).collect())
}

/// An event with LTTng's names, whichever it has.
pub(super) fn of_lttng(mut record: Record) -> Record {
    if !record.name.contains(':') || record.name.starts_with("tracebraid") {
        return record;
    }
    let sched = record.name.strip_prefix("sched:").map(str::to_owned);
    record.name = renamed(&record.name, 1).or(sched).unwrap_or_default();
    for [lttng, kernel] in FIELDS {
        if let Some(value) = record.ints.remove(kernel) {
            record.ints.insert(lttng.to_owned(), value);
        }
    }
    record
}
