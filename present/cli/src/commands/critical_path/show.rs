//! Critical paths as trees, tables and folded stacks.

use jiff::tz::TimeZone;
use tracebraid_follow::{Head, Thread};
use tracebraid_graph::{Node, PathReport, PathRow, WaitReason};

use crate::commands::cells;
use crate::info::tables::View;
use crate::table::{self, Cell, Column};
use crate::terminal_text;
use crate::units;

/// Trees and tables of all paths.
pub(super) fn text(report: &PathReport, zone: &TimeZone) -> String {
    let paths = report.paths.iter().map(|row| path(&report.head, row, zone));
    paths.collect::<Vec<_>>().join("\n")
}

fn path(head: &Head, row: &PathRow, zone: &TimeZone) -> String {
    let view = View {
        zone: zone.clone(),
        colours: false,
    };
    let call = row
        .call
        .as_ref()
        .map(|call| format!("{call} of "))
        .unwrap_or_default();
    let mut text = terminal_text::paragraph(&format!(
        "Critical path of {call}{}: {} from {}",
        row.tree.name,
        units::duration(row.duration_ns),
        view.time(Some(row.begin_ns)),
    ));
    text.push('\n');
    tree(&row.tree, row.duration_ns, 1, &mut text);
    for part in [
        totals(row),
        reasons(row),
        threads(head, row),
        hosts(head, row),
        competitors(head, row),
    ] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

/// A node with its own time by reason, and below it the nodes that it waited for.
fn tree(node: &Node, whole: u64, depth: usize, text: &mut String) {
    let mut line = |duration: u64, what: &str| {
        let indent = "  ".repeat(depth);
        text.push_str(&format!(
            "{:>12}{indent}{what}\n",
            units::duration(duration)
        ));
    };
    let large = node.large_parts(whole);
    for part in large.parts {
        line(part.duration_ns, &described(part.reason, &part.detail));
    }
    if large.rest_ns > 0 {
        line(large.rest_ns, "in smaller parts");
    }
    for child in large.waits {
        let times = match child.times {
            1 => String::new(),
            times => format!(", {times} times"),
        };
        let indent = "  ".repeat(depth);
        let duration = units::duration(child.duration_ns);
        text.push_str(&format!(
            "{duration:>12}{indent}{} {}{times}\n",
            child.link, child.name
        ));
        tree(child, whole, depth + 1, text);
    }
}

fn described(reason: WaitReason, detail: &str) -> String {
    match detail {
        "" => reason.name().to_owned(),
        detail => format!("{}: {detail}", reason.name()),
    }
}

/// Sums by reason, of all details; empty if each reason has a single detail.
fn totals(row: &PathRow) -> String {
    let mut sums: Vec<(WaitReason, u64, u64)> = Vec::new();
    for part in &row.summary.reasons {
        match sums.iter_mut().find(|(reason, ..)| *reason == part.reason) {
            Some((_, time, segments)) => {
                *time += part.duration_ns;
                *segments += part.parts;
            }
            None => sums.push((part.reason, part.duration_ns, part.parts)),
        }
    }
    if sums.len() == row.summary.reasons.len() {
        return String::new();
    }
    sums.sort_by_key(|(_, time, _)| std::cmp::Reverse(*time));
    let columns = [
        Column::number("Time"),
        Column::number("%").left_out(2),
        Column::number("Segments").left_out(1),
        Column::whole("Reason (all details)"),
    ];
    let cells = sums
        .into_iter()
        .enumerate()
        .map(|(at, (reason, time, segments))| {
            let texts = vec![
                units::duration(time),
                units::percent(time, row.duration_ns),
                units::grouped(segments),
                reason.name().to_owned(),
            ];
            Cell::row(texts, 0, at == 0)
        });
    table::render(&columns, cells)
}

fn reasons(row: &PathRow) -> String {
    let columns = [
        Column::number("Time"),
        Column::number("%").left_out(2),
        Column::number("Segments").left_out(1),
        Column::whole("Reason"),
        Column::text("Detail"),
    ];
    let cells = row.summary.reasons.iter().enumerate().map(|(at, sum)| {
        let texts = vec![
            units::duration(sum.duration_ns),
            units::percent(sum.duration_ns, row.duration_ns),
            units::grouped(sum.parts),
            sum.reason.name().to_owned(),
            sum.detail.clone(),
        ];
        Cell::row(texts, 0, at == 0)
    });
    table::render(&columns, cells)
}

fn threads(head: &Head, row: &PathRow) -> String {
    let columns = [
        Column::number("Time"),
        Column::number("%").left_out(2),
        Column::number("Running").left_out(1),
        Column::number("TID"),
        Column::text("Thread"),
    ];
    let cells = row.summary.threads.iter().map(|sum| {
        vec![
            units::duration(sum.duration_ns),
            units::percent(sum.duration_ns, row.duration_ns),
            match sum.running_ns {
                0 => String::new(),
                running => units::duration(running),
            },
            cells::id(sum.thread.tid),
            cells::name(head, &sum.thread),
        ]
    });
    table::render(&columns, cells)
}

/// Empty for traces of a single host.
fn hosts(head: &Head, row: &PathRow) -> String {
    if head.hosts.len() < 2 {
        return String::new();
    }
    let columns = [
        Column::number("Time"),
        Column::number("%"),
        Column::text("Host"),
    ];
    let cells = row.summary.hosts.iter().map(|&(trace, duration)| {
        vec![
            units::duration(duration),
            units::percent(duration, row.duration_ns),
            head.host(trace),
        ]
    });
    table::render(&columns, cells)
}

fn competitors(head: &Head, row: &PathRow) -> String {
    if row.summary.competitors.is_empty() {
        return String::new();
    }
    let columns = [
        Column::number("Service time"),
        Column::number("Requests"),
        Column::text("Device"),
        Column::number("TID"),
        Column::text("For thread"),
    ];
    let name = |thread: &Option<Thread>| match thread {
        Some(thread) => [cells::id(thread.tid), cells::name(head, thread)],
        None => [String::new(), "(interrupt or unknown)".to_owned()],
    };
    let cells = row.summary.competitors.iter().map(|of| {
        let [tid, name] = name(&of.thread);
        vec![
            units::duration(of.duration_ns),
            units::grouped(of.requests),
            of.device.clone(),
            tid,
            name,
        ]
    });
    table::render(&columns, cells)
}

/// Folded stacks of all paths.
pub(super) fn folded(report: &PathReport) -> String {
    let stacks: Vec<(Vec<String>, u64)> = report
        .paths
        .iter()
        .flat_map(|row| row.tree.stacks())
        .collect();
    tracebraid_export::folded(stacks.iter().map(|(stack, time)| (stack.as_slice(), *time)))
}
