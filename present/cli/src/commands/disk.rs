//! `tracebraid disk`: requests to block devices.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::disk::{DiskAnalysis, DiskOptions, GROUPINGS};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, SizeArgs, ViewArgs};
use crate::failure::Failure;
use crate::options;

/// Show requests to block devices: bytes, latency, queue depth
///
/// `--view top` lists the slowest requests, `--view log` every request, `--view freq` a histogram
/// of latencies. Latency is the time from issue to completion; the time in the queue before issue
/// is shown separately.
///
/// Needs block_rq_issue and block_rq_complete; queue times need block_rq_insert or block_getrq.
/// Each request is charged to the CPU and the time at which it completes.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    after_help = "Examples:
  tracebraid disk ~/lttng-traces/my-session
  tracebraid disk --disk 'nvme*,sda' --view freq TRACE
  tracebraid disk --by process TRACE
  tracebraid disk --min 10ms --view log TRACE
  tracebraid disk --format json TRACE | jq '.depth[] | {disk, utilization}'")]
pub(crate) struct DiskArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    /// Select disks by name (a pattern with * and ?); with several hosts also as 'vdc @ HOST'
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    disk: Vec<String>,
}

pub(super) fn run(args: &DiskArgs) -> Result<ExitCode, Failure> {
    args.sizes.check()?;
    let histograms = args.histograms.histograms()?;
    views::run::<DiskAnalysis>(&args.report, &args.views, histograms, |views| DiskOptions {
        views,
        sizes: args.sizes.limits(),
        disks: options::globs(&args.disk),
    })
}
