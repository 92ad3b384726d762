//! `tracebraid waits`: reasons for waits in system calls.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tracebraid_reports::waits::{GROUPINGS, WaitAnalysis, WaitOptions, reason_names};

use crate::commands::devices;
use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, CallArgs, ViewArgs};
use crate::failure::Failure;
use crate::named_globs::NamedGlob;
use crate::options;

/// Show what system calls waited for: disk, network, lock, CPU
///
/// The time of each call is divided, to the nanosecond, into running, waiting for a CPU, and
/// waiting for a disk, the network, a timer, a futex, another thread and so on; by call, thread and
/// process. Further tables show which threads wait at each futex and which wake them, and socket
/// times by peer. `--view top` lists the longest waits with their causes, `--view log` every
/// wait. Waits outside system calls (page faults, preemption of a program's own code) are not
/// counted: `tracebraid critical-path` covers all of a thread's time.
///
/// Needs the events of system calls, sched_switch and sched_waking; irq_handler_*, irq_softirq_*,
/// timer_hrtimer_expire_* and block_rq_* identify what woke a thread. Reasons that were not
/// recorded are shown as unknown. Each call, with all its waits, is charged to the CPU and the time
/// at which it ends.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    after_help = "Examples:
  tracebraid waits ~/lttng-traces/my-session
  tracebraid waits --syscall 'f*sync,p*64' --procname postgres TRACE
  tracebraid waits --why 'block-*,futex' --by call TRACE
  tracebraid waits --view log --min 10ms TRACE
  tracebraid waits --format json TRACE | jq '.futexes[:5]'")]
pub(crate) struct WaitsArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    #[command(flatten)]
    calls: CallArgs,
    /// Select wait reasons by name (a pattern with * and ?): of each call, only the time spent for
    /// these reasons counts
    #[arg(long, value_name = "GLOB", value_delimiter = ',', value_parser = NamedGlob(reason_names))]
    why: Vec<String>,
}

pub(super) fn run(args: &WaitsArgs) -> Result<ExitCode, Failure> {
    let histograms = args.histograms.histograms()?;
    args.views.check()?;
    let mut subject = args.report.open()?;
    let within = (&subject.set, devices::window(subject.range));
    let waits = devices::waits(within, &mut subject.warnings, &args.report.fold)?;
    let device_calls = waits.map(|(analysis, found)| analysis.device_calls(&found));
    let device_calls = Arc::new(device_calls.unwrap_or_default());
    let selection = args.report.selection(&subject);
    let views = args.report.views(&args.views, histograms);
    let options = |views| WaitOptions {
        views,
        calls: args.calls.names(),
        reasons: options::globs(&args.why),
        devices: Arc::clone(&device_calls),
    };
    let report =
        views::report::<WaitAnalysis>(&args.report, &mut subject, selection, views, options)?;
    args.report.show(subject, report)
}
