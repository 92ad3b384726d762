//! `tracebraid net`: network interfaces and TCP.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::net::{NetAnalysis, NetOptions};

use crate::commands::report::ReportArgs;
use crate::commands::views::{self, ViewArgs};
use crate::failure::Failure;
use crate::options;

/// Shows what network interfaces sent, received and dropped, how long packets took from the queue
/// to the driver, who queued them, and TCP connections; the slowest packets; each one; how often
/// each duration occurred.
///
/// Needs net_dev_queue, net_dev_xmit and net_if_receive_skb; skb_kfree for drops,
/// tcp_retransmit_skb, tcp_send_reset and tcp_receive_reset for what their names say, irq_softirq_*
/// to tell threads from softirqs. Connections are told by the headers that LTTng records since 2.8.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid net ~/lttng-traces/my-session
  tracebraid net --interface 'eth*' --view freq TRACE
  tracebraid net --min 1ms --view log TRACE
  tracebraid net --format json TRACE | jq '.connections[:10]'")]
pub(crate) struct NetArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    /// Only these interfaces (a pattern with * and ?); TCP is always that of all
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    interface: Vec<String>,
}

/// Runs it.
pub(super) fn run(args: &NetArgs) -> Result<ExitCode, Failure> {
    views::run::<NetAnalysis>(&args.report, &args.views, |views| NetOptions {
        interfaces: options::globs(&args.interface),
        ..views.into()
    })
}
