//! `tracebraid executions sql`: questions in SQL.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Format;
use crate::failure::Failure;

/// Answers a question in SQL about a database of executions.
#[derive(Args, Debug)]
pub(super) struct SqlArgs {
    /// The database
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// The question; - for standard input
    #[arg(value_name = "SQL")]
    question: String,
    /// How to show the answer
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs it.
pub(super) fn run(args: &SqlArgs) -> Result<ExitCode, Failure> {
    let mut question = args.question.clone();
    if question == "-" {
        question.clear();
        std::io::stdin()
            .read_to_string(&mut question)
            .map_err(|error| Failure::usage(format!("standard input: {error}")))?;
    }
    let _ = super::open(&args.file)?;
    Err(Failure::usage("not yet"))
}
