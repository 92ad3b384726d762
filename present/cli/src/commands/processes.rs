//! `tracebraid processes`: the tree of processes, and what each used.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::processes::{ProcessAnalysis, ProcessOptions};

use crate::commands::report::ReportArgs;
use crate::commands::views::{self, ViewArgs};
use crate::failure::Failure;

/// Shows the tree of processes of a kernel trace: who made whom, when they began and ended, and
/// what each used of CPUs, system calls and bytes, alone and with all that it made; the longest
/// lives from begin to end; who was made, which programs were executed and who ended, one after the
/// other; how often each life time occurred.
///
/// Needs the events sched_process_fork, sched_process_exec, sched_process_exit and the state dump
/// (lttng_statedump_process_state) for the tree, sched_switch for CPU time, and those of system
/// calls (entry and exit). An id that is used again is another row.
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
    views::run::<ProcessAnalysis>(&args.report, &args.views, ProcessOptions::from)
}
