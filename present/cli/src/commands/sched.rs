//! `tracebraid sched`: how long threads wait for a CPU, and why they leave it.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::sched::{SchedAnalysis, SchedOptions};

use crate::commands::report::ReportArgs;
use crate::commands::views::{self, PriorityArgs, ViewArgs};
use crate::failure::Failure;

/// Shows what the scheduler does: how long threads take from being woken to running, and who woke
/// them; why threads leave their CPUs; how many wait for each CPU, and how long; who goes from
/// which CPU to which.
///
/// Needs sched_switch; sched_waking, sched_wakeup and sched_wakeup_new for all that has to do with
/// waking; sched_migrate_task for migrations; the events of interrupts and softirqs to tell them
/// from the threads that they interrupt. A latency counts where and when it ends.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid sched ~/lttng-traces/my-session
  tracebraid sched --procname redis-server --view stats,freq TRACE
  tracebraid sched --prio 0-99 --min 100us --view log TRACE
  tracebraid sched --format json TRACE | jq '.queues[] | {cpu, average_length, max_length}'")]
pub(crate) struct SchedArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    priorities: PriorityArgs,
}

/// Runs it.
pub(super) fn run(args: &SchedArgs) -> Result<ExitCode, Failure> {
    views::run::<SchedAnalysis>(&args.report, &args.views, |views| SchedOptions {
        priorities: args.priorities.numbers(),
        ..views.into()
    })
}
