//! `tracebraid io`: bytes, errors and latency of I/O system calls.

use std::process::ExitCode;

use clap::Args;
use tracebraid_follow::Views;
use tracebraid_reports::files::{FilesAnalysis, FilesOptions, GROUPINGS};
use tracebraid_reports::io::{IoAnalysis, IoOptions};
use tracebraid_tables::{Total, Value, View};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, CallArgs, ViewArgs};
use crate::failure::Failure;
use crate::lami::{self, Analysis};

/// Show bytes, errors and latency of I/O system calls
///
/// By process, thread, system call and type of file descriptor. `--view top` lists the slowest
/// calls, `--view log` every call, `--view freq` a histogram of their durations, as in `tracebraid
/// files`.
///
/// Needs the entry and exit events of system calls, and sched_switch or the tid context to assign
/// them to threads. Each call is charged to the CPU and the time at which it ends.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    mut_arg("view", views::only_stats),
    after_help = "Examples:
  tracebraid io ~/lttng-traces/my-session
  tracebraid io --pid 1234 --top 5 TRACE
  tracebraid io --view top,freq --procname postgres TRACE
  tracebraid io --view stats,log --min 10ms TRACE
  tracebraid io --syscall 'sendfile*,splice' TRACE
  tracebraid io --from +1s --to +1s --format csv TRACE
  tracebraid io --format json TRACE \\
      | jq '.types[] | select(.type == \"network\")'"
)]
pub(crate) struct IoArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    #[command(flatten)]
    calls: CallArgs,
}

/// Statistics come from this command's own analysis, single calls from that of `files`.
pub(super) fn run(args: &IoArgs) -> Result<ExitCode, Failure> {
    let files = |views: Views| FilesOptions {
        calls: args.calls.names(),
        ..views.into()
    };
    let histograms = args.histograms.histograms()?;
    let mut others = args.views.views();
    if !others.contains(&View::Stats) {
        return views::run::<FilesAnalysis>(&args.report, &args.views, histograms, files);
    }
    others.retain(|view| *view != View::Stats);
    args.views.check()?;
    let mut subject = args.report.open()?;
    let selection = args.report.selection(&subject);
    let options = IoOptions {
        limits: args.views.limits(),
        calls: args.calls.names(),
    };
    let mut report = (args.report).fold::<IoAnalysis>(&mut subject, selection.clone(), options)?;
    report
        .notes
        .iter()
        .for_each(|note| subject.warnings.note(note));
    if !others.is_empty() {
        let views = Views {
            views: others,
            ..args.report.views(&args.views, histograms)
        };
        let calls =
            views::report::<FilesAnalysis>(&args.report, &mut subject, selection, views, files)?;
        report.sections.extend(calls.sections);
    }
    args.report.show(subject, report)
}

/// The LAMI interface: the tables of both analyses.
pub(super) fn lami() -> Analysis {
    Analysis {
        empty: || {
            let mut report = lami::empty::<IoAnalysis>();
            let calls = lami::empty::<FilesAnalysis>().sections.into_iter();
            let calls = calls.filter(|section| section.view != View::Stats);
            report.sections.extend(calls);
            // Without the view `stats`, the totals are those of `files`.
            let totals = lami::empty::<FilesAnalysis>().totals.into_iter();
            let is_new = |total: &Total| report.total(total.key) == Value::None;
            let totals: Vec<Total> = totals.filter(is_new).collect();
            report.totals.extend(totals);
            report
        },
        ..Analysis::of::<IoAnalysis>("Bytes, errors and latency of I/O system calls")
    }
}
