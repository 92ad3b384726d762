//! `tracebraid processes`: the tree of processes, and what each used.

use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use tracebraid_follow::{KernelReport, Thread};
use tracebraid_reports::processes::{ProcessAnalysis, ProcessRow, ProcessesReport};
use tracebraid_tables::Lists;
use tracebraid_tables::Report;

use crate::commands::cells;
use crate::commands::report::{ReportArgs, Show};
use crate::commands::sections::{lengths, other_csv, other_tables, short_time};
use crate::commands::views::{self, Framed, ViewArgs};
use crate::failure::Failure;
use crate::table::{self, Column, grouped};

/// Shows the tree of processes of a kernel trace: who made whom, when they began and ended, and what
/// each used of CPUs, system calls and bytes, alone and with all that it made; the longest lives from begin
/// to end; who was made, which programs were executed and who ended, one after the other; how often each
/// life time occurred.
///
/// Needs the events sched_process_fork, sched_process_exec, sched_process_exit and the state dump
/// (lttng_statedump_process_state) for the tree, sched_switch for CPU time, and those of system calls
/// (entry and exit). An id that is used again is another row.
#[derive(Args, Debug)]
#[command(
    mut_arg("view", views::only_stats),
    mut_arg("min", |min| min.help("Only lives of at least that long (the tree shows all): 10us, 2.5ms, 1s")),
    mut_arg("max", |max| max.help("Only lives of at most that long")),
    after_help = "Examples:
  tracebraid processes ~/lttng-traces/my-session
  tracebraid processes --top 50 --from +1s --to +2s TRACE
  tracebraid processes --procname 'nginx*' TRACE
  tracebraid processes --view log --from +1s --to +2s TRACE
  tracebraid processes --view top,freq --max 10ms TRACE
  tracebraid processes --format json TRACE | jq '.processes[] | select(.parent_pid == 284) | .name'"
)]
pub(crate) struct ProcessesArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
}

/// Runs it.
pub(super) fn run(args: &ProcessesArgs) -> Result<ExitCode, Failure> {
    views::run_framed::<ProcessAnalysis>(&args.report, &args.views, |_| ())
}

impl Framed for ProcessesReport {
    fn lists(&mut self) -> &mut Lists {
        &mut self.lists
    }
}

impl Show for ProcessesReport {
    fn sections(&self) -> Report {
        self.into()
    }

    fn summary(&self) -> String {
        let total = &self.total;
        table::paragraph(&format!(
            "{} with {} over {}: {} on CPUs, {}, {} read, {} written",
            table::number_of(total.processes, "process", "processes"),
            table::number_of(total.threads, "thread", "threads"),
            table::duration(self.head.duration_ns),
            table::duration(total.active_ns),
            table::number_of(total.syscalls, "system call", "system calls"),
            table::bytes(total.read_bytes),
            table::bytes(total.written_bytes),
        ))
    }

    fn tables(&self, rows: usize, zone: &TimeZone) -> Vec<String> {
        let all = self.processes.len();
        let mut report = self.clone();
        report.truncate(rows);
        if report.processes.is_empty() {
            return Vec::new();
        }
        let lives = lengths(&self.lists, "lives", ("life", "lives"), "begin to end");
        let tree = tree(&report, zone) + &cells::more(rows, all) + &lives;
        let others = other_tables(&self.head, &self.lists, rows, zone);
        std::iter::once(tree).chain(others).collect()
    }

    /// One row a process, each before those that it made; then what other views have.
    fn csv(&self, rows: usize) -> String {
        let mut report = self.clone();
        report.truncate(rows);
        let mut table = crate::csv::Rows::new(&CSV);
        for row in &report.processes {
            table.add(plain(&report, row));
        }
        table.finish() + &other_csv(&self.head, &self.lists, rows)
    }
}

const CSV: [&str; 20] = [
    "host",
    "id",
    "parent",
    "depth",
    "pid",
    "tid",
    "name",
    "parent_pid",
    "begin_ns",
    "end_ns",
    "names",
    "threads",
    "active_ns",
    "tree_active_ns",
    "syscalls",
    "tree_syscalls",
    "read_bytes",
    "tree_read_bytes",
    "written_bytes",
    "tree_written_bytes",
];

