//! `tracebraid executions build`: builds a database of executions from traces.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_executions::database::{About, Database, Writer, delimits_alike};
use tracebraid_executions::{
    BuildError, BuildRules, Built, ContextId, ExtraMetric, Finished, FrameKind, FunctionNames,
    Made, Sink, SinkJob, Union, build,
};
use tracebraid_graph::{DeviceTimes, Graph};
use tracebraid_language::executions::{Definitions, Delimiter};
use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;
use tracebraid_profile::Samples;

use super::renames::{self, Renamed};
use crate::commands::definitions::ExecutionArgs;
use crate::commands::devices;
use crate::commands::report::window;
use crate::debug_info;
use crate::failure::Failure;
use crate::file_kind::FileKind;
use crate::fold::{self, FoldArgs};
use crate::hints;
use crate::options::{self, InputArgs, TimeArgs, TimeRange, ZoneArgs};
use crate::output::Output;
use crate::spare;
use crate::stack_quality;
use crate::threads::Known;
use crate::timings;
use crate::units::{bytes, grouped, number_of};
use crate::warnings::Warnings;

/// Build a database of executions from traces, or add to one
///
/// The file gets its name only when it is complete; an interrupted build leaves the previous file
/// unchanged.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions build TRACE -o requests.db --file requests.periods
  tracebraid executions build OTHER -o requests.db --file requests.periods \\
      --append --label v1.3
  tracebraid executions build TRACE -o calls.db --call 'f*sync' --call openat
  tracebraid executions build TRACE -o frames.db --function 'render_*' \\
      --value 'triangles = game:mesh . count'
  tracebraid executions build TRACE -o gpu.db --frame blur --kernel '*'
  tracebraid executions build server client --sync auto -o both.db \\
      --file requests.periods")]
pub(super) struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Database to write
    #[arg(long, short = 'o', value_name = "FILE")]
    output: PathBuf,
    /// Add to the database instead of replacing it; writes a new one where none exists
    #[arg(long)]
    append: bool,
    /// Label of these traces, such as the version of a program; default: the name of their
    /// directory
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    #[command(flatten)]
    definitions: ExecutionArgs,
    /// Treat function OLD as NEW: for functions that were renamed between versions
    #[arg(long, value_name = "OLD=NEW", value_parser = renames::one)]
    rename: Vec<Renamed>,
    /// Read renames from FILE, one on each line
    #[arg(long, value_name = "FILE")]
    rename_file: Vec<PathBuf>,
    #[command(flatten)]
    time: TimeArgs,
    /// Additional directory with debug information (below DIR/.build-id)
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Additional directory with maps of just-in-time compilers (perf-PID.map); a recording
    /// contains those of the programs that it recorded
    #[arg(long, value_name = "DIR")]
    perf_map_dir: Vec<PathBuf>,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    fold: FoldArgs,
}

pub(super) fn run(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let (definitions, text) = args.definitions.definitions()?;
    let renames = renames::all(&args.rename, &args.rename_file)?;
    let set = options::open(&args.input, &args.fold)?;
    let files = args.definitions.files().iter().cloned();
    let read: Vec<PathBuf> = args.input.read().into_iter().chain(files).collect();
    spare::check(&args.output, &set, &read)?;
    let mut warnings = Warnings::default();
    // Fails before the traces are read if the database cannot be appended to.
    let appends = args.appends();
    let before = before(args)?;
    renames::check(&renames, before.as_ref())?;
    let otherwise = before.map_or_else(Vec::new, |before| {
        other_definitions(&before, &definitions, &mut warnings)
    });
    warnings.opening(&set);
    let mut about = About {
        renames: renames.into_iter().map(|of| (of.old, of.new)).collect(),
        sync: args.input.sync.as_deref().map(sync),
        ..About::new(&set, |trace| label(args, trace), &definitions, &text)
    };
    for (place, kind) in about.kinds.iter_mut().enumerate() {
        kind.is_otherwise = otherwise.contains(&place);
    }
    let zone = args.zone.zone();
    let range = args.time.range(&set, &zone, 0)?;
    let devices = device_times(args, (&set, range), &mut warnings)?;
    let (mut counting, union) = open(args, &about, appends)?;
    let built = make(
        args,
        &set,
        (&definitions, Arc::clone(&devices)),
        (range, union),
        &mut counting,
        &mut warnings,
    )?;
    let packets = options::total_bytes(&set);
    if packets == 0 {
        warnings.note(
            "the traces have no packets: nothing was recorded, or nothing has been written yet (a recording of `tracebraid start` \
             is written by `tracebraid stop` or `tracebraid snapshot`)",
        );
    }
    let is_outside =
        counting.executions == 0 && hints::told_outside(&set, (range, &zone), &mut warnings);
    // An empty trace needs no further explanation.
    if !is_outside && packets > 0 {
        let wanted = (&set, &definitions, &*devices);
        tell(&mut warnings, wanted, &built, &counting);
        without_effect(&mut warnings, &about.renames, &built.union);
    }
    let Counting {
        writer, executions, ..
    } = counting;
    let contexts = built.union.contexts.count() as u64 - 1;
    let size = timings::serially("database", || writer.finish_timed(&built))
        .map_err(|error| Failure::output(error.to_string()))?;
    let text = summary(args, appends, executions, contexts, (size, packets));
    Output::open(None)?.write(text.as_bytes())?;
    Ok(warnings.finish(args.input.strict))
}

