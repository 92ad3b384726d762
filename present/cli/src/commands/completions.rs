//! `tracebraid completions`: scripts that complete command lines in a shell.

use std::process::ExitCode;

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::Output;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid completions bash \\
      > ~/.local/share/bash-completion/completions/tracebraid
  tracebraid completions zsh > ~/.zfunc/_tracebraid
  tracebraid completions fish > ~/.config/fish/completions/tracebraid.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tracebraid", &mut script);
    Output::open(None)?.write(&script)?;
    Ok(ExitCode::SUCCESS)
}
