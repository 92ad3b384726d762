//! From traces to executions with all that is kept of each.

use tracebraid_critical_path::{Graph, GraphAnalysis};
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_filter::periods::Periods;
use tracebraid_fold::{Control, FoldError, Options, fold};
use tracebraid_kernel_fold::{KernelAnalysis, Selection, Window};
use tracebraid_profile::Samples;
use tracebraid_reports::periods::EndedAnalysis;

use crate::contexts::Contexts;
use crate::ecct::{Builder, Ecct, Step};
use crate::execution::{Execution, executions, with_threads};
use crate::metrics::metrics;
use crate::names::Names;
use crate::pass::Pass;
use crate::sampled::Sampled;

/// An execution with all that is kept of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// What it is.
    pub execution: Execution,
    /// Figures, in the order of [`crate::Metric::all`]; of an execution of which nobody knows in which thread it was, its
    /// duration only.
    pub metrics: Vec<Option<u64>>,
    /// Where its time went; empty if nobody knows in which thread it was.
    pub ecct: Ecct,
    /// The same, one behind the other.
    pub steps: Vec<Step>,
}

/// Takes executions one by one, as they are made.
pub trait Sink {
    /// What can go wrong.
    type Error;

    /// An execution. The graph tells of its threads; what it refers to of contexts is among those that [`build`] gives in the
    /// end.
    ///
    /// # Errors
    /// When it cannot be kept: then no more is made.
    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Self::Error>;
}

/// What executions refer to.
#[derive(Clone, Debug, Default)]
pub struct Union {
    /// Contexts of all of them.
    pub contexts: Contexts,
    /// What their frames are called.
    pub names: Names,
}

/// Which executions to make.
#[derive(Clone, Debug, Default)]
pub struct BuildRules {
    /// What begins and ends them.
    pub periods: Periods,
    /// Only those that begin and end in it.
    pub window: Window,
}

/// What is told of all executions in the end.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// What they refer to.
    pub union: Union,
    /// By definition: how many did not end.
    pub unfinished: Vec<u64>,
    /// How many were not begun, since too many were open.
    pub refused: u64,
    /// Behind this time, in nanoseconds from the origin, nothing is known.
    pub until: i64,
    /// Stacks of threads that nobody knows.
    pub of_nobody: u64,
    /// What is damaged in the traces.
    pub damage: Vec<Damage>,
    /// What was not recorded and would tell most, for people.
    pub lacks: Option<&'static str>,
    /// What in the definitions is probably wrong, for people.
    pub doubts: Vec<String>,
}

/// Why executions were not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError<E> {
    /// The definitions cannot be followed.
    #[error("{0}")]
    Periods(String),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// They cannot be kept.
    #[error(transparent)]
    Sink(E),
}

/// Makes the executions of traces in one pass over them; what they refer to goes on from `union`.
///
/// # Errors
/// When the definitions cannot be followed, when it is cancelled, and what the sink says.
pub fn build<S: Sink>(
    set: &TraceSet,
    rules: &BuildRules,
    samples: &Samples,
    union: Union,
    (mut options, control): (Options, &Control),
    sink: &mut S,
) -> Result<Built, BuildError<S::Error>> {
    let periods = with_threads(rules.periods.clone());
    let periods = EndedAnalysis::new(set, periods, rules.window).map_err(BuildError::Periods)?;
    let selection = Selection {
        window: rules.window,
        ..Selection::default()
    };
    let pass = Pass::new(set, periods, GraphAnalysis::new(set, selection));
    options.until = options.until.or(rules.window.to);
    let outcome = fold(set, &pass, options, control).map_err(|FoldError::Cancelled| BuildError::Cancelled)?;
    let (ended, graph) = outcome.report;
    let mut built = Built {
        unfinished: ended.unfinished.clone(),
        refused: ended.refused,
        until: graph.known_until,
        damage: outcome.damage,
        lacks: pass.lacks(),
        doubts: pass.periods.doubts().to_vec(),
        ..Built::default()
    };
    let sampled = Sampled::new(set, &graph, samples, union.names);
    built.of_nobody = sampled.of_nobody;
    let mut builder =
        Builder::new(&graph, &sampled.stacks, &sampled.threads, sampled.names).with_contexts(union.contexts);
    for execution in executions(set, &graph, ended) {
        let finished = finished(&graph, &mut builder, execution);
        sink.take(&graph, finished).map_err(BuildError::Sink)?;
    }
    built.union = Union {
        contexts: builder.contexts,
        names: builder.names,
    };
    Ok(built)
}

fn finished(graph: &Graph, builder: &mut Builder<'_>, execution: Execution) -> Finished {
    let Some(path) = execution.path(graph) else {
        let mut metrics = vec![None; crate::Metric::all().count()];
        if let Some(duration) = metrics.first_mut() {
            *duration = Some(execution.duration());
        }
        return Finished {
            execution,
            metrics,
            ecct: Ecct::default(),
            steps: Vec::new(),
        };
    };
    let (ecct, steps) = builder.ecct_and_steps(&path);
    Finished {
        metrics: metrics(graph, &path).into_iter().map(Some).collect(),
        execution,
        ecct,
        steps,
    }
}
