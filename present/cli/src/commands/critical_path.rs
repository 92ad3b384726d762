//! `tracebraid critical-path`: critical paths of threads, processes and system calls.

mod data;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{ArgGroup, Args, ValueEnum};
use tracebraid_export::critical_path::perfetto;
use tracebraid_follow::{CallNames, KernelAnalysis, Selection};
use tracebraid_graph::{
    ActorId, Asked, Graph, GraphAnalysis, GraphOptions, NO_SWITCHES, PathReport,
};
use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;

use crate::commands::data_tables::TablesArgs;
use crate::commands::devices;
use crate::commands::report::{self, Subject, window};
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::hints;
use crate::options::{self, InputArgs, TimeArgs, ZoneArgs};
use crate::output::{self, say};
use crate::spare;
use crate::terminal_text;
use crate::units::number_of;

/// Show what a thread waited for, across threads and devices
///
/// Each wait that another thread ended is replaced by the activity of that thread during the wait,
/// recursively. The path crosses threads, kernel threads, disks, the network and, in traces of
/// several hosts, hosts. Its segments follow one another without gaps.
///
/// Needs sched_switch and sched_waking. irq_handler_*, irq_softirq_* and timer_hrtimer_expire_*
/// separate wake-ups by interrupts from those by threads; disks need block_rq_issue and
/// block_rq_complete; packets need net_dev_queue and net_if_receive_skb; work of kernel threads
/// needs workqueue_queue_work and workqueue_execute_start; system calls show in which
/// call a thread waited. Reasons that were not recorded are shown as unknown.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("whose").required(true).multiple(true).args(["tid", "process", "longest"]))]
#[command(after_help = "Examples:
  tracebraid critical-path --longest 'f*sync' --top 3 TRACE
  tracebraid critical-path --longest read --tid 314 --top 1 TRACE
  tracebraid critical-path --tid 314 --from +1.2s --to +300ms TRACE
  tracebraid critical-path --process make --perfetto make.perfetto-trace TRACE
  tracebraid critical-path --tid 314 --format folded TRACE \\
      | flamegraph.pl --countname ns > path.svg")]
pub(crate) struct CriticalPathArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    fold: FoldArgs,
    /// Path of this thread, over its lifetime or the given time range; with --longest, paths of its
    /// longest calls
    #[arg(long, value_name = "TID")]
    tid: Option<i32>,
    /// Paths of the main threads of processes with this name (a pattern with * and ?); without such
    /// processes, of the threads with this name
    #[arg(long, value_name = "GLOB", conflicts_with_all = ["tid", "longest"])]
    process: Option<String>,
    /// Paths of the longest of these system calls (a pattern with * and ?) that begin in the time
    /// range
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    longest: Vec<String>,
    /// Maximum number of paths; 0 for all
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    tables: TablesArgs,
    /// Write the paths to FILE as a Perfetto trace (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    #[command(flatten)]
    zone: ZoneArgs,
}

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A tree and tables
    #[default]
    Table,
    /// JSON
    Json,
    /// Comma-separated values: a row for each segment, or the tables of --table
    Csv,
    /// Folded stacks of threads that wait for each other, with nanoseconds
    Folded,
}

impl From<Format> for report::Format {
    fn from(format: Format) -> report::Format {
        match format {
            Format::Table | Format::Folded => report::Format::Table,
            Format::Json => report::Format::Json,
            Format::Csv => report::Format::Csv,
        }
    }
}

/// Maximum number of paths with `--top 0`; all paths are in memory at once.
const MOST: usize = 100_000;

impl CriticalPathArgs {
    /// Maximum number of paths.
    fn rows(&self) -> usize {
        match self.top {
            0 => MOST,
            top => top,
        }
    }
}

pub(super) fn run(args: &CriticalPathArgs) -> Result<ExitCode, Failure> {
    let mut subject = Subject::open(&args.input, &args.fold, &args.time, args.zone)?;
    if let Some(file) = &args.perfetto {
        spare::check(file, &subject.set, &args.input.read())?;
    }
    let report = path_report(args, &mut subject)?;
    if let Some(file) = &args.perfetto {
        output::replace(file, &perfetto(&report))?;
        say!("wrote {}: open it in ui.perfetto.dev", file.display());
    }
    let missing = report.head.note();
    if let Some(missing) = missing.as_ref().filter(|_| args.format != Format::Table) {
        subject.warnings.note(missing);
    }
    if args.tables.are_wanted(args.format) {
        args.tables
            .print(args.format, &report.head, data::tables(&report))?;
        return Ok(subject.lost(args.input.strict));
    }
    let text = match args.format {
        Format::Json => return subject.finish_json(&report, args.input.strict),
        Format::Table | Format::Csv => {
            missing.map_or_else(String::new, |missing| {
                terminal_text::paragraph(&missing) + "\n"
            }) + &show::text(&report, &subject.zone)
        }
        Format::Folded => show::folded(&report),
    };
    subject.finish(&text, args.input.strict)
}

