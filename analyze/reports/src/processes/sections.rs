//! The tables, the summary and the totals of the report.

use crate::processes::life::NamedBy;
use crate::processes::report::{ProcessRow, ProcessTotal};
use tracebraid_engine::parallel;
use tracebraid_follow::{Head, Thread};
use tracebraid_tables::{Branch, Column, Forms, Section, Sentence, Total, Unit, Value, lengths};

pub(super) fn summary(head: &Head, total: &ProcessTotal) -> Sentence {
    let used = &total.used;
    Sentence::default()
        .number(total.processes, "process", "processes")
        .words(" with ")
        .number(total.threads, "thread", "threads")
        .words(" over ")
        .value(Unit::Duration, head.duration_ns)
        .words(": ")
        .value(Unit::Duration, used.active)
        .words(" on CPUs, ")
        .number(used.calls, "system call", "system calls")
        .words(", ")
        .value(Unit::Bytes, used.read)
        .words(" read, ")
        .value(Unit::Bytes, used.written)
        .words(" written")
}

/// The totals without those of the tree.
pub(super) fn few_totals(total: &ProcessTotal) -> Vec<Total> {
    let used = &total.used;
    vec![
        Total::new("processes", "processes", total.processes.into()).or_one("process"),
        Total::new("active_ns", "active", used.active.into()).of(Unit::Duration),
        Total::new("syscalls", "system calls", used.calls.into()).or_one("system call"),
        Total::new("read_bytes", "read", used.read.into()).of(Unit::Bytes),
        Total::new("written_bytes", "written", used.written.into()).of(Unit::Bytes),
    ]
}

/// All totals.
pub(super) fn totals(total: &ProcessTotal) -> Vec<Total> {
    let mut totals = few_totals(total);
    let threads = Total::new("threads", "threads", total.threads.into());
    totals.insert(1, threads.or_one("thread"));
    let unknown = total.unknown_thread.into();
    let unknown = Total::new("unknown_thread", "calls of unknown threads", unknown);
    totals.push(unknown.or_one("call of an unknown thread"));
    totals
}

const MACHINE: Forms = Forms::JSON.and(Forms::CSV);
const TEXT: Forms = Forms::TEXT;
const CSV: Forms = Forms::CSV;
const LAMI: Forms = Forms::LAMI;

/// A name of a process.
const NAMES: &[Column] = &[
    Column::json("time_ns", Unit::Time),
    Column::json("name", Unit::Text),
    Column::json("by", Unit::Text),
];

/// In CSV the host comes first, and the thread is split into columns.
const PROCESSES: [Column; 24] = [
    Column::new("host", "Host", Unit::Text).optional().only(CSV),
    Column::new("id", "Row", Unit::Id).only(MACHINE),
    Column::new("parent", "Parent's row", Unit::Id)
        .optional()
        .only(MACHINE),
    Column::new("depth", "Depth", Unit::Count).only(MACHINE),
    Column::new("process", "Process", Unit::Process).only(Forms::JSON.and(LAMI)),
    Column::new("", "Process", Unit::Tree).only(TEXT),
    Column::new("pid", "PID", Unit::Id).optional().only(CSV),
    Column::new("tid", "TID", Unit::Id).only(CSV),
    Column::new("name", "Name", Unit::Text).optional().only(CSV),
    Column::new("parent_pid", "Parent", Unit::Id)
        .optional()
        .only(MACHINE.and(LAMI)),
    Column::new("", "Threads", Unit::Count)
        .only(TEXT)
        .left_out(4),
    Column::new("begin_ns", "Begin", Unit::Time)
        .optional()
        .left_out(2),
    Column::new("end_ns", "End", Unit::Time)
        .optional()
        .left_out(1),
    Column {
        forms: Forms::JSON,
        ..Column::of_tables("names", NAMES)
    },
    Column::new("names", "Names", Unit::Text)
        .optional()
        .only(CSV),
    Column::new("threads", "Threads", Unit::Count).only(MACHINE.and(LAMI)),
    Column::new("active_ns", "Active", Unit::Duration),
    Column::new("tree_active_ns", "Active with children", Unit::Duration).headed("Active (tree)"),
    Column::new("syscalls", "System calls", Unit::Count)
        .headed("Calls")
        .left_out(6),
    Column::new("tree_syscalls", "System calls with children", Unit::Count)
        .headed("Calls (tree)")
        .left_out(3),
    Column::new("read_bytes", "Read", Unit::Bytes).left_out(7),
    Column::new("tree_read_bytes", "Read with children", Unit::Bytes).only(MACHINE.and(LAMI)),
    Column::new("written_bytes", "Written", Unit::Bytes).left_out(8),
    Column::new("tree_written_bytes", "Written with children", Unit::Bytes).only(MACHINE.and(LAMI)),
];

pub(super) fn processes(head: &Head, rows: &[ProcessRow], lists: &[Section]) -> Section {
    let lives = lists.iter().find(|section| section.key == "lives");
    let rows = parallel::map(rows.iter().collect(), |row| values(head, row));
    Section::new("processes", "Processes", PROCESSES.to_vec(), rows)
        .kept_by("tree_active_ns")
        .untitled()
        .noted(lives.and_then(|lives| lengths(lives, ("lifetime", "lifetimes"), "begin to end")))
}

fn values(head: &Head, row: &ProcessRow) -> Vec<Value> {
    let host = (head.hosts.len() > 1).then(|| Value::Text(head.host(row.trace)));
    let id = |id: Option<i32>| Value::from(id.map(i64::from));
    let names = all_names(row);
    let branch = Branch {
        thread: Thread {
            name: names.clone(),
            ..row.thread()
        },
        depth: row.depth,
        is_maker_known: row.parent_pid.is_some(),
    };
    let given = row.names.iter().map(|given| {
        let name = Value::text(given.name.clone());
        vec![given.time.into(), name, named_by(given.by).into()]
    });
    vec![
        host.into(),
        row.id.into(),
        row.parent.into(),
        u64::from(row.depth).into(),
        row.thread().into(),
        Value::Branch(branch.into()),
        id(row.pid),
        id(Some(row.tid)),
        row.name.clone().map(Value::Text).into(),
        id(row.parent_pid),
        row.threads.into(),
        row.begin.into(),
        row.end.into(),
        Value::Rows(given.collect()),
        names.map(Value::Text).into(),
        row.threads.into(),
        row.used.active.into(),
        row.tree.active.into(),
        row.used.calls.into(),
        row.tree.calls.into(),
        row.used.read.into(),
        row.tree.read.into(),
        row.used.written.into(),
        row.tree.written.into(),
    ]
}

fn named_by(by: NamedBy) -> &'static str {
    match by {
        NamedBy::Fork => "fork",
        NamedBy::Exec => "exec",
        NamedBy::Rename => "rename",
        NamedBy::Dump => "dump",
    }
}

/// All names in the order of time.
fn all_names(row: &ProcessRow) -> Option<String> {
    let mut names: Vec<&str> = row.names.iter().map(|name| name.name.as_str()).collect();
    names.extend(row.name.as_deref());
    names.dedup();
    (!names.is_empty()).then(|| names.join(" → "))
}