/// The summary line. `size` is that of the database, `packets` that of all packets of the traces,
/// in bytes.
fn summary(
    args: &BuildArgs,
    appends: bool,
    executions: u64,
    contexts: u64,
    (size, packets): (u64, u64),
) -> String {
    let added = if appends { " added" } else { "" };
    let of_packets = match appends || packets == 0 {
        // The previous contents come from other packets.
        true => String::new(),
        false => {
            let share = size as f64 * 100.0 / packets as f64;
            format!(", {share:.1} % of {} of packets", bytes(packets))
        }
    };
    format!(
        "{}: {}{added}, {}{}; {} ({} bytes){of_packets}\n",
        args.output.display(),
        number_of(executions, "execution", "executions"),
        number_of(contexts, "calling context", "calling contexts"),
        if appends { " in all" } else { "" },
        bytes(size),
        grouped(size),
    )
}

/// Warns of kinds whose definition differs from that of the same kind in the database: comparing
/// them would show the difference of the definitions. Returns the indices of these kinds.
fn other_definitions(
    before: &Database,
    definitions: &Definitions,
    warnings: &mut Warnings,
) -> Vec<usize> {
    let mut otherwise = Vec::new();
    for kind in 0..definitions.list.len() {
        let name = definitions.path(kind);
        let Some(known) = before.kinds.iter().find(|known| known.name == name) else {
            continue;
        };
        let mut other = Definitions::default();
        if other.file(&known.definition).is_ok() && !delimits_alike(definitions, kind, &other) {
            warnings.note(&format!(
                "{name}: executions of this name in {} have a different definition: `executions info` shows both definitions; \
                 choose another name for the new ones",
                before.path().display()
            ));
            otherwise.push(kind);
        }
    }
    otherwise
}

/// The database to append to; `None` to write a new one. `--append` also writes a new one if none
/// exists, so that scripts need no special case for their first run.
fn before(args: &BuildArgs) -> Result<Option<Database>, Failure> {
    if args.appends() {
        let database = Database::open(&args.output).map_err(|error| super::unreadable(&error))?;
        return Ok(Some(database));
    }
    FileKind::Executions.check_target(&args.output)?;
    Ok(None)
}

impl BuildArgs {
    /// Whether the executions are added to an existing database.
    fn appends(&self) -> bool {
        self.append && self.output.exists()
    }
}

fn open(args: &BuildArgs, about: &About, appends: bool) -> Result<(Counting, Union), Failure> {
    let opened = match appends {
        true => Writer::append(&args.output, about),
        false => Writer::create(&args.output, about).map(|writer| (writer, Union::default())),
    };
    let (writer, union) = opened.map_err(|error| Failure::output(error.to_string()))?;
    Ok((
        Counting {
            writer,
            executions: 0,
            of_kinds: vec![0; about.kinds.len()],
            of_nobody: 0,
        },
        union,
    ))
}

/// Commands of devices, and waits of threads for them; none if the traces have no calls of an API
/// for devices.
fn device_times(
    args: &BuildArgs,
    (set, range): (&TraceSet, TimeRange),
    warnings: &mut Warnings,
) -> Result<Arc<DeviceTimes>, Failure> {
    let found = devices::waits((set, window(range)), warnings, &args.fold)?;
    let times = found.map(|(analysis, found)| Arc::new(analysis.device_times(&found)));
    Ok(times.unwrap_or_default())
}

