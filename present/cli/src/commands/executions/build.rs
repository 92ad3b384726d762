//! `tracebraid executions build`: from traces to a database.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tracebraid_critical_path::GraphAnalysis;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_executions::database::{About, Column, Database, KindAbout, SourceAbout, Writer};
use tracebraid_executions::{Finished, Metric, Sink, Union, build, with_threads};
use tracebraid_filter::periods::{Capture, Periods};
use tracebraid_profile::Samples;
use tracebraid_reports::kernel::{KernelAnalysis, Selection};
use tracebraid_reports::periods::EndedAnalysis;
use tracebraid_symbols::Symbols;

use crate::commands::definitions::DefinitionArgs;
use crate::commands::report::window;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::options::{self, InputArgs, TimeArgs};
use crate::output::Output;
use crate::spare;
use crate::table::{bytes, grouped, number_of};
use crate::warnings::Warnings;

/// Builds a database of executions from traces, or adds those of further traces to one.
///
/// The file is complete when it has its name: an interrupted build leaves what was there before.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions build TRACE -o requests.db --file requests.periods
  tracebraid executions build OTHER -o requests.db --file requests.periods --append --label v1.3
  tracebraid executions build server/kernel client/kernel --sync auto -o both.db --file requests.periods")]
pub(super) struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The database to write
    #[arg(long, short = 'o', value_name = "FILE")]
    output: PathBuf,
    /// Keep what is in the database, and add to it
    #[arg(long)]
    append: bool,
    /// What to call these traces: a version of the program, for instance; their directory's name if not given
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    #[command(flatten)]
    definitions: DefinitionArgs,
    /// Take a function for that of another name, as it was renamed between versions: OLD=NEW
    #[arg(long, value_name = "OLD=NEW", value_parser = rename)]
    rename: Vec<(String, String)>,
    /// A file with such renames, one a line
    #[arg(long, value_name = "FILE")]
    rename_file: Vec<PathBuf>,
    #[command(flatten)]
    time: TimeArgs,
    /// More directories with debug information, which has .build-id below
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// More directories with maps of just-in-time compilers (perf-PID.map), which a recording keeps otherwise
    #[arg(long, value_name = "DIR")]
    perf_map_dir: Vec<PathBuf>,
    /// Read times in UTC, not in the local time zone
    #[arg(long, alias = "gmt")]
    clock_gmt: bool,
    #[command(flatten)]
    fold: FoldArgs,
}

/// So much behind the end of the time that is given is read to tell what ended waits that go on there, in nanoseconds.
const BEHIND: u64 = 1_000_000_000;

/// Runs it.
pub(super) fn run(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let periods = args.definitions.periods()?;
    let renames = renames(args)?;
    let set = options::open(&args.input)?;
    let read: Vec<PathBuf> = args
        .input
        .read()
        .into_iter()
        .chain(args.definitions.file.clone())
        .collect();
    spare::check(&args.output, &set, &read)?;
    if args.append {
        // What cannot be added to is told before anything is read.
        Database::open(&args.output).map_err(|error| super::unreadable(&error))?;
    }
    let mut warnings = Warnings::default();
    warnings.opening(&set);
    let about = About {
        sources: set.traces.iter().map(|trace| source(args, trace)).collect(),
        kinds: kinds(&args.definitions, &periods),
        figures: Metric::all().map(Column::from).collect(),
        renames,
    };
    let (mut counting, union) = open(args, &about)?;
    let union = make(args, &set, periods, union, &mut counting, &mut warnings)?;
    let Counting { writer, executions } = counting;
    let contexts = union.contexts.count() as u64 - 1;
    let size = writer
        .finish(&union)
        .map_err(|error| Failure::output(error.to_string()))?;
    let share = size as f64 * 100.0 / options::total_bytes(&set).max(1) as f64;
    let text = format!(
        "{}: {}, {}; {} ({} bytes), {share:.1} % of {} of packets\n",
        args.output.display(),
        number_of(executions, "execution", "executions"),
        number_of(contexts, "calling context", "calling contexts"),
        bytes(size),
        grouped(size),
        bytes(options::total_bytes(&set)),
    );
    Output::open(None)?.write(text.as_bytes())?;
    Ok(warnings.finish(args.input.strict))
}

fn open(args: &BuildArgs, about: &About) -> Result<(Counting, Union), Failure> {
    let opened = match args.append {
        true => Writer::append(&args.output, about),
        false => Writer::create(&args.output, about).map(|writer| (writer, Union::default())),
    };
    let (writer, union) = opened.map_err(|error| Failure::output(error.to_string()))?;
    Ok((
        Counting {
            writer,
            executions: 0,
        },
        union,
    ))
}

