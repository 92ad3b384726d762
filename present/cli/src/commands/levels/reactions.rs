//! `tracebraid levels reactions`: from a wake-up to the next act of a user-level thread.

use std::process::ExitCode;

use clap::Args;
use tracebraid_reports::levels::ReactionAnalysis;

use crate::commands::levels::overview::{self, OverviewArgs, UltArgs};
use crate::commands::report::ReportArgs;
use crate::failure::Failure;
use crate::lami::Analysis;

/// Show how fast user-level threads react to interrupts and wake-ups
///
/// A reaction begins with the interrupt that makes a thread ready, or with the wake-up by another
/// thread, and ends when the user-level thread enters or leaves a system call or a function, or leaves its
/// LWP. Its parts: `interrupt`, up to the wake-up; `kernel`, until the LWP has a CPU; `scheduler`,
/// until the scheduler of the LWP wakes the user-level thread; `lwp`, until the user-level thread
/// has an LWP; `thread`, until it acts. A thread that polls and yields is always ready, so it has no
/// reactions.
#[derive(Args, Debug)]
#[command(
    mut_arg("levels", |levels| levels.default_value("true").hide(true)),
    after_help = "Examples:
  tracebraid levels reactions my-recording
  tracebraid levels reactions --ult daemon --table longest --top 5 my-recording
  tracebraid levels reactions --format json my-recording | jq '.sources'")]
pub(super) struct ReactionsArgs {
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    ults: UltArgs,
}

pub(super) fn run(args: &ReactionsArgs) -> Result<ExitCode, Failure> {
    overview::report::<ReactionAnalysis>(&args.report, &args.ults, &OverviewArgs::default())
}

pub(super) fn lami() -> Analysis {
    Analysis::of::<ReactionAnalysis>("Reactions of user-level threads to interrupts and wake-ups")
}
