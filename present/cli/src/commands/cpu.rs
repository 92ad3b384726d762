//! `tracebraid cpu`: who used the CPUs.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::cpu::{CpuAnalysis, CpuOptions, CpuReport};

use crate::commands::kernel::{self, ShowArgs};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options::{self, InputArgs, ReportFormat, SelectArgs, TimeArgs, TimeRange};
use crate::output::Output;
use crate::table::{self, Column, grouped, percent};
use crate::warnings::Warnings;

/// Shows who used the CPUs: active time by CPU, process and thread of a kernel trace.
///
/// Needs the event sched_switch. Threads are shown by their last known name. Time of which it is
/// not known who ran (before a CPU's first switch, after lost events) is said to be unknown.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid cpu ~/lttng-traces/my-session
  tracebraid cpu --from +1s --to +2s --cpu 0,1 TRACE
  tracebraid cpu --procname 'nginx*' --format csv TRACE
  tracebraid cpu --format json TRACE | jq '.cpus[].active_share'")]
pub(crate) struct CpuArgs {
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
pub(super) fn run(args: &CpuArgs) -> Result<ExitCode, Failure> {
    let set = options::open(&args.input)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    let zone = options::zone(args.show.clock_gmt);
    let range = args.time.range(&set, &zone, 0)?;
    let analysis = CpuAnalysis::new(
        &set,
        CpuOptions {
            window: kernel::window(range),
            cpus: kernel::cpus(&args.select),
            threads: kernel::threads(&args.select),
        },
    );
    let mut report = fold::run(&set, &analysis, &args.fold, analysis.until(), &mut warnings)?;
    if report.threads.is_empty() {
        crate::hints::nothing_selected(&set, &args.select, range, 0, &zone, &mut warnings);
    }
    let chosen = range != TimeRange::ALL || !args.select.cpu.is_empty();
    if report.cpus.is_empty() && !chosen {
        warnings.note("no event here tells who runs on which CPU: sched_switch was not recorded");
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

/// One row a thread.
fn csv(report: &CpuReport, rows: usize) -> String {
    let mut table = crate::csv::Rows::new(&[
        "host",
        "pid",
        "tid",
        "name",
        "active_ns",
        "active_share",
        "switches",
    ]);
    for row in report.threads.iter().take(rows) {
        table.add([
            kernel::host(&report.hosts, row.thread.trace).unwrap_or_default(),
            kernel::plain_id(row.thread.pid),
            kernel::plain_id(row.thread.tid),
            row.thread.name.clone().unwrap_or_default(),
            row.active_ns.to_string(),
            row.active_share.to_string(),
            row.switches.to_string(),
        ]);
    }
    table.finish()
}

fn tables(report: &CpuReport, rows: usize) -> String {
    let total = &report.total;
    let all = report.duration_ns.saturating_mul(total.cpus);
    let mut text = table::paragraph(&format!(
        "{} over {}: {} active, {} idle, {} unknown; {}",
        table::number_of(total.cpus, "CPU", "CPUs"),
        table::duration(report.duration_ns),
        percent(total.active_ns, all),
        percent(total.idle_ns, all),
        percent(total.unknown_ns, all),
        table::number_of(total.switches, "switch", "switches"),
    ));
    text.push('\n');
    if report.cpus.is_empty() {
        return text;
    }
    text += &cpus(report);
    text.push('\n');
    text += &processes(report, rows);
    text.push('\n');
    text + &threads(report, rows)
}

fn cpus(report: &CpuReport) -> String {
    let columns = [
        Column::number("CPU"),
        Column::number("Active"),
        Column::number("Share").left_out(2),
        Column::number("Idle"),
        Column::number("Unknown"),
        Column::number("Switches").left_out(1),
    ];
    let rows = report.cpus.iter().map(|cpu| {
        vec![
            kernel::with_host(&report.hosts, cpu.trace, cpu.cpu.to_string()),
            table::duration(cpu.active_ns),
            percent(cpu.active_ns, report.duration_ns),
            table::duration(cpu.idle_ns),
            table::duration(cpu.unknown_ns),
            grouped(cpu.switches),
        ]
    });
    let mut text = table::render(&columns, rows);
    let inconsistent: u64 = report.cpus.iter().map(|cpu| cpu.inconsistent_switches).sum();
    if inconsistent > 0 {
        text += &table::paragraph(&format!(
            "  {} from the one before: events are missing",
            table::number_of(inconsistent, "switch does not follow", "switches do not follow"),
        ));
    }
    text
}

fn processes(report: &CpuReport, rows: usize) -> String {
    let columns = [
        Column::number("PID"),
        Column::text("Process"),
        Column::number("Threads").left_out(3),
        Column::number("Active"),
        Column::number("Share").left_out(2),
        Column::number("Switches").left_out(1),
    ];
    let row = |process: &tracebraid_reports::cpu::ProcessRow| {
        let name = process
            .name
            .clone()
            .unwrap_or_else(|| kernel::unnamed(process.pid.or(process.tid)));
        let id = match process.pid {
            Some(pid) => pid.to_string(),
            None => format!("tid {}", kernel::id(process.tid)),
        };
        vec![
            id,
            kernel::with_host(&report.hosts, process.trace, name),
            grouped(process.threads),
            table::duration(process.active_ns),
            percent(process.active_ns, report.duration_ns),
            grouped(process.switches),
        ]
    };
    table::render(&columns, report.processes.iter().take(rows).map(row))
        + &kernel::more(rows, report.processes.len())
}

fn threads(report: &CpuReport, rows: usize) -> String {
    let columns = [
        Column::number("TID"),
        Column::number("PID"),
        Column::text("Thread"),
        Column::number("Active"),
        Column::number("Share").left_out(2),
        Column::number("Switches").left_out(1),
    ];
    let row = |row: &tracebraid_reports::cpu::ThreadRow| {
        vec![
            kernel::id(row.thread.tid),
            kernel::id(row.thread.pid),
            kernel::name(&report.hosts, &row.thread),
            table::duration(row.active_ns),
            percent(row.active_ns, report.duration_ns),
            grouped(row.switches),
        ]
    };
    table::render(&columns, report.threads.iter().take(rows).map(row))
        + &kernel::more(rows, report.threads.len())
}
