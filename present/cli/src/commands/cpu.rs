//! `tracebraid cpu`: who used the CPUs.

use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use tracebraid_follow::Selection;
use tracebraid_reports::cpu::{CpuAnalysis, CpuReport, CpuUsage};
use tracebraid_tables::Lists;
use tracebraid_tables::Report;

use crate::commands::cells;
use crate::commands::report::{ReportArgs, Show};
use crate::commands::sections::{lengths, other_csv, other_tables};
use crate::commands::views::{self, Framed, PriorityArgs, ViewArgs};
use crate::failure::Failure;
use crate::table::{self, Column, grouped, percent};

/// Shows who used the CPUs: active time by CPU, process and thread of a kernel trace; the longest stretches
/// for which one thread ran on one CPU, from switch to switch; each of them; how often each length occurred.
///
/// Needs the event sched_switch; migrations need sched_migrate_task. Threads are shown by their last known name. Time of which it is
/// not known who ran (before a CPU's first switch, after lost events) is said to be unknown.
#[derive(Args, Debug)]
#[command(
    mut_arg("view", views::only_stats),
    mut_arg("min", |min| min.help("Only stretches of at least that long (active times count all): 10us, 2.5ms, 1s")),
    mut_arg("max", |max| max.help("Only stretches of at most that long")),
    mut_arg("prio", |prio| prio.help("Only threads that had one of these priorities, numbers and ranges, as the kernel counts them: -1 \
        deadline, 0-99 real time, 100-139 others (120 for a nice value of 0)")),
    after_help = "Examples:
  tracebraid cpu ~/lttng-traces/my-session
  tracebraid cpu --from +1s --to +2s --cpu 0,1 TRACE
  tracebraid cpu --procname 'nginx*' --format csv TRACE
  tracebraid cpu --view top,freq --cpu 2 TRACE
  tracebraid cpu --prio -1-99 TRACE
  tracebraid cpu --view log --min 10ms TRACE
  tracebraid cpu --format json TRACE | jq '.cpus[].active_share'"
)]
pub(crate) struct CpuArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    priorities: PriorityArgs,
}

/// Runs it.
pub(super) fn run(args: &CpuArgs) -> Result<ExitCode, Failure> {
    views::run_framed::<CpuAnalysis>(&args.report, &args.views, |selection| {
        selection.priorities = args.priorities.numbers();
    })
}

impl Framed for CpuReport {
    fn lists(&mut self) -> &mut Lists {
        &mut self.lists
    }

    fn unmatched(&self, selection: &Selection) -> Option<&'static str> {
        let chose_none = !selection.priorities.is_empty() && self.threads.is_empty();
        chose_none.then_some("--prio matches no thread of what was chosen")
    }
}

impl Show for CpuReport {
    fn sections(&self) -> Report {
        self.into()
    }

    fn summary(&self) -> String {
        let total = &self.total;
        let all = self.head.duration_ns.saturating_mul(total.cpus);
        table::paragraph(&format!(
            "{} over {}: {} active, {} idle, {} unknown; {}",
            table::number_of(total.cpus, "CPU", "CPUs"),
            table::duration(self.head.duration_ns),
            percent(total.active_ns, all),
            percent(total.idle_ns, all),
            percent(total.unknown_ns, all),
            table::number_of(total.switches, "switch", "switches"),
        ))
    }

    fn tables(&self, rows: usize, zone: &TimeZone) -> Vec<String> {
        if self.cpus.is_empty() {
            return Vec::new();
        }
        let mut tables = vec![cpus(self), processes(self, rows), threads(self, rows)];
        tables.extend(other_tables(&self.head, &self.lists, rows, zone));
        tables
    }

    /// One row a thread; then what other views have.
    fn csv(&self, rows: usize) -> String {
        let columns = [
            "host",
            "pid",
            "tid",
            "name",
            "active_ns",
            "active_share",
            "switches",
            "migrations",
            "priority",
            "priorities",
        ];
        let mut table = crate::csv::Rows::new(&columns);
        for row in self.threads.iter().take(rows) {
            let usage = [
                row.usage.active_ns.to_string(),
                row.usage.active_share.to_string(),
                row.usage.switches.to_string(),
                row.usage.migrations.map_or(String::new(), |all| all.to_string()),
                row.priority.map_or(String::new(), |last| last.to_string()),
                row.priorities
                    .iter()
                    .map(i32::to_string)
                    .collect::<Vec<_>>()
                    .join(" "),
            ];
            table.add(
                cells::plain_thread(&self.head, &row.thread)
                    .into_iter()
                    .chain(usage),
            );
        }
        table.finish() + &other_csv(&self.head, &self.lists, rows)
    }
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
            cells::with_host(&report.head, cpu.trace, cpu.cpu.to_string()),
            table::duration(cpu.active_ns),
            percent(cpu.active_ns, report.head.duration_ns),
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
    text + &lengths(
        &report.lists,
        "stretches",
        ("stretch", "stretches"),
        "switch to switch",
    )
}

/// Active time, its share of the range, switches and migrations.
fn usage(report: &CpuReport, usage: &CpuUsage) -> [String; 4] {
    [
        table::duration(usage.active_ns),
        percent(usage.active_ns, report.head.duration_ns),
        grouped(usage.switches),
        usage.migrations.map_or("-".to_owned(), grouped),
    ]
}

fn processes(report: &CpuReport, rows: usize) -> String {
    let columns = [
        Column::number("PID"),
        Column::text("Process"),
        Column::number("Threads").left_out(4),
        Column::number("Active"),
        Column::number("Share").left_out(3),
        Column::number("Switches").left_out(2),
        Column::number("Migrations").left_out(1),
    ];
    let row = |row: &tracebraid_reports::cpu::CpuProcess| {
        let about = cells::process(&report.head, &row.process).into_iter();
        about
            .chain([grouped(row.process.threads)])
            .chain(usage(report, &row.usage))
            .collect()
    };
    table::render(&columns, report.processes.iter().take(rows).map(row))
        + &cells::more(rows, report.processes.len())
}

fn threads(report: &CpuReport, rows: usize) -> String {
    let columns = [
        Column::number("TID"),
        Column::number("PID"),
        Column::text("Thread"),
        Column::number("Active"),
        Column::number("Share").left_out(4),
        Column::number("Switches").left_out(3),
        Column::number("Migrations").left_out(2),
        Column::number("Prio").left_out(1),
    ];
    let row = |row: &tracebraid_reports::cpu::CpuThread| {
        let about = [
            cells::id(row.thread.tid),
            cells::id(row.thread.pid),
            cells::name(&report.head, &row.thread),
        ];
        let cells = about.into_iter().chain(usage(report, &row.usage));
        cells.chain([cells::id(row.priority)]).collect()
    };
    table::render(&columns, report.threads.iter().take(rows).map(row))
        + &cells::more(rows, report.threads.len())
}
