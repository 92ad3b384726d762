//! `tracebraid man`: its manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::failure::Failure;

/// Writes tracebraid's manual pages into a directory.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid man ~/.local/share/man/man1
  man tracebraid-print")]
pub(crate) struct ManArgs {
    /// The directory; it is made if it is not there
    directory: PathBuf,
}

/// Runs it.
pub(super) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let failed = |error| {
        Failure::output(format!(
            "{}: cannot be written: {error}",
            args.directory.display()
        ))
    };
    std::fs::create_dir_all(&args.directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.directory).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
