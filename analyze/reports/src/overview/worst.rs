//! What took longest, of each kind, and when.

use crate::overview::Parts;
use tracebraid_tables::{Column, Report, Section, Unit, Value};

/// Where to find the longest of a kind.
struct WorstKind {
    name: &'static str,
    section: &'static str,
    begin: &'static str,
    duration: &'static str,
    /// Columns that say what it was.
    what: &'static [&'static str],
    command: &'static str,
}

const KINDS: [WorstKind; 5] = [
    WorstKind {
        name: "syscall",
        section: "longest",
        begin: "begin_ns",
        duration: "duration_ns",
        what: &["syscall"],
        command: "tracebraid syscalls",
    },
    WorstKind {
        name: "CPU wait",
        section: "longest",
        begin: "wakeup_ns",
        duration: "latency_ns",
        what: &[],
        command: "tracebraid sched",
    },
    WorstKind {
        name: "disk I/O",
        section: "slowest",
        begin: "issued_ns",
        duration: "latency_ns",
        what: &["disk", "rwbs"],
        command: "tracebraid disk",
    },
    WorstKind {
        name: "interrupt",
        section: "longest",
        begin: "begin_ns",
        duration: "duration_ns",
        what: &["name"],
        command: "tracebraid irq",
    },
    WorstKind {
        name: "packet",
        section: "slowest",
        begin: "queued_ns",
        duration: "duration_ns",
        what: &["interface"],
        command: "tracebraid net",
    },
];

pub(super) fn section(parts: &Parts) -> Section {
    let reports = [
        &parts.syscalls,
        &parts.sched,
        &parts.disk,
        &parts.irq,
        &parts.net,
    ];
    let rows = KINDS
        .iter()
        .zip(reports)
        .filter_map(|(kind, report)| row(kind, report));
    let columns = vec![
        Column::new("kind", "Longest", Unit::Text),
        Column::new("what", "What", Unit::Text).left_out(2),
        Column::new("begin_ns", "Begin", Unit::Time).left_out(3),
        Column::new("duration_ns", "Duration", Unit::Duration),
        Column::new("thread", "Thread", Unit::Thread).left_out(1),
        Column::new("command", "Look closer", Unit::Command),
    ];
    Section::new("worst", "What took longest", columns, rows.collect()).short()
}

fn row(kind: &WorstKind, report: &Report) -> Option<Vec<Value>> {
    let section = report.section(kind.section)?;
    let row = section.rows.first()?;
    let what = kind
        .what
        .iter()
        .filter_map(|key| match section.cell(row, key) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        });
    let what = what.collect::<Vec<_>>().join(" ");
    let cell = |key| section.cell(row, key).cloned().unwrap_or(Value::None);
    Some(vec![
        kind.name.into(),
        Value::Text(what),
        cell(kind.begin),
        cell(kind.duration),
        cell("thread"),
        kind.command.into(),
    ])
}
