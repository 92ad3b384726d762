//! `tracebraid executions sql`: questions in SQL.

mod rows;
mod tables;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_executions::database::Database;
use tracebraid_sql::{Questions, SqlError, Traces};

use super::Format;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options;
use crate::output::{Output, say};
use crate::warnings::Warnings;

/// Answers questions in SQL about a database of executions, and about traces.
///
/// Without a question, it shows the tables: executions with their figures, the steps of their critical paths (segments),
/// their times by calling context (times, contexts), their threads; and of the traces that they come from, where those are still
/// there, or of those that --trace names, the event records (events), what threads did when (intervals), and the threads
/// (trace_threads). Nothing is ever written. See docs/executions-sql.md.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions sql requests.db
  tracebraid executions sql requests.db 'SELECT count(*), avg(duration_ns) / 1e6 AS ms FROM executions'
  tracebraid executions sql requests.db 'SELECT state, sum(duration_ns) / 1e6 AS ms FROM segments
      WHERE execution IN (SELECT id FROM executions ORDER BY duration_ns DESC LIMIT 10) GROUP BY state ORDER BY ms DESC'
  tracebraid executions sql requests.db \"SELECT name, count(*) AS times FROM events, executions AS one
      WHERE one.id = 17 AND time_ns BETWEEN one.begin_ns AND one.begin_ns + one.duration_ns GROUP BY name\"
  tracebraid executions sql --trace TRACE \"SELECT thread, sum(duration_ns) / 1e6 AS ms FROM intervals
      WHERE state = 'block-device' GROUP BY tid ORDER BY ms DESC LIMIT 5\"
  tracebraid executions sql --trace TRACE --format csv - < question.sql > answer.csv")]
pub(super) struct SqlArgs {
    /// The database; with --trace it may be left out
    #[arg(value_name = "DB", required_unless_present = "trace")]
    file: Option<PathBuf>,
    /// The question; - for standard input; without one, the tables are shown
    #[arg(value_name = "SQL")]
    question: Option<String>,
    /// A trace that is asked about, in place of those that the executions come from; may be given several times
    #[arg(long, value_name = "PATH")]
    trace: Vec<PathBuf>,
    /// Let the traces of several hosts have one time, as `tracebraid executions build` does
    #[arg(long, value_name = "FILE|auto")]
    sync: Option<PathBuf>,
    /// How to show the answer
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Rows of a table for people at most; 0 for all, which are then kept in memory
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    fold: FoldArgs,
}

/// Runs it.
pub(super) fn run(args: &SqlArgs) -> Result<ExitCode, Failure> {
    let (file, question) = positions(args);
    let traces = traces(args, file.as_ref())?;
    let questions = Questions::new(file.as_deref(), Some(traces)).map_err(|error| failure(error, None))?;
    let question = question.map(text).transpose()?;
    let mut sink = rows::Sink::new(args.format, args.limit, Output::open(None)?);
    let stopper = questions.stopper();
    let stop = || stopper.stop();
    let answered = fold::watched_by(stopper.control(), &stop, || match &question {
        Some(question) => questions.answer(question, &mut sink),
        None => tables::show(&questions, &mut sink),
    });
    match answered {
        Ok(()) => Ok(Warnings::default().finish(false)),
        Err(error) => Err(failure(error, sink.failure())),
    }
    .or_else(|failed| match failed {
        // Nobody reads any more: that is no failure.
        None => Ok(ExitCode::SUCCESS),
        Some(failed) => Err(failed),
    })
}
