//! Cells that identify the subject of a row: host, process and thread.

use tracebraid_follow::{Head, Process, Thread};

use crate::units::grouped;

/// The host of a row, if the report has several hosts.
pub(super) fn host(head: &Head, trace: u32) -> Option<String> {
    let hosts = &head.hosts;
    let host = hosts
        .iter()
        .find(|host| host.trace == trace)
        .filter(|_| hosts.len() > 1)?;
    Some(
        host.name
            .clone()
            .unwrap_or_else(|| format!("trace {trace}")),
    )
}

/// An id, or `?` if it is unknown.
pub(super) fn id(id: Option<i32>) -> String {
    id.map_or_else(|| "?".to_owned(), |id| id.to_string())
}

/// An id in CSV; empty if it is unknown.
fn plain_id(id: Option<i32>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

/// A thread's name, with the host if the report has several hosts.
pub(super) fn name(head: &Head, thread: &Thread) -> String {
    let name = thread.name.clone().unwrap_or_else(|| unnamed(thread.tid));
    with_host(head, thread.trace, name)
}

/// A name, with the host if the report has several hosts.
pub(super) fn with_host(head: &Head, trace: u32, name: String) -> String {
    match host(head, trace) {
        Some(host) => format!("{name} @ {host}"),
        None => name,
    }
}

/// Host, process id, thread id and name of a thread in CSV.
pub(super) fn plain_thread(head: &Head, thread: &Thread) -> [String; 4] {
    [
        host(head, thread.trace).unwrap_or_default(),
        plain_id(thread.pid),
        plain_id(thread.tid),
        thread.name.clone().unwrap_or_default(),
    ]
}

/// A process: its id (that of its thread if the process is unknown) and its name.
pub(super) fn process(head: &Head, process: &Process) -> [String; 2] {
    let name = process
        .name
        .clone()
        .unwrap_or_else(|| unnamed(process.pid.or(process.tid)));
    let id = match (process.pid, process.tid) {
        (Some(pid), _) => pid.to_string(),
        (None, Some(tid)) => format!("tid {tid}"),
        (None, None) => "?".to_owned(),
    };
    [id, with_host(head, process.trace, name)]
}

/// Replaces an unknown name.
fn unnamed(tid: Option<i32>) -> String {
    (if tid.is_none() {
        "(unknown thread)"
    } else {
        "(unknown name)"
    })
    .to_owned()
}

/// A line with the number of rows that are not shown.
pub(super) fn more(shown: usize, all: usize) -> String {
    more_of(shown, all, "")
}

/// A line with the number of groups that are not shown.
pub(super) fn more_groups(shown: usize, all: usize) -> String {
    match all.saturating_sub(shown) {
        1 => more_of(shown, all, " group"),
        _ => more_of(shown, all, " groups"),
    }
}

fn more_of(shown: usize, all: usize, what: &str) -> String {
    if all > shown {
        format!("  ... and {} more{what}\n", grouped((all - shown) as u64))
    } else {
        String::new()
    }
}
