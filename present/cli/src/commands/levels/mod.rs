//! `tracebraid levels`: user-level threads, LWPs and CPUs.

mod export;
mod functions;
mod merge;
mod overview;
mod reactions;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::commands::report::ReportArgs;
use crate::failure::Failure;
use crate::lami::Analysis;

/// Show user-level threads, their LWPs and their CPUs
///
/// A program with its own scheduler (goroutines, fibres, tasks) is scheduled twice: its runtime
/// assigns user-level threads to LWPs, and the kernel assigns LWPs to CPUs. The tables show where
/// the time of each user-level thread went at both levels: active; its LWP preempted, and by which
/// thread; its LWP waiting in the kernel; ready without an LWP; blocked, by reason. For each LWP
/// they show the time in user-level threads, in its scheduler, and idle.
///
/// The traces of the kernel and of the program are merged into a temporary super-trace first;
/// `merge` writes one, in which user-level threads are threads, so that all commands show them.
/// `--pid`, `--tid` and `--procname` select user-level threads and LWPs; `--ult` selects user-level
/// threads by the id or the name that the runtime gave to them.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    mut_arg("levels", |levels| levels.default_value("true").hide(true)),
    after_help = "Examples:
  tracebraid levels my-recording
  tracebraid levels --ult 'worker*' --table threads,preempted_by my-recording
  tracebraid levels --table functions --function 'parse*' my-recording
  tracebraid levels --format json my-recording | jq '.preempted_by[0]'
  tracebraid levels reactions my-recording
  tracebraid levels merge my-recording -o SUPER
  tracebraid print --filter 'ctx.ult == 15 && sched_switch' SUPER
  tracebraid critical-path --longest 'ult_wait_*' SUPER
  tracebraid levels export --perfetto out.perfetto-trace SUPER"
)]
pub(crate) struct LevelsArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    ults: overview::UltArgs,
    #[command(flatten)]
    own: overview::OverviewArgs,
    #[command(subcommand)]
    command: Option<LevelsCommand>,
}

#[derive(Subcommand, Debug)]
enum LevelsCommand {
    Merge(merge::MergeArgs),
    Export(export::ExportArgs),
    Reactions(Box<reactions::ReactionsArgs>),
}

pub(super) fn run(args: &LevelsArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(LevelsCommand::Merge(args)) => merge::run(args),
        Some(LevelsCommand::Reactions(args)) => reactions::run(args),
        Some(LevelsCommand::Export(args)) => export::run(args),
        None => overview::run(&args.report, &args.ults, &args.own),
    }
}

/// The command's tables for LAMI.
pub(super) fn lami() -> Analysis {
    overview::lami()
}

/// The tables of `levels reactions` for LAMI.
pub(super) fn reactions_lami() -> Analysis {
    reactions::lami()
}
