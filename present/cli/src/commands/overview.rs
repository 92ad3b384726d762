//! `tracebraid report`: the one-page summary.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::overview::{self, Parts};

use crate::commands::report;
use crate::failure::Failure;

/// Shows on one page what to know first of a kernel trace: how long and how loaded, who used most of
/// the CPUs, disks and network, what took longest and when, what was lost, and what looks wrong, with
/// the command that digs further.
///
/// It is made from the reports cpu, io, syscalls, sched, irq, disk and net, in one pass over the trace.
/// What was not recorded is left out.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid report ~/lttng-traces/my-session
  tracebraid report --from +1s --to +2s TRACE
  tracebraid report --top 10 --format json TRACE | jq .findings")]
pub(crate) struct OverviewArgs {
    #[command(flatten)]
    report: report::ReportArgs,
}

/// Rows of each list.
const ROWS: usize = 5;

/// Runs it.
pub(super) fn run(args: &OverviewArgs) -> Result<ExitCode, Failure> {
    let mut subject = args.report.open()?;
    let selection = args.report.selection(subject.range);
    let analysis = overview::analysis(&subject.set, &selection);
    let parts = Parts::from(args.report.fold_all(&mut subject, &analysis, &selection)?);
    let lost = crate::loss::summary(&subject.set);
    let rows = args.report.top().unwrap_or(ROWS);
    args.report.show(subject, overview::overview(&parts, &lost, rows))
}