/// Builds the report on the requested paths.
fn path_report(args: &CriticalPathArgs, subject: &mut Subject) -> Result<PathReport, Failure> {
    let selection = Selection {
        window: window(subject.range),
        behind: Selection::BEHIND_NS,
        ..Selection::default()
    };
    let options = GraphOptions {
        longest: CallNames(options::globs(&args.longest)),
        rows: args.rows(),
        tid: args.tid,
    };
    let analysis = GraphAnalysis::with(&subject.set, selection, options);
    let lack = analysis.lacks();
    if let Some(lack) = lack {
        subject.warnings.note(lack);
    }
    let until = analysis.input().until();
    let mut graph = fold::run(
        &subject.set,
        &analysis,
        &args.fold,
        until,
        &mut subject.warnings,
    )?;
    let within = (&subject.set, devices::window(subject.range));
    if let Some((devices, found)) = devices::waits(within, &mut subject.warnings, &args.fold)? {
        graph.devices = Arc::new(devices.device_times(&found));
    }
    let mut asked = asked(args, &graph, (subject.range.from, subject.range.to));
    let around = (subject.range, &subject.zone);
    let unknown = unknown_calls(args);
    unknown.iter().for_each(|call| subject.warnings.note(call));
    // Without scheduling events, suggesting other threads and calls would not help.
    let is_blind = lack == Some(NO_SWITCHES);
    if asked.is_empty()
        && !is_blind
        && (unknown.is_empty() || unknown.len() < args.longest.len())
        && !hints::told_outside(&subject.set, around, &mut subject.warnings)
    {
        subject.warnings.note(&nothing(args, &graph));
    }
    if asked.len() > args.rows() {
        let more = (asked.len() - args.rows()) as u64;
        let more = number_of(more, "more path is", "more paths are");
        let note = format!("{more} not shown; --top N shows more");
        subject.warnings.note(&note);
        asked.truncate(args.rows());
    }
    Ok(graph.report(&asked))
}

/// A message for each name of `--longest` that is not a system call. Numbers get another hint.
fn unknown_calls(args: &CriticalPathArgs) -> Vec<String> {
    let is_name = |name: &&String| name.parse::<u64>().is_err();
    let names: Vec<String> = args.longest.iter().filter(is_name).cloned().collect();
    let unknown = CallNames(options::globs(&names)).unknown().into_iter();
    let with_remedy = |sentence: String| match sentence.ends_with('?') {
        true => sentence,
        false => format!("{sentence}: `tracebraid syscalls` lists the calls"),
    };
    unknown.map(with_remedy).collect()
}

/// Message for an empty result, with the command or name that helps.
fn nothing(args: &CriticalPathArgs, graph: &Graph) -> String {
    if let [number] = args.longest.as_slice()
        && number.parse::<u64>().is_ok()
    {
        return format!(
            "no system call has the name {number}: --longest takes names, as in --longest 'f*sync'; \
             --top {number} sets how many"
        );
    }
    match (args.tid, &args.process) {
        _ if !args.longest.is_empty() => {
            let of_thread = args
                .tid
                .map_or_else(String::new, |tid| format!(" of thread {tid}"));
            format!(
                "no system call {}{of_thread} begins and ends in the time range: `tracebraid \
                 syscalls` lists the calls",
                args.longest.join(", ")
            )
        }
        (Some(tid), _) => format!(
            "thread {tid} does not exist in the time range: `tracebraid cpu` lists the threads"
        ),
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            let known = graph.ids().filter_map(|(_, actor)| actor.name.as_deref());
            format!(
                "no process and no thread in the time range has the name {name}{}: `tracebraid \
                 processes` and `tracebraid cpu` list them",
                did_you_mean(&Glob::new(name), known)
            )
        }
    }
}

/// The requested threads and calls; threads that existed longest come first.
fn asked(args: &CriticalPathArgs, graph: &Graph, window: (i64, i64)) -> Vec<Asked> {
    let threads: Vec<ActorId> = match (args.tid, &args.process) {
        _ if !args.longest.is_empty() => return graph.longest(),
        (Some(tid), _) => graph.with_tid(tid).map(|(id, _)| id).collect(),
        (None, Some(name)) => named(graph, &Glob::new(name)),
        (None, None) => Vec::new(),
    };
    let within = threads
        .into_iter()
        .filter_map(|id| graph.within(id, window));
    let mut asked: Vec<Asked> = within.collect();
    asked.sort_by_key(|asked| std::cmp::Reverse(asked.begin.abs_diff(asked.end)));
    asked
}

/// Main threads of processes with a matching name; without any, other threads with a matching name.
fn named(graph: &Graph, name: &Glob) -> Vec<ActorId> {
    let of_name = graph.ids().filter(|(_, actor)| {
        let own = actor.name.as_deref();
        own.is_some_and(|own| name.matches(own.as_bytes()))
    });
    let (first, other): (Vec<_>, Vec<_>) =
        of_name.partition(|(_, actor)| actor.pid == Some(actor.key.tid));
    let chosen = if first.is_empty() { other } else { first };
    chosen.into_iter().map(|(id, _)| id).collect()
}
