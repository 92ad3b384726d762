//! `tracebraid syscalls`: counts, durations and errors of system calls.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::syscalls::{GROUPINGS, SyscallAnalysis, SyscallOptions};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, CallArgs, ViewArgs};
use crate::failure::Failure;

/// Show counts, durations and errors of system calls
///
/// By call and by thread. `--view top` lists the longest calls, `--view log` every call, `--view
/// freq` a histogram of their durations.
///
/// Needs the entry and exit events of system calls, and sched_switch or the tid context to assign
/// them to threads. Each call is charged to the CPU and the time at which it ends.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    after_help = "Examples:
  tracebraid syscalls ~/lttng-traces/my-session
  tracebraid syscalls --syscall 'read,write,p*64' --view freq TRACE
  tracebraid syscalls --by thread --procname redis-server TRACE
  tracebraid syscalls --min 10ms --view log --procname nginx TRACE
  tracebraid syscalls --format json TRACE \\
      | jq '.syscalls[] | select(.errors > 0)'")]
pub(crate) struct SyscallsArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    #[command(flatten)]
    calls: CallArgs,
}

pub(super) fn run(args: &SyscallsArgs) -> Result<ExitCode, Failure> {
    let histograms = args.histograms.histograms()?;
    views::run::<SyscallAnalysis>(&args.report, &args.views, histograms, |views| {
        SyscallOptions {
            calls: args.calls.names(),
            ..views.into()
        }
    })
}
