//! `tracebraid info`: what a trace is made of.

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::options::{self, InputArgs};
use crate::warnings::Warnings;

/// Tells what a trace is made of.
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
}

/// Runs it.
pub(super) fn run(args: &InfoArgs) -> Result<ExitCode, Failure> {
    let set = options::open(&args.input)?;
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    Ok(warnings.finish(args.input.strict))
}
