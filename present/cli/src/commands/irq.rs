//! `tracebraid irq`: interrupts and softirqs.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::irq::{GROUPINGS, IrqAnalysis, IrqOptions};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, ViewArgs};
use crate::failure::Failure;
use crate::options;

/// Show interrupts and softirqs: counts, times, raise latency
///
/// `--view top` lists the longest handlers, `--view log` every handler, `--view freq` a histogram
/// of their durations.
///
/// Interrupts need irq_handler_entry and irq_handler_exit; softirqs need irq_softirq_raise,
/// irq_softirq_entry and irq_softirq_exit (without `irq_` in traces of perf). x86 vectors,
/// inter-processor interrupts, tasklets and timer functions are shown where they were recorded.
/// Each handler is charged to the CPU and the time at which it ends. --tid, --pid and
/// --procname have no effect.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    after_help = "Examples:
  tracebraid irq ~/lttng-traces/my-session
  tracebraid irq --irq 'virtio*,26' --view stats,freq TRACE
  tracebraid irq --softirq NET_RX --by cpu TRACE
  tracebraid irq --softirq NET_RX,NET_TX --min 1ms --view log TRACE
  tracebraid irq --format json TRACE | jq '.softirqs[] | {name, max_ns}'")]
pub(crate) struct IrqArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    /// Select interrupts by number or name (patterns with * and ?; names of vectors, tasklets and
    /// timers too); hides softirqs unless --softirq is given
    #[arg(long, value_name = "IRQ", value_delimiter = ',')]
    irq: Vec<String>,
    /// Select softirqs by name as in /proc/softirqs (patterns with * and ?; case is ignored) or by
    /// number; hides interrupts unless --irq is given
    #[arg(long, value_name = "SOFTIRQ", value_delimiter = ',')]
    softirq: Vec<String>,
}

pub(super) fn run(args: &IrqArgs) -> Result<ExitCode, Failure> {
    args.report
        .tell_threads_are_ignored("interrupts belong to no thread");
    // The names of softirqs are upper-case.
    let softirqs = args.softirq.iter().map(|name| name.to_ascii_uppercase());
    let softirqs: Vec<String> = softirqs.collect();
    let histograms = args.histograms.histograms()?;
    views::run::<IrqAnalysis>(&args.report, &args.views, histograms, |views| IrqOptions {
        interrupts: options::globs(&args.irq),
        softirqs: options::globs(&softirqs),
        ..views.into()
    })
}
