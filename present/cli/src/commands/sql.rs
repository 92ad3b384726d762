//! `tracebraid sql`: SQL queries over executions and traces.

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
use super::executions::unreadable;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::imported;
use crate::indexes;
use crate::options::{self, ReportFormat};
use crate::output::{Output, say};
use crate::warnings::Warnings;

/// Query executions and traces in SQL (read-only)
///
/// A database has the tables executions (with their metrics), segments (of their critical paths),
/// times and contexts (time by calling context), and threads. Its traces, if they still exist, or
/// those of --trace have the tables events, intervals (states of threads over time) and
/// trace_threads. Without a query, all tables and their columns are listed. See
/// docs/reference/sql.md.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid sql requests.db
  tracebraid sql requests.db 'SELECT avg(duration_ns) / 1e6 FROM executions'
  tracebraid sql requests.db 'SELECT state, sum(duration_ns) / 1e6 AS ms
      FROM segments WHERE execution IN
      (SELECT id FROM executions ORDER BY duration_ns DESC LIMIT 10)
      GROUP BY state ORDER BY ms DESC'
  tracebraid sql requests.db \"SELECT name, count(*) AS times
      FROM events, executions AS one WHERE one.id = 17
      AND time_ns BETWEEN one.begin_ns AND one.begin_ns + one.duration_ns
      GROUP BY name\"
  tracebraid sql TRACE \"SELECT thread, sum(duration_ns) / 1e6 AS ms
      FROM intervals WHERE state = 'block-device'
      GROUP BY tid ORDER BY ms DESC LIMIT 5\"
  tracebraid sql --levels TRACE \\
      'SELECT thread, sum(duration_ns) FROM intervals GROUP BY tid'
  tracebraid sql TRACE --format csv - < question.sql > answer.csv")]
pub(crate) struct SqlArgs {
    /// A database of executions, or a trace; may be omitted with --trace
    #[arg(value_name = "DB|TRACE", required_unless_present = "trace")]
    file: Option<PathBuf>,
    /// The query; `-` reads it from standard input; without one, the tables are shown
    #[arg(value_name = "SQL")]
    question: Option<String>,
    /// Trace to query, in place of the traces that the executions come from; may be repeated
    #[arg(long, value_name = "PATH")]
    trace: Vec<PathBuf>,
    /// Align the clocks of several hosts: a file written by `tracebraid sync -o`, or `auto`
    #[arg(long, value_name = "FILE|auto")]
    sync: Option<PathBuf>,
    /// Show user-level threads (goroutines, fibres, tasks) as threads: merge the kernel's and the
    /// runtimes' scheduling into a temporary trace first
    #[arg(long)]
    levels: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    /// Limit text tables to N rows; 0 for all, which are then kept in memory
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    fold: FoldArgs,
}

pub(super) fn run(args: &SqlArgs) -> Result<ExitCode, Failure> {
    let Subject {
        database,
        traces,
        question,
    } = Subject::of(args);
    let question = question.map(text).transpose()?;
    let traces = self::traces(args, traces, database);
    let questions = Questions::new(database, Some(traces)).map_err(failure)?;
    let mut sink = Answer::new(args.format, args.limit, Output::open(None)?);
    let stopper = questions.stopper();
    args.fold.time(stopper.control());
    let answered = fold::watched_by(stopper.control(), &|| stopper.stop(), || match &question {
        Some(question) => questions.answer(question, &mut sink),
        None => tables::show(&questions, args.format, &mut sink),
    });
    match answered {
        Ok(()) => Ok(Warnings::default().finish(false)),
        // The reader has closed the pipe, or the output cannot be written.
        Err(SqlError::Refused) => sink.refusal().map_or(Ok(ExitCode::SUCCESS), Err),
        Err(error) => {
            sink.give_up();
            Err(failure(error))
        }
    }
}

/// The database, the traces and the text of a query.
struct Subject<'a> {
    database: Option<&'a Path>,
    /// Traces that replace those from which the executions come.
    traces: Vec<PathBuf>,
    question: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// With `--trace`, an argument that is not a file is the query.
    fn of(args: &'a SqlArgs) -> Self {
        let mut traces = args.trace.clone();
        let (file, question) = match (args.file.as_deref(), args.question.as_deref()) {
            (Some(file), None) if !traces.is_empty() && !file.exists() => (None, file.to_str()),
            given => given,
        };
        let database = file.filter(|file| !is_trace(file));
        if database.is_none() {
            traces.extend(file.map(Path::to_owned));
        }
        Subject {
            database,
            traces,
            question,
        }
    }
}

/// Whether a path can only be a trace: a directory, an archive, a path into an archive, or a perf
/// or trace-cmd recording.
fn is_trace(path: &Path) -> bool {
    path.is_dir() || imported::is_input_file(path) || imported::is_in_archive(path)
}

/// The text of the query; `-` reads standard input.
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

/// The traces to query, which are opened when a query needs them.
fn traces(args: &SqlArgs, given: Vec<PathBuf>, file: Option<&Path>) -> Traces {
    let sync = args.sync.clone();
    let levels = args.levels;
    let fold = args.fold.without_timings();
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
            match levels {
                true => crate::merged::in_place_of(set, &paths, &fold),
                false => Ok(set),
            }
        });
        let set = opened.map_err(|failure| failure.message().to_owned())?;
        Warnings::default().opening(&set);
        Ok(Box::leak(Box::new(set)))
    };
    let heard = |what: &str| say!("warning: {what}");
    Traces::new(Box::new(open), Box::new(heard), args.fold.options(None))
}

/// The existing traces from which the executions come, and the argument of `--sync` with which the
/// database was built, if all traces had the same.
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
        paths.into_iter().partition(|path| imported::exists(path));
    let gone: Vec<String> = gone.iter().map(|path| path.display().to_string()).collect();
    let gone = gone.join(", ");
    let mut syncs = database.sources.iter().map(|source| source.sync.as_deref());
    let first = syncs.next().flatten();
    let sync = first.filter(|first| syncs.all(|sync| sync == Some(*first)));
    let sync = sync.map(PathBuf::from);
    match (there.is_empty(), gone.is_empty()) {
        (true, true) => Err(
            "the database does not contain the paths of its traces: give them with --trace"
                .to_owned(),
        ),
        (true, false) => Err(format!(
            "{gone}: no longer exists; give the current paths of the traces with --trace"
        )),
        (false, false) => {
            say!("warning: not queried because it no longer exists: {gone}");
            Ok((there, sync))
        }
        (false, true) => Ok((there, sync)),
    }
}

/// Failure of a query.
fn failure(error: SqlError) -> Failure {
    match error {
        SqlError::Database(error) => unreadable(&error),
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

/// The line of a position with a mark below it; of a long line, only the text around the position.
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
