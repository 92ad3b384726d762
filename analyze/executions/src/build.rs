//! Builds executions from traces.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, FoldError, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Window};
use tracebraid_graph::{DeviceTimes, Graph, GraphAnalysis, WaitReason};
use tracebraid_language::executions::Definitions;
use tracebraid_profile::Samples;

use crate::contexts::{ContextId, Contexts, Frame, FrameKind};
use crate::counts::{CountAnalysis, ExtraMetric};
use crate::delimit::{DelimitedAnalysis, FunctionNames};
use crate::ecct::{Ecct, ExecutionStep};
use crate::execution::{Execution, Kernels};
use crate::grid::{Grid, Intervals};
use crate::known::Known;
use crate::made::Made;
use crate::names::Names;
use crate::pass::{Pass, Streaming};
use crate::sampled::Sampling;
use crate::stream::Stream;

/// An execution with its metrics, calling contexts and steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Delimiters and thread.
    pub execution: Execution,
    /// Metrics in the order of [`crate::Metric::all`], followed by those of [`Built::extra`]. If
    /// the thread of the execution is unknown, only its duration.
    pub metrics: Vec<Option<u64>>,
    /// Time by calling context; empty if the thread is unknown.
    pub ecct: Ecct,
    /// The same time as a sequence of steps; empty if the thread is unknown.
    pub steps: Vec<ExecutionStep>,
}

/// Work of a sink that can run on any thread.
pub struct SinkJob<S: Sink>(Box<dyn FnOnce() -> SinkDone<S> + Send>);

/// Applies the result of a job to the sink, in the order of the jobs; may return further jobs.
pub type SinkDone<S> =
    Box<dyn FnOnce(&mut S) -> Result<Vec<SinkJob<S>>, <S as Sink>::Error> + Send>;

impl<S: Sink> SinkJob<S> {
    /// A job that runs `work` on any thread and then gives its result to `take`, with the sink.
    pub fn new<D: Send + 'static>(
        work: impl FnOnce() -> D + Send + 'static,
        take: impl FnOnce(&mut S, D) -> Result<Vec<SinkJob<S>>, S::Error> + Send + 'static,
    ) -> SinkJob<S> {
        SinkJob(Box::new(move || {
            let done = work();
            Box::new(move |sink| take(sink, done))
        }))
    }

    /// Runs the work.
    pub fn run(self) -> SinkDone<S> {
        (self.0)()
    }
}

impl<S: Sink> std::fmt::Debug for SinkJob<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SinkJob")
    }
}

/// Receives executions as they are made.
pub trait Sink: Sized {
    /// Error of the sink.
    type Error;

    /// Called before the first execution, with the metrics other than those of [`crate::Metric`].
    ///
    /// # Errors
    /// If the sink has no room for these metrics; no execution is made then.
    fn figures(&mut self, extra: &[ExtraMetric]) -> Result<(), Self::Error> {
        let _ = extra;
        Ok(())
    }

    /// Takes one execution. The graph contains its threads; the union that [`build`] returns
    /// contains its contexts.
    ///
    /// # Errors
    /// If the execution cannot be stored; no further execution is made then.
    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Self::Error>;

    /// Takes consecutive executions. Work whose cost grows with the number of executions should be
    /// returned as jobs. The default calls [`Sink::take`] for each execution.
    ///
    /// # Errors
    /// As [`Sink::take`].
    fn take_all(&mut self, graph: &Graph, made: Made) -> Result<Vec<SinkJob<Self>>, Self::Error> {
        let mut finished = made.into_finished();
        finished.try_for_each(|finished| self.take(graph, finished))?;
        Ok(Vec::new())
    }
}

/// The contexts and names that executions refer to.
#[derive(Clone, Debug, Default)]
pub struct Union {
    /// Contexts of all executions.
    pub contexts: Contexts,
    /// Names of the frames.
    pub names: Names,
}

impl Union {
    /// The frames of a context as text, the outermost first. Frames other than functions are
    /// marked, see [`Union::word`].
    pub fn words(&self, context: ContextId) -> Vec<String> {
        let frames = self.contexts.frames(context).into_iter();
        frames.map(|frame| self.word(frame)).collect()
    }

