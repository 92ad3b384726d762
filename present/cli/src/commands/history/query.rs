//! `tracebraid history query`: values of attributes at a time or over a time range.

#[cfg(feature = "arrow")]
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use tracebraid_history::{Attribute, History, Since, Value};

use super::range::RangeArgs;
use super::select::{Patterns, attributes, warn_of_unknown};
use super::show::{Answer, Format, Row, show};
use super::unreadable;
use super::{first, rebuild};
use crate::failure::Failure;
use crate::options;
use crate::output::{self, Output};
use crate::spare;
use crate::time::TimeSpec;
use crate::units::{grouped, number_of};

/// Show the values of attributes at a time or over a time range
///
/// Attributes are paths, such as cpu/0/state, thread/1234/syscall, disk/8,0/depth; patterns with *
/// and ? select many. With several hosts, paths begin with the host's name: srv/cpu/0/state. By
/// default, the changes in the range are shown.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what"), after_help = "Examples:
  # all values at a time
  tracebraid history query TRACE.history --at +1.5s
  # what a thread did, change by change
  tracebraid history query TRACE.history 'thread/1234/*' --from +1s --to +10ms
  # when the disk first had more than 16 requests
  tracebraid history query TRACE.history disk/8,0/depth --first '> 16'
  # 200 equal steps of all CPUs, for drawing
  tracebraid history query TRACE.history 'cpu/*/state' \\
      --samples 200 --format json
  # all changes of all threads' states, for pandas, Polars or DuckDB
  tracebraid history query TRACE.history 'thread/*/state' \\
      --format arrow -o states.arrow")]
pub(crate) struct QueryArgs {
    /// The history
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Paths of attributes, or patterns of paths
    #[arg(value_name = "ATTRIBUTE")]
    attributes: Vec<String>,
    /// Show the values at this time
    #[arg(long, value_name = "TIME", group = "what", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    at: Option<TimeSpec>,
    /// Show the first change after this time
    #[arg(long, value_name = "TIME", group = "what", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    next: Option<TimeSpec>,
    /// Show the last change before this time
    #[arg(long, value_name = "TIME", group = "what", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    previous: Option<TimeSpec>,
    /// Show the first time in the range at which a condition holds: ==, !=, <, <=, >, >= and a
    /// value (- means no value), such as '> 4'
    #[arg(
        long,
        value_name = "CONDITION",
        group = "what",
        allow_hyphen_values = true
    )]
    first: Option<String>,
    /// Show the values at N equally spaced times in the range
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: Option<u32>,
    #[command(flatten)]
    range: RangeArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write to FILE instead of standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Fail if the history is damaged or of another version, instead of rebuilding it from its trace
    #[arg(long)]
    no_rebuild: bool,
}

pub(super) fn run(args: &QueryArgs) -> Result<ExitCode, Failure> {
    match args.no_rebuild {
        true => args.run(),
        false => rebuild::mending(&args.file, || args.run()),
    }
}

impl QueryArgs {
    fn run(&self) -> Result<ExitCode, Failure> {
        let history = History::open(&self.file).map_err(|error| unreadable(&error))?;
        self.spare(&history)?;
        let answer = self.answer(&history)?;
        let is_empty = match &answer {
            Answer::Rows(rows) => rows.iter().all(|row| row.value == Value::Null),
            Answer::Samples { attributes, .. } => attributes.is_empty(),
        };
        if is_empty {
            warn_of_unknown(&history, &self.attributes)?;
            if let Some(first) = &self.first {
                first::explain(&history, &self.attributes, self.range.of(&history)?, first)?;
            }
        }
        let nothing = self.nothing();
        let answer = show(
            &history,
            self.format,
            (&self.range.zone.zone(), nothing),
            answer,
        )?;
        self.write(&answer)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The text of an empty table.
    fn nothing(&self) -> &'static str {
        match self {
            QueryArgs { at: Some(_), .. } => "No values at this time.",
            QueryArgs { next: Some(_), .. } => "No change after this time.",
            QueryArgs {
                previous: Some(_), ..
            } => "No change before this time.",
            QueryArgs { first: Some(_), .. } => "The condition never holds in this time range.",
            _ => "No values in this time range.",
        }
    }

