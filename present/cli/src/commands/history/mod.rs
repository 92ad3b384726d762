//! `tracebraid history`: the state of CPUs, threads and disks at any time.

mod append;
mod build;
mod first;
mod info;
mod query;
mod range;
mod rebuild;
mod report;
mod select;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Build and query the state of CPUs, threads and disks over time
///
/// `build` reads a kernel trace once and writes a history, a few percent of the size of the trace;
/// `query` answers from it at once, however long the trace is; `append` updates it with a trace
/// that is still being recorded. User-defined analyses (`build --analysis`) add further attributes:
/// see docs/reference/user-analyses.md.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid history build TRACE -o TRACE.history
  tracebraid history append TRACE.history
  tracebraid history query TRACE.history --at +1.5s
  tracebraid history query TRACE.history 'thread/1234/*' --from +1s --to +10ms
  tracebraid history query TRACE.history cpu/0/state --first '== irq'
  tracebraid history report TRACE.history 'cpu/*/state'
  tracebraid history build TRACE --analysis requests.toml -o TRACE.history")]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    command: HistoryCommand,
}

#[derive(Subcommand, Debug)]
enum HistoryCommand {
    Build(build::BuildArgs),
    Append(append::AppendArgs),
    Query(query::QueryArgs),
    Report(report::ReportArgs),
    Info(info::InfoArgs),
}

pub(super) fn run(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        HistoryCommand::Build(args) => build::run(args),
        HistoryCommand::Append(args) => append::run(args),
        HistoryCommand::Query(args) => query::run(args),
        HistoryCommand::Report(args) => report::run(args),
        HistoryCommand::Info(args) => info::run(args),
    }
}

/// Failure for a history that cannot be read.
fn unreadable(error: &tracebraid_history::HistoryError) -> Failure {
    Failure::nothing_readable(error.to_string())
}
