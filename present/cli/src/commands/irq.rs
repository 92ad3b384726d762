//! `tracebraid irq`: interrupts and softirqs.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::irq::{IrqAnalysis, IrqOptions};

use crate::commands::report::ReportArgs;
use crate::commands::views::{self, ViewArgs};
use crate::failure::Failure;
use crate::options;

/// Shows the interrupts and softirqs of a kernel trace: how many, how long their handlers took, how
/// long softirqs waited from raise to beginning, and what each CPU spent on them; the longest ones;
/// each one; how often each length occurred.
///
/// Needs irq_handler_entry and irq_handler_exit for interrupts, irq_softirq_raise,
/// irq_softirq_entry and irq_softirq_exit for softirqs (without irq_ in traces of perf). Vectors of
/// x86, interrupts between CPUs, tasklets and the functions of timers are shown where they were
/// recorded. A handler counts where and when it ends. Choosing threads changes nothing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid irq ~/lttng-traces/my-session
  tracebraid irq --irq 'virtio*,26' --view stats,freq TRACE
  tracebraid irq --softirq NET_RX,NET_TX --min 1ms --view log TRACE
  tracebraid irq --format json TRACE | jq '.softirqs[] | {name, count, max_ns}'")]
pub(crate) struct IrqArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    /// Only these interrupts: numbers, or names (patterns with * and ?; also of vectors, tasklets
    /// and timers). Softirqs only if --softirq is given, too
    #[arg(long, value_name = "IRQ", value_delimiter = ',')]
    irq: Vec<String>,
    /// Only these softirqs: names as in /proc/softirqs (patterns with * and ?), or numbers; case
    /// does not matter. Others only if --irq is given, too
    #[arg(long, value_name = "SOFTIRQ", value_delimiter = ',')]
    softirq: Vec<String>,
}

/// Runs it.
pub(super) fn run(args: &IrqArgs) -> Result<ExitCode, Failure> {
    args.report
        .tell_threads_are_ignored("interrupts belong to no thread");
    // They are all in capitals.
    let softirqs = args.softirq.iter().map(|name| name.to_ascii_uppercase());
    let softirqs: Vec<String> = softirqs.collect();
    views::run::<IrqAnalysis>(&args.report, &args.views, |views| IrqOptions {
        interrupts: options::globs(&args.irq),
        softirqs: options::globs(&softirqs),
        ..views.into()
    })
}
