//! `tracebraid executions sql`: questions in SQL.

mod answer;
mod tables;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tracebraid_ctf::index::IndexCheck;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_executions::database::Database;
use tracebraid_sql::{Questions, SqlError, TextPosition, Traces};

use self::answer::Answer;
use super::Format;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::indexes;
use crate::options;
use crate::output::{Output, say};
use crate::warnings::Warnings;

/// Answers questions in SQL about a database of executions, and about traces.
///
/// Without a question, it shows the tables: executions with their figures, the steps of their
/// critical paths (segments), their times by calling context (times, contexts), their threads; and
/// of the traces that they come from, where those are still there, or of those that --trace names,
/// the event records (events), what threads did when (intervals), and the threads (trace_threads).
/// Nothing is ever written. See docs/reference/sql.md.
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
    /// A trace that is asked about, in place of those that the executions come from; may be given
    /// several times
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
    let question = question.map(text).transpose()?;
    let traces = traces(args, file);
    let questions = Questions::new(file, Some(traces)).map_err(failure)?;
    let mut sink = Answer::new(args.format, args.limit, Output::open(None)?);
    let stopper = questions.stopper();
    args.fold.time(stopper.control());
    let answered = fold::watched_by(stopper.control(), &|| stopper.stop(), || match &question {
        Some(question) => questions.answer(question, &mut sink),
        None => tables::show(&questions, args.format, &mut sink),
    });
    match answered {
        Ok(()) => Ok(Warnings::default().finish(false)),
        // Nobody reads any more, or it cannot be written.
        Err(SqlError::Refused) => sink.refusal().map_or(Ok(ExitCode::SUCCESS), Err),
        Err(error) => {
            sink.give_up();
            Err(failure(error))
        }
    }
}

/// The database and the question: with `--trace`, what is no file is a question.
fn positions(args: &SqlArgs) -> (Option<&Path>, Option<&str>) {
    let file = args.file.as_deref();
    match (file, &args.question) {
        (file, Some(question)) => (file, Some(question)),
        (Some(file), None) if !args.trace.is_empty() && !file.is_file() => (None, file.to_str()),
        (file, None) => (file, None),
    }
}

/// The text of the question.
fn text(question: &str) -> Result<String, Failure> {
    if question != "-" {
        return Ok(question.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("standard input: {error}")))?;
    Ok(text)
}

/// The traces that are asked about, which are opened when a question needs them.
fn traces(args: &SqlArgs, file: Option<&Path>) -> Traces {
    let (given, sync) = (args.trace.clone(), args.sync.clone());
    let file = file.map(Path::to_owned);
    let open = move |check| -> Result<&'static TraceSet, String> {
        if check == IndexCheck::Every {
            indexes::restart();
        }
        let (paths, known) = match &file {
            Some(file) if given.is_empty() => sources(file)?,
            _ => (given.clone(), None),
        };
        let sync = sync.as_ref().or(known.as_ref());
        let opened = indexes::with_restart(|| {
            let mut set = options::open_paths(&paths)?;
            if let Some(from) = sync {
                crate::sync::apply(from, &mut set)?;
            }
            Ok(set)
        });
        let set = opened.map_err(|failure| failure.message().to_owned())?;
        Warnings::default().opening(&set);
        Ok(Box::leak(Box::new(set)))
    };
    let heard = |what: &str| say!("warning: {what}");
    Traces::new(Box::new(open), Box::new(heard), args.fold.options(None))
}

/// The traces that executions come from, as far as they are still there, and what related their
/// clocks, if that was the same.
fn sources(file: &Path) -> Result<(Vec<PathBuf>, Option<PathBuf>), String> {
    let database = Database::open(file).map_err(|error| error.to_string())?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for source in &database.sources {
        let path = PathBuf::from(&source.path);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let (there, gone): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| path.exists());
    let gone: Vec<String> = gone.iter().map(|path| path.display().to_string()).collect();
    let gone = gone.join(", ");
    let mut syncs = database.sources.iter().map(|source| source.sync.as_deref());
    let first = syncs.next().flatten();
    let sync = first.filter(|first| syncs.all(|sync| sync == Some(*first)));
    let sync = sync.map(PathBuf::from);
    match (there.is_empty(), gone.is_empty()) {
        (true, true) => {
            Err("the database names no traces: --trace says which to ask about".to_owned())
        }
        (true, false) => Err(format!(
            "{gone}: not there any more; --trace says where the traces are now"
        )),
        (false, false) => {
            say!("warning: not asked about, since it is not there any more: {gone}");
            Ok((there, sync))
        }
        (false, true) => Ok((there, sync)),
    }
}

/// What is wrong with a question, for people.
fn failure(error: SqlError) -> Failure {
    match error {
        SqlError::Database(error) => super::unreadable(&error),
        SqlError::Question { what, place } => {
            let place = place.as_ref().map(shown).unwrap_or_default();
            Failure::usage(format!("{what}{place}"))
        }
        SqlError::Writes { ref place, .. } => Failure::usage(format!("{error}{}", shown(place))),
        SqlError::Interrupted => Failure::interrupted(),
        SqlError::Answer(what) => Failure::output(what),
        SqlError::Refused => Failure::output(error.to_string()),
    }
}

/// The line of a place, and a mark below it; of a long line what is around the place.
fn shown(place: &TextPosition) -> String {
    const AROUND: usize = 60;
    let from = place.column.saturating_sub(AROUND + 1);
    let line: String = place.text.chars().skip(from).take(2 * AROUND).collect();
    let line: String = line
        .chars()
        .map(|one| if one.is_control() { ' ' } else { one })
        .collect();
    let before = " ".repeat(place.column.saturating_sub(from + 1));
    format!(
        "\n  {line}\n  {before}^ line {}, column {}",
        place.line, place.column
    )
}
