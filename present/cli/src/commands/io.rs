//! `tracebraid io`: what was read and written.

use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use tracebraid_follow::Selection;
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::io::{IoAnalysis, IoReport, IoStats};
use tracebraid_tables::{Report, View};

use crate::commands::cells;
use crate::commands::report::{ReportArgs, Show};
use crate::commands::sections::{other_csv, other_tables};
use crate::commands::views::{self, CallArgs, ViewArgs};
use crate::failure::Failure;
use crate::lami::{self, Analysis};
use crate::table::{self, Column, grouped};

/// Shows what was read and written by system calls of a kernel trace: bytes, calls, errors and
/// latency by process, thread, system call and type of file descriptor; the slowest calls; each one; how
/// often each length occurred (these as `files` shows them).
///
/// Needs the events of system calls (entry and exit), and sched_switch or the tid context to tell
/// threads apart. A call counts where and when it ends.
#[derive(Args, Debug)]
#[command(
    mut_arg("view", views::only_stats),
    after_help = "Examples:
  tracebraid io ~/lttng-traces/my-session
  tracebraid io --pid 1234 --top 5 TRACE
  tracebraid io --view top,freq --procname postgres TRACE
  tracebraid io --view stats,log --min 10ms TRACE
  tracebraid io --syscall 'sendfile*,splice' TRACE
  tracebraid io --from +1s --to +2s --format csv TRACE
  tracebraid io --format json TRACE | jq '.types[] | select(.type == \"network\")'"
)]
pub(crate) struct IoArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    calls: CallArgs,
}

/// Runs it: statistics are this command's own, single calls are those of `files`.
pub(super) fn run(args: &IoArgs) -> Result<ExitCode, Failure> {
    let mut others = args.views.views();
    if !others.contains(&View::Stats) {
        let choose = |selection: &mut Selection| selection.calls = args.calls.globs();
        return views::run::<FilesAnalysis>(&args.report, &args.views, choose);
    }
    others.retain(|view| *view != View::Stats);
    args.views.check()?;
    let mut subject = args.report.open()?;
    let mut selection = args.report.selection(&subject);
    selection.limits = args.views.limits();
    selection.calls = args.calls.globs();
    let mut report = args.report.fold::<IoAnalysis>(&mut subject, selection.clone())?;
    let notes = report.unmatched(&selection);
    notes.iter().for_each(|note| subject.warnings.note(note));
    if !others.is_empty() {
        selection.views = others;
        let calls = views::report::<FilesAnalysis>(&args.report, &mut subject, selection)?;
        report.lists.sections = calls.sections;
    }
    args.report.show(subject, report)
}

/// Its machine interface: the tables of both analyses.
pub(super) fn lami() -> Analysis {
    Analysis {
        empty: || {
            let mut report = lami::empty::<IoAnalysis>();
            let calls = lami::empty::<FilesAnalysis>().sections.into_iter();
            let calls = calls.filter(|section| section.view != View::Stats);
            report.sections.extend(calls);
            report
        },
        ..Analysis::of::<IoAnalysis>("What was read and written by system calls")
    }
}

impl Show for IoReport {
    fn sections(&self) -> Report {
        self.into()
    }

    fn summary(&self) -> String {
        let total = &self.total;
        let mut text = table::paragraph(&format!(
            "{} read and {} written by {} in {}",
            table::bytes(total.read_bytes),
            table::bytes(total.written_bytes),
            calls(total.calls),
            table::duration(self.head.duration_ns),
        ));
        text += &incomplete(total);
        text
    }

    fn tables(&self, rows: usize, zone: &TimeZone) -> Vec<String> {
        if self.threads.is_empty() {
            return Vec::new();
        }
        let own = [
            types(self),
            syscalls(self, rows),
            processes(self, rows),
            threads(self, rows),
        ];
        let others = other_tables(&self.head, &self.lists, rows, zone);
        own.into_iter().chain(others).collect()
    }