fn plain(report: &ProcessesReport, row: &ProcessRow) -> Vec<String> {
    let optional = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    let numbers = [
        row.threads,
        row.active_ns,
        row.tree_active_ns,
        row.syscalls,
        row.tree_syscalls,
        row.read_bytes,
        row.tree_read_bytes,
        row.written_bytes,
        row.tree_written_bytes,
    ];
    let about = [
        cells::host(&report.head, row.trace).unwrap_or_default(),
        row.id.to_string(),
        row.parent.map(|parent| parent.to_string()).unwrap_or_default(),
        row.depth.to_string(),
        optional(row.pid.map(i64::from)),
        row.tid.to_string(),
        row.name.clone().unwrap_or_default(),
        optional(row.parent_pid.map(i64::from)),
        optional(row.begin.map(|time| time.0)),
        optional(row.end.map(|time| time.0)),
        chain(row).unwrap_or_default(),
    ];
    about
        .into_iter()
        .chain(numbers.map(|number| number.to_string()))
        .collect()
}

/// The names that it had, in their order.
fn chain(row: &ProcessRow) -> Option<String> {
    let mut names: Vec<&str> = row.names.iter().map(|name| name.name.as_str()).collect();
    names.extend(row.name.as_deref());
    names.dedup();
    (!names.is_empty()).then(|| names.join(" → "))
}

fn tree(report: &ProcessesReport, zone: &TimeZone) -> String {
    let columns = [
        Column::number("PID"),
        Column::text("Process"),
        Column::number("Threads").left_out(4),
        Column::whole("Begin").left_out(2),
        Column::whole("End").left_out(1),
        Column::number("Active"),
        Column::number("+ children"),
        Column::number("Calls").left_out(6),
        Column::number("+ children").left_out(3),
        Column::number("Read").left_out(7),
        Column::number("Written").left_out(8),
    ];
    let branches = branches(&report.processes);
    let row = |(row, branch): (&ProcessRow, String)| {
        let time =
            |time: Option<_>| time.map_or("-".to_owned(), |time| short_time(&report.head, time, Some(zone)));
        let thread = Thread {
            trace: row.trace,
            tid: Some(row.tid),
            pid: row.pid,
            name: chain(row),
        };
        let id = match row.pid {
            Some(pid) => pid.to_string(),
            None => format!("tid {}", row.tid),
        };
        vec![
            id,
            branch + &cells::name(&report.head, &thread),
            grouped(row.threads),
            time(row.begin),
            time(row.end),
            table::duration(row.active_ns),
            table::duration(row.tree_active_ns),
            grouped(row.syscalls),
            grouped(row.tree_syscalls),
            table::bytes(row.read_bytes),
            table::bytes(row.written_bytes),
        ]
    };
    let unknown = report
        .processes
        .iter()
        .filter(|row| row.parent_pid.is_none())
        .count();
    let mut text = table::render(&columns, report.processes.iter().zip(branches).map(row));
    if unknown > 0 {
        let processes = table::number_of(unknown as u64, "process", "processes");
        text += &table::paragraph(&format!(
            "  Of {processes} (marked ?) the trace does not tell who made them"
        ));
    }
    text
}

/// The lines that lead to each process from the one that made it; those whose maker is not known are
/// marked.
fn branches(rows: &[ProcessRow]) -> Vec<String> {
    // For each depth whether another one follows there; from the last row on.
    let mut follows: Vec<bool> = Vec::new();
    let mut branches: Vec<String> = Vec::with_capacity(rows.len());
    for row in rows.iter().rev() {
        let depth = row.depth as usize;
        let follows_here = follows.get(depth).copied().unwrap_or(false);
        follows.resize(depth + 1, false);
        let mut branch: String = (1..depth)
            .map(|depth| if follows[depth] { "│ " } else { "  " })
            .collect();
        if depth > 0 {
            branch += if follows_here { "├─" } else { "└─" };
        } else if row.parent_pid.is_none() {
            branch += "? ";
        }
        follows[depth] = true;
        branches.push(branch);
    }
    branches.reverse();
    branches
}
