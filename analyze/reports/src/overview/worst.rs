//! The longest operation of each kind, and the command that shows it.

use crate::overview::Parts;
use tracebraid_tables::{Column, Report, Section, Unit, Value, seconds, shell_word};

/// A kind of operation, and the table of its longest ones.
struct WorstKind {
    name: &'static str,
    section: &'static str,
    begin: &'static str,
    duration: &'static str,
    /// Columns that describe the operation.
    what: &'static [&'static str],
    command: &'static str,
    /// Option of the command that selects the value of a column.
    select: Option<(&'static str, &'static str)>,
}

const KINDS: [WorstKind; 5] = [
    WorstKind {
        name: "syscall",
        section: "longest",
        begin: "begin_ns",
        duration: "duration_ns",
        what: &["syscall"],
        command: "critical-path",
        select: Some(("--tid", "thread")),
    },
    WorstKind {
        name: "CPU wait",
        section: "longest",
        begin: "wakeup_ns",
        duration: "latency_ns",
        what: &[],
        command: "critical-path",
        select: Some(("--tid", "thread")),
    },
    WorstKind {
        name: "disk I/O",
        section: "slowest",
        begin: "issued_ns",
        duration: "latency_ns",
        what: &["disk", "rwbs"],
        command: "disk --view log",
        select: Some(("--disk", "disk")),
    },
    WorstKind {
        name: "interrupt",
        section: "longest",
        begin: "begin_ns",
        duration: "duration_ns",
        what: &["name"],
        command: "irq --view log",
        select: Some(("--cpu", "cpu")),
    },
    WorstKind {
        name: "packet",
        section: "slowest",
        begin: "queued_ns",
        duration: "duration_ns",
        what: &["interface"],
        command: "net --view log",
        select: Some(("--interface", "interface")),
    },
];

/// `origin` is the start of the traces, in nanoseconds from the clock's origin.
pub(super) fn section(parts: &Parts, origin: Option<i64>) -> Section {
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
        .filter_map(|(kind, report)| row(kind, report, origin));
    let columns = vec![
        Column::new("kind", "Kind", Unit::Text),
        Column::new("what", "What", Unit::Text).left_out(2),
        Column::new("begin_ns", "Begin", Unit::Time).left_out(1),
        Column::new("duration_ns", "Duration", Unit::Duration),
        Column::new("thread", "Thread", Unit::Thread)
            .optional()
            .left_out(3),
        Column::new("command", "Look closer", Unit::Command),
    ];
    Section::new("worst", "Longest operations", columns, rows.collect()).short()
}

fn row(kind: &WorstKind, report: &Report, origin: Option<i64>) -> Option<Vec<Value>> {
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
        Value::Text(kind.command_for(section, row, origin)),
    ])
}

impl WorstKind {
    /// The arguments of tracebraid that show an operation and its surroundings, without the traces.
    fn command_for(&self, section: &Section, row: &[Value], origin: Option<i64>) -> String {
        let mut command = self.command.to_owned();
        let selected = self.select.and_then(|(option, column)| {
            let value = match section.cell(row, column)? {
                Value::Thread(thread) => thread.tid?.to_string(),
                Value::Text(text) => shell_word(text),
                Value::Unsigned(number) => number.to_string(),
                _ => return None,
            };
            Some(format!(" {option} {value}"))
        });
        command.extend(selected);
        let time = |key| match section.cell(row, key) {
            Some(Value::Time(time)) => Some(time.0),
            Some(Value::Unsigned(duration)) => i64::try_from(*duration).ok(),
            _ => None,
        };
        let range = || {
            let from = time(self.begin)?
                .checked_sub(origin?)
                .filter(|&from| from >= 0)?;
            let to = time(self.duration)?;
            Some(format!(" --from +{} --to +{}", seconds(from), seconds(to)))
        };
        command.extend(range());
        command
    }
}
