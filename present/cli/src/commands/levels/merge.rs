//! `tracebraid levels merge`: writes a super-trace.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::fold::FoldArgs;
use crate::merged;
use crate::options::{self, InputArgs};
use crate::output::Output;
use crate::spare;
use crate::warnings::Warnings;

/// Merge kernel and user-level scheduling into a super-trace
///
/// Each event record of the super-trace has its user-level thread, its LWP and its CPU. All event
/// records of the input are kept; switches, wake-ups, creations and ends of user-level threads are
/// also written as the kernel's own events. docs/reference/super-trace.md describes the format.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid record --levels -o my-recording -- ./my-program
  tracebraid levels merge my-recording -o SUPER
  tracebraid waits SUPER")]
pub(super) struct MergeArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Directory of the super-trace, which must not exist
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Largest error between the clocks of the kernel and of programs: an event record outside of
    /// the intervals in which its thread ran is moved by at most this time; default: 10us, or 20us
    /// if the clocks are not the same
    #[arg(long, value_name = "TIME", value_parser = merged::bound)]
    bound: Option<u64>,
    #[command(flatten)]
    fold: FoldArgs,
}

pub(super) fn run(args: &MergeArgs) -> Result<ExitCode, Failure> {
    let set = options::open_recorded(&args.input)?;
    spare::check(&args.output, &set, &args.input.read())?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    warnings.nothing_yet(&set);
    let merged = merged::merge_into(&set, &args.output, args.bound, &args.fold)?;
    let mut lines = String::new();
    for own in &merged {
        warnings.reading(&own.damage);
        merged::notes(own)
            .iter()
            .for_each(|note| warnings.note(note));
        lines.push_str(&merged::said(own, &own.path.display().to_string()));
        lines.push('\n');
    }
    Output::open(None)?.write(lines.as_bytes())?;
    Ok(warnings.finish(args.input.strict))
}
