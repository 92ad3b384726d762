//! `tracebraid waits`: what system calls waited for.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::waits::{WaitAnalysis, WaitOptions};

use crate::commands::report::ReportArgs;
use crate::commands::views::{self, CallArgs, ViewArgs};
use crate::failure::Failure;

/// Shows what the system calls of a kernel trace waited for: their time divided, to the nanosecond,
/// into running, waiting for a CPU, and waiting for a disk, the network, a timer, a futex, another
/// thread and the like, by call, thread and process; who waits at which futex and who wakes them;
/// how long sockets take by peer; the longest waits and what ended them; each wait.
///
/// Needs the events of system calls, sched_switch and sched_waking; irq_handler_*, irq_softirq_*,
/// timer_hrtimer_expire_* and block_rq_* to tell what woke a thread. What was not recorded is
/// unknown. A call counts where and when it ends, with all its waits.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid waits ~/lttng-traces/my-session
  tracebraid waits --syscall 'f*sync,p*64' --procname postgres TRACE
  tracebraid waits --view log --min 10ms TRACE
  tracebraid waits --format json TRACE | jq '.futexes[:5]'")]
pub(crate) struct WaitsArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    calls: CallArgs,
}

/// Runs it.
pub(super) fn run(args: &WaitsArgs) -> Result<ExitCode, Failure> {
    views::run::<WaitAnalysis>(&args.report, &args.views, |views| WaitOptions {
        views,
        calls: args.calls.names(),
    })
}