/// Builds the executions.
fn make(
    args: &BuildArgs,
    set: &TraceSet,
    (definitions, devices): (&Definitions, Arc<DeviceTimes>),
    (range, union): (TimeRange, Union),
    sink: &mut Counting,
    warnings: &mut Warnings,
) -> Result<Built, Failure> {
    let mut symbols = debug_info::open(&args.debug_dir);
    let names = fold::watched(&args.fold, |control| {
        let options = args.fold.options(None);
        FunctionNames::new(
            set,
            definitions,
            &mut symbols,
            &args.perf_map_dir,
            (options, control),
        )
    });
    let rules = BuildRules {
        definitions: definitions.clone(),
        names: names.map_err(Failure::from)?,
        devices,
        window: window(range),
        ..BuildRules::default()
    };
    let samples = fold::watched(&args.fold, |control| {
        let options = args.fold.options(None);
        Samples::new(set, &mut symbols, &args.perf_map_dir, (options, control))
    });
    let samples = samples.map_err(Failure::from)?;
    let lines = stack_quality::lines(&samples.quality);
    lines.iter().for_each(|line| warnings.note(line));
    let built = fold::watched(&args.fold, |control| {
        let options = args.fold.options(None);
        build(set, &rules, &samples, union, (options, control), sink)
    });
    let built = built.map_err(|error| match error {
        BuildError::Periods(message) => Failure::usage(message),
        BuildError::Fold(error) => error.into(),
        BuildError::Sink(error) => Failure::output(error.to_string()),
    })?;
    warnings.reading(&built.damage);
    Ok(built)
}

/// Warns of executions that are missing, and of facts that make the result less useful.
fn tell(
    warnings: &mut Warnings,
    (set, definitions, devices): (&TraceSet, &Definitions, &DeviceTimes),
    built: &Built,
    counting: &Counting,
) {
    built.doubts.iter().for_each(|doubt| warnings.note(doubt));
    built.lacks.iter().for_each(|lack| warnings.note(lack));
    for (kind, (definition, &unfinished)) in
        definitions.list.iter().zip(&built.unfinished).enumerate()
    {
        if unfinished == 0 && counting.of_kinds.get(kind).is_none_or(|&count| count == 0) {
            let nothing = nothing(set, devices, &definition.delimiter);
            warnings.note(&format!("{}: {nothing}", definition.name));
        }
        if unfinished > 0 {
            let executions = number_of(unfinished, "execution does", "executions do");
            let are = if unfinished == 1 { "is" } else { "are" };
            let name = &definition.name;
            warnings.note(&format!(
                "{name}: {executions} not end in the traces and {are} left out"
            ));
        }
    }
    let is_of_device =
        |delimiter: &Delimiter| matches!(delimiter, Delimiter::Kernel(_) | Delimiter::Frame(_));
    let mut all = definitions.list.iter();
    if devices.without_clock > 0 && all.any(|definition| is_of_device(&definition.delimiter)) {
        let are = number_of(
            devices.without_clock,
            "device command is",
            "device commands are",
        );
        warnings.note(&format!(
            "{are} left out: the relation of the clock of the device to that of the trace is unknown"
        ));
    }
    if built.refused > 0 {
        let refused = number_of(built.refused, "execution was", "executions were");
        warnings.note(&format!(
            "{refused} not begun because too many were in progress"
        ));
    }
    if built.given_up > 0 {
        let given_up = number_of(built.given_up, "execution", "executions");
        warnings.note(&format!(
            "{given_up} left out because too many switches, wake-ups and interrupts occurred during them"
        ));
    }
    if counting.of_nobody > 0 {
        let of_nobody = number_of(counting.of_nobody, "execution", "executions");
        warnings.note(&format!(
            "the calling contexts of {of_nobody} of {} are unknown: they require a kernel trace of the same host with \
             sched_switch, and event records that contain a thread or a CPU",
            grouped(counting.executions)
        ));
    }
}

/// Warns of renames that have no effect.
fn without_effect(warnings: &mut Warnings, renames: &[(String, String)], union: &Union) {
    let is_called = |name: &str, kind: FrameKind| {
        let ids = 1..union.contexts.count() as u32;
        let mut frames = ids.filter_map(|id| union.contexts.parts(ContextId(id)));
        frames.any(|(_, frame)| frame.kind == kind && union.names.text(frame.name) == name)
    };
    for (old, new) in renames {
        if is_called(old, FrameKind::Function) || is_called(new, FrameKind::Function) {
            continue;
        }
        let why = match is_called(old, FrameKind::Thread) {
            true => format!("{old} is a thread, and only functions can be renamed"),
            false => format!("no function of these executions is named {old}"),
        };
        warnings.note(&format!("--rename {old}={new} has no effect: {why}"));
    }
}

