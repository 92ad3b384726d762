//! `tracebraid disk`: requests to block devices.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::disk::{DiskAnalysis, DiskOptions};

use crate::commands::report::ReportArgs;
use crate::commands::views::{self, SizeArgs, ViewArgs};
use crate::failure::Failure;
use crate::options;

/// Shows the requests to block devices: how many, how much was read and written, how long they took
/// from issue to completion and waited before, how many a driver had at a time, who issued them;
/// the slowest ones; each one; how often each latency occurred.
///
/// Needs block_rq_issue and block_rq_complete; block_rq_insert or block_getrq for the time in the
/// queue. A request counts where and when it is completed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid disk ~/lttng-traces/my-session
  tracebraid disk --disk 'nvme*,sda' --view freq TRACE
  tracebraid disk --min 10ms --view log TRACE
  tracebraid disk --format json TRACE | jq '.depth[] | {disk, utilization}'")]
pub(crate) struct DiskArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    /// Only these disks (a pattern with * and ?)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    disk: Vec<String>,
}

/// Runs it.
pub(super) fn run(args: &DiskArgs) -> Result<ExitCode, Failure> {
    args.sizes.check()?;
    views::run::<DiskAnalysis>(&args.report, &args.views, |views| DiskOptions {
        views,
        sizes: args.sizes.limits(),
        disks: options::globs(&args.disk),
    })
}
