//! `tracebraid history build`: from a trace to a history.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracebraid_history::{BuildError, Built, build};

use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options::{self, InputArgs};
use crate::output::Output;
use crate::table::{bytes, grouped, number_of};
use crate::warnings::Warnings;

/// Builds the history of a kernel trace.
///
/// The file is complete when it has its name: an interrupted build leaves none. It is the same for any number of threads.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid history build TRACE -o TRACE.history
  tracebraid history build server/kernel client/kernel -o both.history")]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The file to write
    #[arg(long, short = 'o', value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    fold: FoldArgs,
}

/// Runs it.
pub(super) fn run(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let set = options::open(&args.input)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    let options = args.fold.options(None);
    let built = fold::watched(|control| build(&set, &args.input.paths, &args.output, options, control));
    let built = built.map_err(|error| match error {
        BuildError::File(error) => Failure::output(error.to_string()),
        BuildError::Fold(_) => Failure::interrupted(),
        BuildError::Nothing => Failure::nothing_readable(error.to_string()),
    })?;
    warnings.reading(&built.damage);
    if built.meta.losses > 0 {
        let times = number_of(built.meta.losses, "time", "times");
        warnings.note(&format!(
            "events were lost {times}: what they would have told is not known"
        ));
    }
    Output::open(None)?.write(summary(args, &built).as_bytes())?;
    Ok(warnings.finish(args.input.strict))
}

fn summary(args: &BuildArgs, built: &Built) -> String {
    let share = built.bytes as f64 * 100.0 / built.meta.bytes.max(1) as f64;
    format!(
        "{}: {} ({} bytes), {share:.1} % of {} of packets\n",
        args.output.display(),
        bytes(built.bytes),
        grouped(built.bytes),
        bytes(built.meta.bytes),
    )
}