/// Why there are no executions of a kind, with a remedy.
fn nothing(set: &TraceSet, devices: &DeviceTimes, delimiter: &Delimiter) -> String {
    let streams = set.traces.iter().flat_map(|trace| &trace.layout.streams);
    let events = streams.flat_map(|stream| &stream.events);
    let is_function = |name: &str| name.ends_with(":func_entry") || name == "tracebraid:prof_in";
    let has_spans = events
        .clone()
        .any(|event| event.name == "tracebraid:span_begin");
    let has_functions = events.clone().any(|event| is_function(&event.name));
    let why = match delimiter {
        Delimiter::Process(name) => return no_process(set, name),
        Delimiter::Kernel(name) | Delimiter::Frame(name) => return no_kernel(devices, name),
        Delimiter::Period(_) => {
            "the traces contain none: `tracebraid count` lists the events, and `tracebraid print` shows their fields"
        }
        Delimiter::Call(_) => {
            "the traces contain none: `tracebraid syscalls` lists the system calls"
        }
        Delimiter::Function(_) if has_functions => {
            "no function has this name: build with --function '*', then `executions list` shows the names (functions \
             without symbols are named [program+0x...]: see --debug-dir)"
        }
        Delimiter::Function(_) => {
            "the traces contain none: record functions with --probes 'lttng_ust_cyg_profile:*' or tb_prof_in"
        }
        Delimiter::Span(_) if has_spans => {
            "no span has this name: `tracebraid print --filter 'tracebraid:span_begin'` shows the names of spans"
        }
        Delimiter::Span(_) => {
            "the traces contain none: programs record spans with tb_span_begin and tb_span_end (docs/reference/probe.md)"
        }
    };
    why.to_owned()
}

fn no_kernel(devices: &DeviceTimes, name: &Glob) -> String {
    let kernels = devices.commands().iter().filter(|of| of.is_kernel);
    let known: BTreeSet<&str> = kernels.map(|kernel| &*kernel.name).collect();
    if known.is_empty() {
        return "the time range has no complete kernels with times: record with `tracebraid record --gpu`; \
                `tracebraid gpu` lists device commands"
            .to_owned();
    }
    if known.iter().any(|known| name.matches(known.as_bytes())) {
        return "the call that enqueues the kernel, and its completion, are not in the time range"
            .to_owned();
    }
    let instead = did_you_mean(name, known);
    format!("no kernel has this name: `tracebraid gpu --table kernels` lists kernels{instead}")
}

fn no_process(set: &TraceSet, name: &Glob) -> String {
    let known = Known::of(set).names;
    let instead = match known.iter().any(|known| name.matches(known.as_bytes())) {
        true => String::new(),
        false => did_you_mean(name, known.iter().map(String::as_str)),
    };
    format!(
        "no process of this name ends in the traces; the kernel trace must contain sched_process_fork, \
         sched_process_exec and sched_process_exit; `tracebraid processes` lists processes{instead}"
    )
}

/// Counts the executions that are written.
struct Counting {
    writer: Writer,
    executions: u64,
    /// Number of executions by index of the definition.
    of_kinds: Vec<u64>,
    /// Number of executions whose threads are unknown.
    of_nobody: u64,
}

impl Sink for Counting {
    type Error = <Writer as Sink>::Error;

    fn figures(&mut self, extra: &[ExtraMetric]) -> Result<(), Self::Error> {
        self.writer.figures(extra)
    }

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Self::Error> {
        self.executions += 1;
        if let Some(count) = self.of_kinds.get_mut(finished.execution.kind) {
            *count += 1;
        }
        self.of_nobody += u64::from(finished.steps.is_empty());
        self.writer.take(graph, finished)
    }

    fn take_all(&mut self, graph: &Graph, made: Made) -> Result<Vec<SinkJob<Self>>, Self::Error> {
        for (kind, count) in made.kinds().iter().zip(&mut self.of_kinds) {
            self.executions += kind.executions;
            *count += kind.executions;
            self.of_nobody += kind.of_nobody;
        }
        let jobs = self.writer.take_all(graph, made)?.into_iter();
        Ok(jobs.map(of_writer).collect())
    }
}

/// A job of the writer as a job of this sink.
fn of_writer(job: SinkJob<Writer>) -> SinkJob<Counting> {
    SinkJob::new(
        || job.run(),
        |counting: &mut Counting, done| {
            let further = done(&mut counting.writer)?.into_iter();
            Ok(further.map(of_writer).collect())
        },
    )
}

/// Label of a trace: the one given, or the name of the given directory that contains the trace.
fn label(args: &BuildArgs, trace: &Trace) -> String {
    let is_of = |path: &&PathBuf| {
        let known = trace
            .known_path()
            .is_some_and(|known| known.starts_with(path));
        known || trace.paths.iter().any(|of| of.starts_with(path))
    };
    let mut paths = args.input.paths.iter();
    let given = paths.find(is_of).or(args.input.paths.first());
    let name = || given.and_then(|path| name_of(path));
    args.label.clone().or_else(name).unwrap_or_default()
}

/// The argument of `--sync` in a form that is valid in any working directory.
fn sync(from: &Path) -> String {
    let place = match from.as_os_str() == "auto" {
        true => from.to_owned(),
        false => std::path::absolute(from).unwrap_or_else(|_| from.to_owned()),
    };
    place.display().to_string()
}

/// The name of a recording's directory.
fn name_of(path: &Path) -> Option<String> {
    let path = std::fs::canonicalize(path).ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}
