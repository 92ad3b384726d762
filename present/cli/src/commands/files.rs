//! `tracebraid files`: which files were read and written, by whom, and how long that took.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::files::{FilesAnalysis, FilesOptions};

use crate::commands::report::ReportArgs;
use crate::commands::views::{self, CallArgs, SizeArgs, ViewArgs};
use crate::failure::Failure;
use crate::options;

/// Shows the files of a kernel trace: how much was read from and written to each, by which
/// processes, and how long calls took that open, read, write, copy, sync, close; the slowest ones;
/// each one; how often each length occurred.
///
/// Needs the events of system calls (entry and exit), and sched_switch or the tid context to tell
/// threads apart; sched_process_fork, sched_process_exec, sched_process_exit and the state dump for
/// the names of what is open already. A call counts where and when it ends.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid files ~/lttng-traces/my-session
  tracebraid files --path '/var/lib/*' --procname postgres TRACE
  tracebraid files --min 10ms --view top,log TRACE
  tracebraid files --minsize 64k --view freq TRACE
  tracebraid files --syscall 'f*sync' --view top TRACE
  tracebraid files --format json TRACE | jq '.files[] | {path, written_bytes}'")]
pub(crate) struct FilesArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    views: ViewArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    #[command(flatten)]
    calls: CallArgs,
    /// Only these files (a pattern with * and ?, which match / too)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    path: Vec<String>,
}

/// Runs it.
pub(super) fn run(args: &FilesArgs) -> Result<ExitCode, Failure> {
    args.sizes.check()?;
    views::run::<FilesAnalysis>(&args.report, &args.views, |views| FilesOptions {
        views,
        sizes: args.sizes.limits(),
        paths: options::globs(&args.path),
        calls: args.calls.names(),
    })
}
