//! `tracebraid net`: traffic by interface, and TCP connections.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::net::{GROUPINGS, NetAnalysis, NetOptions};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, ViewArgs};
use crate::failure::Failure;
use crate::options;

/// Show traffic, drops and latency by interface; TCP connections
///
/// Latency is the time of a packet from the queue to the driver. `--view top` lists the slowest
/// packets, `--view log` every packet, `--view freq` a histogram.
///
/// Needs net_dev_queue, net_dev_xmit and net_if_receive_skb. Drops need skb_kfree; retransmissions
/// and resets need tcp_retransmit_skb, tcp_send_reset and tcp_receive_reset; irq_softirq_*
/// distinguishes packets of softirqs from those of threads. Connections need packet headers, which
/// LTTng 2.8 and later records. With several hosts, `ADDRESS @ HOST` was seen at that host;
/// `tracebraid sync` shows how long packets take from host to host.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    after_help = "Examples:
  tracebraid net ~/lttng-traces/my-session
  tracebraid net --interface 'eth*' --view freq --buckets linear TRACE
  tracebraid net --min 1ms --view log TRACE
  tracebraid net --format json TRACE | jq '.connections[:10]'")]
pub(crate) struct NetArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    /// Select interfaces by name (a pattern with * and ?; with several hosts also as 'eth0 @
    /// HOST'); TCP tables always cover all interfaces
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    interface: Vec<String>,
}

pub(super) fn run(args: &NetArgs) -> Result<ExitCode, Failure> {
    let histograms = args.histograms.histograms()?;
    views::run::<NetAnalysis>(&args.report, &args.views, histograms, |views| NetOptions {
        interfaces: options::globs(&args.interface),
        ..views.into()
    })
}