    /// Refuses to overwrite the history and the files of its trace.
    fn spare(&self, history: &History) -> Result<(), Failure> {
        let Some(target) = &self.output else {
            return Ok(());
        };
        spare::check_read(target, &[&self.file])?;
        let Ok(there) = target.canonicalize() else {
            return Ok(());
        };
        let paths = &history.meta().paths;
        let holds = |path: &PathBuf| {
            path.canonicalize()
                .is_ok_and(|path| there.starts_with(path))
        };
        // The trace is opened only if it contains the output file: it need not exist any more.
        match paths.iter().any(holds) {
            true => spare::check(target, &options::open_paths(paths)?, paths),
            false => Ok(()),
        }
    }

    fn write(&self, answer: &[u8]) -> Result<(), Failure> {
        let Some(file) = &self.output else {
            #[cfg(feature = "arrow")]
            if self.format == Format::Arrow && std::io::stdout().is_terminal() {
                let message = "Arrow output is binary: write it to a file with -o FILE";
                return Err(Failure::usage(message));
            }
            return Output::open(None)?.write(answer).map(drop);
        };
        output::replace(file, answer)
    }

    fn answer(&self, history: &History) -> Result<Answer, Failure> {
        let time = |spec: TimeSpec| self.range.time(history, spec);
        if let Some(at) = self.at {
            return self.values(history, time(at)?);
        }
        if self.attributes.is_empty() {
            return Err(Failure::usage(
                "no attributes given: add paths or patterns after the file (--at shows all attributes)",
            ));
        }
        let (from, to) = self.range.of(history)?;
        let attributes = attributes(history, &self.attributes, (from, to))?;
        if let Some(samples) = self.samples {
            few_enough(attributes.len(), samples)?;
            let rows = history.sampled(&attributes, (from, to), samples as usize);
            let rows = rows.map_err(|error| unreadable(&error))?;
            return Ok(Answer::Samples {
                from,
                to,
                attributes,
                rows,
            });
        }
        if let Some(first) = &self.first {
            return first::times(history, &attributes, (from, to), first);
        }
        if let Some(next) = self.next {
            let next = time(next)?;
            return each(&attributes, |attribute| {
                history.next_change(attribute, next)
            });
        }
        if let Some(previous) = self.previous {
            let previous = time(previous)?;
            return each(&attributes, |attribute| {
                history.previous_change(attribute, previous)
            });
        }
        changes(history, &attributes, (from, to))
    }

    fn values(&self, history: &History, time: i64) -> Result<Answer, Failure> {
        let patterns = Patterns::new(&self.attributes);
        let found = history.at(time, |attribute| patterns.choose(history, attribute));
        let found = found.map_err(|error| unreadable(&error))?;
        let row = |(attribute, value)| Row {
            attribute,
            time: None,
            moment: Some(time),
            value,
        };
        Ok(Answer::Rows(found.into_iter().map(row).collect()))
    }
}

/// Maximum number of sampled values; all are held in memory.
const MOST_VALUES: u64 = 10_000_000;

fn few_enough(attributes: usize, samples: u32) -> Result<(), Failure> {
    let values = (attributes as u64).saturating_mul(samples.into());
    match values > MOST_VALUES {
        true => Err(Failure::usage(format!(
            "{} samples of {} are {} values: request at most {} values",
            grouped(samples.into()),
            number_of(attributes as u64, "attribute", "attributes"),
            grouped(values),
            grouped(MOST_VALUES)
        ))),
        false => Ok(()),
    }
}

/// At most one change for each attribute.
pub(super) fn each(
    attributes: &[Attribute],
    find: impl Fn(Attribute) -> Result<Option<Since>, tracebraid_history::HistoryError>,
) -> Result<Answer, Failure> {
    let mut rows = Vec::new();
    for &attribute in attributes {
        if let Some(since) = find(attribute).map_err(|error| unreadable(&error))? {
            rows.push(Row::new(attribute, since));
        }
    }
    Ok(Answer::Rows(rows))
}

fn changes(
    history: &History,
    attributes: &[Attribute],
    (from, to): (i64, i64),
) -> Result<Answer, Failure> {
    let mut rows = Vec::new();
    for &attribute in attributes {
        let changes = history
            .changes(attribute, from, to)
            .map_err(|error| unreadable(&error))?;
        rows.extend(changes.into_iter().map(|since| Row::new(attribute, since)));
    }
    // Changes are in order for each attribute, but not over several attributes.
    rows.sort_by_key(|row| row.time);
    Ok(Answer::Rows(rows))
}
