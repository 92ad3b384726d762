//! `tracebraid processes`: process tree with CPU time, system calls and bytes.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::processes::{GROUPINGS, ProcessAnalysis, ProcessOptions};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, ViewArgs};
use crate::failure::Failure;

/// Show the process tree with CPU time, system calls and bytes
///
/// For each process: its parent, when it began and ended, and what it used, alone and together with
/// its descendants. `--view top` lists the longest-lived processes, `--view log` every fork, exec
/// and exit, `--view freq` a histogram of lifetimes.
///
/// The tree needs sched_process_fork, sched_process_exec, sched_process_exit and the state dump
/// (lttng_statedump_process_state); CPU time needs sched_switch; calls need the entry and exit
/// events of system calls. A process whose id was used before has a row of its
/// own.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    mut_arg("view", views::only_stats),
    mut_arg("min", |min| min.help("Show only processes that lived at least this long (the tree shows all): 10us, 2.5ms, 1s")),
    mut_arg("max", |max| max.help("Show only processes that lived at most this long")),
    after_help = "Examples:
  tracebraid processes ~/lttng-traces/my-session
  tracebraid processes --top 50 --from +1s --to +1s TRACE
  tracebraid processes --procname 'nginx*' TRACE
  tracebraid processes --view log --from +1s --to +1s TRACE
  tracebraid processes --view top,freq --max 10ms TRACE
  tracebraid processes --format json TRACE \\
      | jq '.processes[] | select(.parent_pid == 284) | .name'"
)]
pub(crate) struct ProcessesArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
}

pub(super) fn run(args: &ProcessesArgs) -> Result<ExitCode, Failure> {
    let histograms = args.histograms.histograms()?;
    views::run::<ProcessAnalysis>(&args.report, &args.views, histograms, ProcessOptions::from)
}
