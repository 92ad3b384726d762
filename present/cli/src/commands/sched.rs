//! `tracebraid sched`: wake-up latency, run queues, switches and migrations.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::sched::{GROUPINGS, SchedAnalysis, SchedOptions};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, PriorityArgs, ViewArgs};
use crate::failure::Failure;

/// Show wake-up latency, run queues, switches and migrations
///
/// How long threads take from being woken to running and which threads woke them; why threads leave
/// their CPUs; how many threads wait for each CPU and how long; migrations between CPUs. `--view
/// top` lists the longest latencies, `--view log` every one, `--view freq` a histogram.
///
/// Needs sched_switch; latencies need sched_waking, sched_wakeup and sched_wakeup_new; migrations
/// need sched_migrate_task. The events of interrupts and softirqs distinguish wake-ups by
/// interrupts from those by threads. Each latency is charged to the CPU and the time at which it
/// ends. Priorities are the kernel's (120 is nice 0); the fields prev_prio and next_prio of LTTng's
/// events are 100 lower.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    after_help = "Examples:
  tracebraid sched ~/lttng-traces/my-session
  tracebraid sched --procname redis-server --view stats,freq TRACE
  tracebraid sched --by process TRACE
  tracebraid sched --prio 0-99 --min 100us --view log TRACE
  tracebraid sched --format json TRACE | jq '.queues[] | {cpu, max_length}'")]
pub(crate) struct SchedArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    #[command(flatten)]
    priorities: PriorityArgs,
}

pub(super) fn run(args: &SchedArgs) -> Result<ExitCode, Failure> {
    let histograms = args.histograms.histograms()?;
    views::run::<SchedAnalysis>(&args.report, &args.views, histograms, |views| {
        SchedOptions {
            priorities: args.priorities.numbers(),
            ..views.into()
        }
    })
}
