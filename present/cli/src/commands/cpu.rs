//! `tracebraid cpu`: CPU time by CPU, process and thread.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::cpu::{CpuAnalysis, CpuOptions, GROUPINGS};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, PriorityArgs, ViewArgs};
use crate::failure::Failure;

/// Show which processes and threads used each CPU
///
/// Active time by CPU, process and thread. `--view top` lists the longest intervals for which a
/// thread ran on a CPU without a switch, `--view log` every interval, `--view freq` a histogram of
/// their durations.
///
/// Needs sched_switch; migrations need sched_migrate_task. A thread is shown with its last known
/// name. CPU time before the first switch of a CPU, and after lost events, is shown as unknown.
/// Priorities are the kernel's (120 is nice 0); the fields prev_prio and next_prio of LTTng's
/// events are 100 lower.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    mut_arg("view", views::only_stats),
    mut_arg("min", |min| min.help("Show only intervals of at least this duration (active times include all): 10us, 2.5ms, 1s")),
    mut_arg("max", |max| max.help("Show only intervals of at most this duration")),
    mut_arg("prio", |prio| prio.help("Select threads that had one of these kernel priorities, numbers and ranges: -1 \
        deadline, 0-99 real time, 100-139 others (120 is nice 0)")),
    after_help = "Examples:
  tracebraid cpu ~/lttng-traces/my-session
  tracebraid cpu --from +1s --to +1s --cpu 0,1 TRACE
  tracebraid cpu --procname 'nginx*' --format csv TRACE
  tracebraid cpu --view top,freq --cpu 2 TRACE
  tracebraid cpu --by process --procname 'nginx*' TRACE
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
    histograms: HistogramArgs,
    #[command(flatten)]
    priorities: PriorityArgs,
}

pub(super) fn run(args: &CpuArgs) -> Result<ExitCode, Failure> {
    let histograms = args.histograms.histograms()?;
    views::run::<CpuAnalysis>(&args.report, &args.views, histograms, |views| CpuOptions {
        views,
        priorities: args.priorities.numbers(),
    })
}