    /// True for contexts of a command that waits for a device or executes, without a thread.
    pub fn is_of_device(&self, context: ContextId) -> bool {
        let frames = self.contexts.frames(context);
        frames.first().is_some_and(|frame| {
            let name = self.names.text(frame.name);
            frame.kind == FrameKind::Reason && name == WaitReason::Device.name()
        })
    }

    /// `queued` or `unknown-hand-over` for contexts of a thread's activity while the execution
    /// waited for it.
    pub fn waits_for_thread(&self, context: ContextId) -> Option<&'static str> {
        let frames = self
            .contexts
            .way(context)
            .filter_map(|at| self.contexts.parts(at));
        let reasons = frames.filter(|(_, frame)| frame.kind == FrameKind::Reason);
        let mut names = reasons.map(|(_, frame)| self.names.text(frame.name));
        let is_it = |name: &str| {
            let reasons = [WaitReason::Queued, WaitReason::UnknownHandOver].into_iter();
            reasons.map(WaitReason::name).find(|reason| *reason == name)
        };
        names.find_map(is_it)
    }

    /// A frame as text: `function`, `call()`, `<thread>`, `[reason]`.
    pub fn word(&self, frame: Frame) -> String {
        let name = self.names.text(frame.name);
        match frame.kind {
            FrameKind::Function => name.to_owned(),
            FrameKind::Call => format!("{name}()"),
            FrameKind::Thread => format!("<{name}>"),
            FrameKind::Reason | FrameKind::Detail => format!("[{name}]"),
        }
    }
}

/// Which executions to make.
#[derive(Clone, Debug)]
pub struct BuildRules {
    /// Beginnings and ends of executions.
    pub definitions: Definitions,
    /// Names of functions, if definitions refer to functions.
    pub names: FunctionNames,
    /// Commands of devices, and waits of threads for them.
    pub devices: Arc<DeviceTimes>,
    /// Only executions that begin and end in this window are made.
    pub window: Window,
    /// Nanoseconds after the end of an execution. The execution is final at the end of the interval
    /// that contains that time; later events are ignored. Intervals have at least this length.
    pub behind_ns: u64,
    /// Minimum number of packet bytes in each interval except the last one; 0: all intervals have
    /// the length `behind_ns`. Longer intervals keep more threads busy, and need more memory for
    /// executions that are not final.
    pub interval_bytes: u64,
    /// Maximum number of switches, wake-ups and interrupts of all threads during one execution.
    /// Executions with more are given up. Bounds the memory that is kept for open executions.
    pub most_within: u64,
}

impl BuildRules {
    /// One second after the end of an execution, all events on which it depends are known; only
    /// operations that no thread waits for may end later.
    pub const BEHIND_NS: u64 = 1_000_000_000;
    /// The slice size of the engine. With 8 MiB the serial share on a machine with 16 CPUs was 4.8
    /// and 5.5 % on two traces instead of 4.1 and 4.4 %, and the memory a tenth less; 32 MiB nearly
    /// doubled the state that is kept.
    pub const INTERVAL_BYTES: u64 = 16 << 20;
    /// Takes a few GiB of memory.
    pub const MOST_WITHIN: u64 = 1 << 26;
}

impl Default for BuildRules {
    fn default() -> Self {
        BuildRules {
            definitions: Definitions::default(),
            names: FunctionNames::default(),
            devices: Arc::default(),
            window: Window::default(),
            behind_ns: BuildRules::BEHIND_NS,
            interval_bytes: BuildRules::INTERVAL_BYTES,
            most_within: BuildRules::MOST_WITHIN,
        }
    }
}

/// Summary of all executions of a build.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// Contexts and names.
    pub union: Union,
    /// Number of executions without an end, by definition.
    pub unfinished: Vec<u64>,
    /// Number of executions that were not begun because too many were open.
    pub refused: u64,
    /// Number of executions that ended but exceeded [`BuildRules::most_within`].
    pub given_up: u64,
    /// Maximum number of stretches of thread time lines that were kept at the same time.
    pub most_stretches: usize,
    /// End of the recorded time, in nanoseconds from the origin.
    pub until: i64,
    /// Metrics other than those of [`crate::Metric`].
    pub extra: Vec<ExtraMetric>,
    /// The traces define page fault events but contain none: page faults were not recorded, and the
    /// 0 that executions show means unknown.
    pub lacks_faults: bool,
    /// Number of sampled stacks whose thread is unknown.
    pub of_nobody: u64,
    /// Damage found in the traces.
    pub damage: Vec<Damage>,
    /// The most useful data that was not recorded, as a message for the user.
    pub lacks: Option<&'static str>,
    /// Probable mistakes in the definitions, as messages for the user.
    pub doubts: Vec<String>,
}

