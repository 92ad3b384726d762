//! `tracebraid schema`: JSON schemas of reports, from which `docs/reference/schemas` is made.

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::output::Output;
use crate::schema;

/// Print the JSON schema of a report
#[derive(Args, Debug)]
#[command(
    hide = true,
    after_help = "Examples:
  tracebraid schema waits"
)]
pub(crate) struct SchemaArgs {
    /// Command, such as cpu
    #[arg(value_name = "COMMAND")]
    command: String,
}

/// Runs it.
pub(super) fn run(args: &SchemaArgs) -> Result<ExitCode, Failure> {
    let name = args.command.as_str();
    let analysis = super::lami(name).ok_or_else(|| {
        Failure::usage(format!(
            "{name} is not a report; docs/reference/schemas has the schemas of all commands"
        ))
    })?;
    Output::open(None)?.write_json(&schema::of(name, analysis.title, &(analysis.empty)()))?;
    Ok(ExitCode::SUCCESS)
}