/// Makes the executions.
fn make(
    args: &BuildArgs,
    set: &TraceSet,
    periods: Periods,
    union: Union,
    sink: &mut Counting,
    warnings: &mut Warnings,
) -> Result<Union, Failure> {
    let range = args.time.range(set, &options::zone(args.clock_gmt), 0)?;
    let names: Vec<String> = periods.list.iter().map(|period| period.name.clone()).collect();
    let ended = EndedAnalysis::new(set, with_threads(periods), window(range)).map_err(Failure::usage)?;
    ended.doubts().iter().for_each(|doubt| warnings.note(doubt));
    let ended = fold::run(set, &ended, &args.fold, None, warnings)?;
    for (name, &unfinished) in names.iter().zip(&ended.unfinished) {
        if unfinished > 0 {
            warnings.note(&format!(
                "{name}: {} not end in the traces, and left out",
                match unfinished {
                    1 => "1 execution does".to_owned(),
                    more => format!("{} executions do", grouped(more)),
                }
            ));
        }
    }
    if ended.refused > 0 {
        let refused = number_of(ended.refused, "execution was", "executions were");
        warnings.note(&format!("{refused} not begun, since too many were going on"));
    }
    let selection = Selection {
        window: window(range),
        behind: BEHIND,
        ..Selection::default()
    };
    let graph = GraphAnalysis::new(set, selection);
    if let Some(lack) = graph.lacks() {
        warnings.note(lack);
    }
    let until = graph.input().until();
    let graph = fold::run(set, &graph, &args.fold, until, &mut Warnings::quiet())?;
    let samples = Samples::new(set, &mut Symbols::new(args.debug_dir.clone()), &args.perf_map_dir);
    build(set, &graph, &samples, ended, union, sink).map_err(|error| Failure::output(error.to_string()))
}

/// Counts what is written.
struct Counting {
    writer: Writer,
    executions: u64,
}

impl Sink for Counting {
    type Error = <Writer as Sink>::Error;

    fn take(
        &mut self,
        graph: &tracebraid_critical_path::Graph,
        finished: Finished,
    ) -> Result<(), Self::Error> {
        self.executions += 1;
        self.writer.take(graph, finished)
    }
}

fn source(args: &BuildArgs, trace: &Trace) -> SourceAbout {
    let class = &trace.layout.class;
    let host = class.env_str("hostname").or_else(|| class.env_str("host"));
    let path = trace
        .paths
        .first()
        .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let name = args.input.paths.first().and_then(|path| name_of(path));
    SourceAbout {
        label: args.label.clone().or(name).unwrap_or_default(),
        path: path.map(|path| path.display().to_string()).unwrap_or_default(),
        host: host.map(str::to_owned),
    }
}

/// The name of a recording's directory.
fn name_of(path: &Path) -> Option<String> {
    let path = std::fs::canonicalize(path).ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// What the database is told of each kind.
fn kinds(definitions: &DefinitionArgs, periods: &Periods) -> Vec<KindAbout> {
    let texts = definitions.texts();
    let kind = |(place, period): (usize, &tracebraid_filter::periods::Period)| {
        let captures = period.begin_captures.iter().chain(&period.end_captures);
        KindAbout {
            name: periods.path(place),
            definition: texts.clone(),
            values: captures.map(|capture: &Capture| capture.name.clone()).collect(),
        }
    };
    periods.list.iter().enumerate().map(kind).collect()
}

/// All renames.
fn renames(args: &BuildArgs) -> Result<Vec<(String, String)>, Failure> {
    let mut renames = args.rename.clone();
    for path in &args.rename_file {
        let wrong = |error: String| Failure::usage(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            renames.push(rename(line).map_err(wrong)?);
        }
    }
    Ok(renames)
}

/// `OLD=NEW`.
fn rename(text: &str) -> Result<(String, String), String> {
    // Names of C++ have `operator==` and the like: names of both sides are not empty, and spaces around `=` do not matter.
    let split = text.split_once(" = ").or_else(|| text.split_once('='));
    let pair = split.map(|(old, new)| (old.trim().to_owned(), new.trim().to_owned()));
    pair.filter(|(old, new)| !old.is_empty() && !new.is_empty())
        .ok_or_else(|| format!("`{text}`: OLD=NEW is expected"))
}