/// Reasons for which a build fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError<E> {
    /// The definitions cannot be applied to the traces.
    #[error("{0}")]
    Periods(String),
    /// The fold was cancelled, or an index is damaged.
    #[error(transparent)]
    Fold(FoldError),
    /// The sink failed.
    #[error(transparent)]
    Sink(E),
}

/// Makes the executions of traces in one pass, in the order in which they end. Contexts and names
/// are added to those of `union`.
///
/// # Errors
/// If the definitions cannot be applied to the traces, if the fold fails, or if the sink fails,
/// which cancels the fold.
pub fn build<S: Sink + Send>(
    set: &TraceSet,
    rules: &BuildRules,
    samples: &Samples,
    union: Union,
    (mut options, control): (Options, &Control),
    sink: &mut S,
) -> Result<Built, BuildError<S::Error>>
where
    S::Error: Send,
{
    let selection = selection(rules);
    options.until = options.until.or(selection.read_until());
    let streaming = streaming(set, rules, samples, union, control, sink)?;
    let outcome = fold(set, &streaming, options, control);
    let Streaming {
        pass,
        known,
        stream,
        ..
    } = streaming;
    let stream = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
    let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
    let until = pass.graph.input().known_until();
    let of_nobody = known.sampling.sampled.of_nobody;
    let (union, told, error) = stream.into_parts(&known);
    if let Some(error) = error {
        return Err(BuildError::Sink(error));
    }
    let outcome = outcome.map_err(BuildError::Fold)?;
    Ok(Built {
        union,
        unfinished: outcome.report.unfinished,
        refused: outcome.report.refused,
        given_up: told.given_up,
        most_stretches: told.most_stretches,
        until: until.unwrap_or(i64::MIN),
        of_nobody,
        damage: outcome.damage,
        lacks: pass.lacks(),
        doubts: pass
            .periods
            .doubts()
            .into_iter()
            .chain(pass.counts.doubts())
            .chain(pass.graph.input().head().note())
            .collect(),
        extra: pass.counts.quantities().extra(),
        lacks_faults: told.faults == 0,
    })
}

/// Includes events past the end of the window that may still matter.
fn selection(rules: &BuildRules) -> Selection {
    Selection {
        window: rules.window,
        behind: rules.behind_ns,
        ..Selection::default()
    }
}

/// The analysis that builds the executions and gives them to `sink`.
pub(crate) fn streaming<'s, S: Sink + Send>(
    set: &TraceSet,
    rules: &BuildRules,
    samples: &Samples,
    union: Union,
    control: &'s Control,
    sink: &'s mut S,
) -> Result<Streaming<'s, S>, BuildError<S::Error>> {
    let graph = GraphAnalysis::new(set, selection(rules));
    let recorded = Some(&graph.input().recorded);
    let names = (rules.names.clone(), Arc::clone(&rules.devices));
    let periods =
        DelimitedAnalysis::sharing((set, recorded), &rules.definitions, names, rules.window)
            .map_err(BuildError::Periods)?;
    let counts =
        CountAnalysis::sharing(set, recorded, &rules.definitions).map_err(BuildError::Periods)?;
    sink.figures(&counts.quantities().extra())
        .map_err(BuildError::Sink)?;
    let pass = Pass::new(set, (periods, graph, counts));
    let sources = &pass.graph.input().sources;
    let kernels = Kernels::new(set, |trace| sources.tells_switches(trace));
    let mut sampling = Sampling::new(&kernels, samples, union.names);
    let names = std::mem::take(&mut sampling.sampled.names);
    let intervals = Intervals::new(set, rules.behind_ns, rules.interval_bytes);
    let behind = (rules.behind_ns, intervals.clone());
    let state = (kernels, sampling, Arc::clone(&rules.devices));
    let known = Known::new(&pass, state, behind, rules.most_within);
    let grid = Grid::new(intervals, known.growing.ends().collect());
    Ok(Streaming {
        pass,
        known: RwLock::new(known),
        grid,
        stream: Mutex::new(Stream::new((union.contexts, names), sink)),
        control,
    })
}
