//! From traces to executions with all that is kept of each.

use tracebraid_critical_path::Graph;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_profile::Samples;
use tracebraid_reports::periods::Ended;

use crate::contexts::{ContextId, Contexts, Frame, FrameKind};
use crate::ecct::{Builder, Ecct, Step};
use crate::execution::{Execution, executions};
use crate::metrics::metrics;
use crate::names::Names;
use crate::sampled::Sampled;

/// An execution with all that is kept of it.
#[derive(Clone, Debug)]
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

impl Union {
    /// The frames of a context as texts, the outermost first: what is no function is in brackets.
    pub fn words(&self, context: ContextId) -> Vec<String> {
        let text = |frame: Frame| {
            let name = self.names.text(frame.name);
            match frame.kind {
                FrameKind::Function => name.to_owned(),
                FrameKind::Call => format!("{name}()"),
                FrameKind::Thread => format!("<{name}>"),
                FrameKind::Reason | FrameKind::Detail => format!("[{name}]"),
            }
        };
        self.contexts.frames(context).into_iter().map(text).collect()
    }
}

/// Makes executions of periods of definitions [`crate::with_threads`]; what they refer to goes on from `union`.
///
/// # Errors
/// What the sink says.
pub fn build<S: Sink>(
    set: &TraceSet,
    graph: &Graph,
    samples: &Samples,
    ended: Ended,
    union: Union,
    sink: &mut S,
) -> Result<Union, S::Error> {
    let sampled = Sampled::new(set, graph, samples, union.names);
    let mut builder =
        Builder::new(graph, &sampled.stacks, &sampled.threads, sampled.names).with_contexts(union.contexts);
    for execution in executions(set, graph, ended) {
        sink.take(graph, finished(graph, &mut builder, execution))?;
    }
    Ok(Union {
        contexts: builder.contexts,
        names: builder.names,
    })
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