    /// One row for each thread and type of descriptor; then what other views have.
    fn csv(&self, rows: usize) -> String {
        let columns = [
            "host",
            "pid",
            "tid",
            "name",
            "type",
            "calls",
            "errors",
            "read_bytes",
            "written_bytes",
            "latency_ns",
            "longest_latency_ns",
        ];
        let mut table = crate::csv::Rows::new(&columns);
        for row in self.threads.iter().take(rows) {
            for of_type in &row.types {
                let stats = &of_type.stats;
                let of_type = [
                    of_type.kind.name().to_owned(),
                    stats.calls.to_string(),
                    stats.errors.to_string(),
                    stats.read_bytes.to_string(),
                    stats.written_bytes.to_string(),
                    stats.latency_ns.to_string(),
                    stats.longest_latency_ns.to_string(),
                ];
                table.add(
                    cells::plain_thread(&self.head, &row.thread)
                        .into_iter()
                        .chain(of_type),
                );
            }
        }
        table.finish() + &other_csv(&self.head, &self.lists, rows)
    }
}

/// The columns of sums, behind what a row is about.
const SUMS: [Column<'static>; 6] = [
    Column::number("Read"),
    Column::number("Written"),
    Column::number("Calls"),
    Column::number("Errors").left_out(2),
    Column::number("Average").left_out(1),
    Column::number("Longest").left_out(3),
];

fn sums(stats: &IoStats) -> [String; 6] {
    [
        table::bytes(stats.read_bytes),
        table::bytes(stats.written_bytes),
        grouped(stats.calls),
        grouped(stats.errors),
        table::duration(stats.average_latency_ns),
        table::duration(stats.longest_latency_ns),
    ]
}

fn rows_of<const N: usize>(
    first: [Column<'static>; N],
    rows: impl Iterator<Item = ([String; N], IoStats)>,
) -> String {
    let columns: Vec<Column<'static>> = first.into_iter().chain(SUMS).collect();
    table::render(
        &columns,
        rows.map(|(about, stats)| about.into_iter().chain(sums(&stats)).collect()),
    )
}

fn calls(number: u64) -> String {
    table::number_of(number, "call", "calls")
}

/// What is known of calls that lost their beginning or their end.
fn incomplete(total: &IoStats) -> String {
    let mut lacks = Vec::new();
    for (number, what) in [(total.unfinished, "end"), (total.unstarted, "beginning")] {
        if number > 0 {
            lacks.push(format!("{} without {what}", calls(number)));
        }
    }
    if lacks.is_empty() {
        return String::new();
    }
    table::paragraph(&format!("Not counted: {} in the trace", lacks.join(" and ")))
}

fn types(report: &IoReport) -> String {
    let rows = report.types.iter();
    rows_of(
        [Column::text("Descriptor")],
        rows.map(|row| ([row.kind.name().to_owned()], row.stats)),
    )
}

fn syscalls(report: &IoReport, rows: usize) -> String {
    let shown = report.syscalls.iter().take(rows);
    rows_of(
        [Column::text("System call")],
        shown.map(|row| ([row.name.to_owned()], row.stats)),
    ) + &cells::more(rows, report.syscalls.len())
}

fn processes(report: &IoReport, rows: usize) -> String {
    let shown = report.processes.iter().take(rows);
    rows_of(
        [Column::number("PID"), Column::text("Process")],
        shown.map(|row| (cells::process(&report.head, &row.process), row.stats)),
    ) + &cells::more(rows, report.processes.len())
}

fn threads(report: &IoReport, rows: usize) -> String {
    let about =
        |thread: &tracebraid_follow::Thread| [cells::id(thread.tid), cells::name(&report.head, thread)];
    let shown = report.threads.iter().take(rows);
    rows_of(
        [Column::number("TID"), Column::text("Thread")],
        shown.map(|row| (about(&row.thread), row.stats)),
    ) + &cells::more(rows, report.threads.len())
}
