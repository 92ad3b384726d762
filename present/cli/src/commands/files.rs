//! `tracebraid files`: bytes and latency of calls by file.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::files::{FileChoice, FilesAnalysis, FilesOptions, GROUPINGS, type_names};

use crate::commands::histograms::{self, HistogramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::views::{self, CallArgs, SizeArgs, ViewArgs};
use crate::failure::Failure;
use crate::named_globs::NamedGlob;
use crate::options;

/// Show bytes read and written, and call latency, by file
///
/// `--view top` lists the slowest calls that open, read, write, copy, sync or close a file, `--view
/// log` every call, `--view freq` a histogram of their durations.
///
/// Needs the entry and exit events of system calls, and sched_switch or the tid context to assign
/// them to threads. Names of files that were open before the trace began need the state dump,
/// sched_process_fork, sched_process_exec and sched_process_exit. Each call is charged to the CPU
/// and the time at which it ends.
#[derive(Args, Debug)]
#[command(
    mut_arg("by", |by| histograms::known(by, GROUPINGS)),
    after_help = "Examples:
  tracebraid files ~/lttng-traces/my-session
  tracebraid files --path '/var/lib/*' --procname postgres TRACE
  tracebraid files --min 10ms --view top,log TRACE
  tracebraid files --type 'network,unix' --by process TRACE
  tracebraid files --minsize 64k --view freq TRACE
  tracebraid files --syscall 'f*sync' --view top TRACE
  tracebraid files --type file --syscall '*read*' --view top --top 10 TRACE
  tracebraid files --format json TRACE | jq '.files[] | {path, written_bytes}'")]
pub(crate) struct FilesArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    histograms: HistogramArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    #[command(flatten)]
    calls: CallArgs,
    /// Select files by path (a pattern with * and ?, which match / too)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    path: Vec<String>,
    /// Select files by type (a pattern with * and ?)
    #[arg(long = "type", value_name = "GLOB", value_delimiter = ',', value_parser = NamedGlob(type_names))]
    types: Vec<String>,
}

pub(super) fn run(args: &FilesArgs) -> Result<ExitCode, Failure> {
    args.sizes.check()?;
    let histograms = args.histograms.histograms()?;
    views::run::<FilesAnalysis>(&args.report, &args.views, histograms, |views| {
        FilesOptions {
            views,
            sizes: args.sizes.limits(),
            files: FileChoice {
                paths: options::globs(&args.path),
                types: options::globs(&args.types),
            },
            calls: args.calls.names(),
        }
    })
}
