//! `tracebraid io`: what was read and written.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::io::{IoAnalysis, IoOptions, IoReport, IoStats};

use crate::commands::kernel::{self, ShowArgs};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options::{self, InputArgs, ReportFormat, SelectArgs, TimeArgs};
use crate::output::Output;
use crate::table::{self, Column, grouped};
use crate::warnings::Warnings;

/// Shows what was read and written by system calls of a kernel trace: bytes, calls, errors and
/// latency by process, thread, system call and type of file descriptor.
///
/// Needs the events of system calls (entry and exit), and sched_switch or the tid context to tell
/// threads apart. A call counts where and when it ends.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid io ~/lttng-traces/my-session
  tracebraid io --pid 1234 --top 5 TRACE
  tracebraid io --from +1s --to +2s --format csv TRACE
  tracebraid io --format json TRACE | jq '.types[] | select(.type == \"network\")'")]
pub(crate) struct IoArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    fold: FoldArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Runs it.
pub(super) fn run(args: &IoArgs) -> Result<ExitCode, Failure> {
    let set = options::open(&args.input)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    let zone = options::zone(args.show.clock_gmt);
    let range = args.time.range(&set, &zone, 0)?;
    let analysis = IoAnalysis::new(
        &set,
        IoOptions {
            window: kernel::window(range),
            cpus: kernel::cpus(&args.select),
            threads: kernel::threads(&args.select),
        },
    );
    if !analysis.has_calls() {
        warnings.note("no event here tells of reading or writing: system calls were not recorded");
    }
    let mut report = fold::run(&set, &analysis, &args.fold, analysis.until(), &mut warnings)?;
    if report.total.calls == 0 {
        crate::hints::nothing_selected(&set, &args.select, range, 0, &zone, &mut warnings);
    }
    let mut out = Output::open(None)?;
    let rows = args.show.rows();
    let text = match args.show.format {
        ReportFormat::Table => tables(&report, rows),
        ReportFormat::Json => {
            report.processes.truncate(rows);
            report.threads.truncate(rows);
            serde_json::to_string_pretty(&report).map_err(|error| Failure::output(error.to_string()))? + "\n"
        }
        ReportFormat::Csv => csv(&report, rows),
    };
    out.write(text.as_bytes())?;
    for loss in crate::loss::summary(&set) {
        warnings.note(&loss);
    }
    Ok(warnings.finish(args.input.strict))
}

/// One row for each thread and type of descriptor.
fn csv(report: &IoReport, rows: usize) -> String {
    let mut table = crate::csv::Rows::new(&[
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
    ]);
    for row in report.threads.iter().take(rows) {
        for of_type in &row.types {
            let stats = &of_type.stats;
            table.add([
                kernel::host(&report.hosts, row.thread.trace).unwrap_or_default(),
                kernel::plain_id(row.thread.pid),
                kernel::plain_id(row.thread.tid),
                row.thread.name.clone().unwrap_or_default(),
                of_type.kind.name().to_owned(),
                stats.calls.to_string(),
                stats.errors.to_string(),
                stats.read_bytes.to_string(),
                stats.written_bytes.to_string(),
                stats.latency_ns.to_string(),
                stats.longest_latency_ns.to_string(),
            ]);
        }
    }
    table.finish()
}

/// The columns of sums, behind what a row is about.
const SUMS: [Column; 6] = [
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

fn rows_of<const N: usize>(first: [Column; N], rows: impl Iterator<Item = ([String; N], IoStats)>) -> String {
    let columns: Vec<Column> = first.into_iter().chain(SUMS).collect();
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

fn tables(report: &IoReport, rows: usize) -> String {
    let total = &report.total;
    let mut text = table::paragraph(&format!(
        "{} read and {} written by {} in {}",
        table::bytes(total.read_bytes),
        table::bytes(total.written_bytes),
        calls(total.calls),
        table::duration(report.duration_ns),
    ));
    text += &incomplete(total);
    if report.threads.is_empty() {
        return text;
    }
    let types = report
        .types
        .iter()
        .map(|row| ([row.kind.name().to_owned()], row.stats));
    text += &format!("\n{}", rows_of([Column::text("Descriptor")], types));
    let syscalls = report
        .syscalls
        .iter()
        .take(rows)
        .map(|row| ([row.name.to_owned()], row.stats));
    text += &format!("\n{}", rows_of([Column::text("System call")], syscalls));
    text += &kernel::more(rows, report.syscalls.len());
    let processes = report.processes.iter().take(rows).map(|row| {
        let name = row
            .name
            .clone()
            .unwrap_or_else(|| kernel::unnamed(row.pid.or(row.tid)));
        let id = match (row.pid, row.tid) {
            (Some(pid), _) => pid.to_string(),
            (None, Some(tid)) => format!("tid {tid}"),
            (None, None) => "?".to_owned(),
        };
        ([id, kernel::with_host(&report.hosts, row.trace, name)], row.stats)
    });
    text += &format!(
        "\n{}",
        rows_of([Column::number("PID"), Column::text("Process")], processes)
    );
    text += &kernel::more(rows, report.processes.len());
    let threads = report.threads.iter().take(rows).map(|row| {
        (
            [
                kernel::id(row.thread.tid),
                kernel::name(&report.hosts, &row.thread),
            ],
            row.stats,
        )
    });
    text += &format!(
        "\n{}",
        rows_of([Column::number("TID"), Column::text("Thread")], threads)
    );
    text + &kernel::more(rows, report.threads.len())
}
