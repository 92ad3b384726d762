//! Batches of executions that were made in parallel, with numbers local to the batch.
//!
//! Contexts, names and threads are numbered in the order in which they are met. A thread that makes
//! a batch in parallel with others does not know how many were met in earlier batches, so each
//! batch starts its own numbering; once the earlier batches are numbered, [`Made::number`] maps own
//! numbers to global ones. The cost is proportional to the number of different contexts, not of
//! executions. Data of variable length lies in lists shared by all executions of the batch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tracebraid_graph::{ActorId, Graph};
use tracebraid_kernel_model::Comm;
use tracebraid_language::Datum;

use crate::build::Finished;
use crate::contexts::{ContextId, Contexts, Frame, FrameKind, Hasher};
use crate::ecct::{Common, Ecct, ExecutionStep};
use crate::execution::Execution;
use crate::names::NameId;

/// Batch of executions made in parallel with other batches, in the order of their ends.
#[derive(Debug, Default)]
pub struct Made {
    lists: Lists,
    threads: MetThreads,
    /// Contexts and names by own number, until [`Made::number`] maps them.
    pub(crate) own: Common,
    /// Global context by own number. Empty if own numbers are the global ones.
    contexts: Vec<ContextId>,
    kinds: Vec<KindMade>,
    /// Number of executions that were given up.
    pub(crate) given_up: u64,
    spare: Option<Arc<Spare>>,
}

/// Lists that grow with the number of executions.
#[derive(Debug, Default)]
struct Lists {
    executions: Vec<Execution>,
    /// By execution: ends of its data in the lists of variable length.
    ends: Vec<Ends>,
    figures: Vec<Option<u64>>,
    /// Time by own number of the context; contexts of each execution are ascending.
    times: Vec<(ContextId, u64)>,
    steps: Vec<ExecutionStep>,
    /// By execution: its thread.
    threads: Vec<Option<u32>>,
    /// Thread changes: index of the step within its execution from which a thread applies, and the
    /// thread.
    changes: Vec<(usize, Option<u32>)>,
}

impl Lists {
    fn clear(&mut self) {
        self.executions.clear();
        self.ends.clear();
        self.figures.clear();
        self.times.clear();
        self.steps.clear();
        self.threads.clear();
        self.changes.clear();
    }
}

/// Allocations of written executions, for reuse: they are usually freed on another thread than the
/// one that makes executions.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Lists>>);

/// Maximum number of batches whose allocations are kept for reuse.
const MOST_SPARE: usize = 64;

impl Spare {
    /// Empty batch in a reused allocation, if there is one.
    pub(crate) fn made(self: &Arc<Spare>) -> Made {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = Made::default();
        made.lists = spare.pop().unwrap_or_default();
        made.spare = Some(self.clone());
        made
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(spare) = self.spare.take() {
            let mut lists = std::mem::take(&mut self.lists);
            lists.clear();
            let mut spare = spare.0.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < MOST_SPARE {
                spare.push(lists);
            }
        }
    }
}

/// Ends of the data of an execution in the lists.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    figures: usize,
    times: usize,
    steps: usize,
    threads: usize,
}

/// An execution with its metrics, times, steps and threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'m> {
    pub(crate) execution: &'m Execution,
    pub(crate) figures: &'m [Option<u64>],
    /// Time by own number of the context.
    pub(crate) times: &'m [(ContextId, u64)],
    pub(crate) steps: &'m [ExecutionStep],
    /// Thread in which the execution ended. `changes` holds the threads of its steps: the index of
    /// the first step, and the thread.
    pub(crate) thread: Option<u32>,
    pub(crate) changes: &'m [(usize, Option<u32>)],
}

/// Thread with the name it had when it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetThread {
    pub(crate) trace: u32,
    pub(crate) tid: i32,
    pub(crate) name: Option<String>,
}

/// Threads in the order in which they were met.
#[derive(Debug, Default)]
struct MetThreads {
    list: Vec<MetThread>,
    /// By thread of the graph: its name when it was last met, and its number.
    last: HashMap<ActorId, (Option<Comm>, u32), Hasher>,
}

/// Executions of one definition within a batch.
#[derive(Clone, Debug, Default)]
pub struct KindMade {
    /// Number of executions.
    pub executions: u64,
    /// Number of executions whose thread is unknown.
    pub of_nobody: u64,
    /// Index of the first execution of the definition in the batch.
    pub(crate) first: usize,
    /// By index of a metric and, after all metrics, of a value: the constant in the first execution
    /// (`None`: not a constant), and the index of the first execution that differs.
    pub(crate) cells: Vec<(Option<Constant>, Option<usize>)>,
}

/// Content of a metric or value that many executions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    Null,
    Zero,
}

impl Constant {
    /// `None` if the metric is neither missing nor zero.
    pub(crate) fn of_figure(figure: Option<u64>) -> Option<Constant> {
        match figure {
            None => Some(Constant::Null),
            Some(0) => Some(Constant::Zero),
            Some(_) => None,
        }
    }

    /// `None` if the value is neither missing nor zero.
    pub(crate) fn of_value(value: Option<&Datum>) -> Option<Constant> {
        match value {
            None | Some(Datum::Missing) => Some(Constant::Null),
            Some(Datum::Integer(0)) => Some(Constant::Zero),
            Some(_) => None,
        }
    }
}

impl Made {
    /// Number of executions.
    pub fn len(&self) -> usize {
        self.lists.executions.len()
    }

    /// True if the batch has no executions.
    pub fn is_empty(&self) -> bool {
        self.lists.executions.is_empty()
    }

    /// Executions by index of the definition.
    pub fn kinds(&self) -> &[KindMade] {
        &self.kinds
    }

    /// Adds an execution with its context times and steps; `put_figures` appends the metrics.
    pub(crate) fn push(
        &mut self,
        graph: &Graph,
        execution: Execution,
        (ecct, steps): (&[(ContextId, u64)], &[ExecutionStep]),
        put_figures: impl FnOnce(&mut Vec<Option<u64>>),
    ) {
        self.lists.times.extend_from_slice(ecct);
        self.meet(graph, &execution, steps);
        self.lists.steps.extend_from_slice(steps);
        let from = self.lists.figures.len();
        put_figures(&mut self.lists.figures);
        self.lists.ends.push(Ends {
            figures: self.lists.figures.len(),
            times: self.lists.times.len(),
            steps: self.lists.steps.len(),
            threads: self.lists.changes.len(),
        });
        self.count(&execution, from, steps.is_empty());
        self.lists.executions.push(execution);
    }

    /// Adds an execution whose contexts already have global numbers.
    pub(crate) fn push_finished(&mut self, graph: &Graph, finished: Finished) {
        let Finished {
            execution,
            metrics,
            ecct,
            steps,
        } = finished;
        self.push(graph, execution, (&ecct.times, &steps), |figures| {
            figures.extend(metrics);
        });
    }

    /// Records the thread of an execution and the thread changes between its steps.
    fn meet(&mut self, graph: &Graph, execution: &Execution, steps: &[ExecutionStep]) {
        let threads = &mut self.threads;
        let mut met = |actor: Option<ActorId>| threads.number(graph, actor?, execution.end);
        self.lists
            .threads
            .push(met(execution.last.or(execution.first)));
        let mut last = None;
        for (place, step) in steps.iter().enumerate() {
            if step.actor != last {
                last = step.actor;
                self.lists.changes.push((place, met(last)));
            }
        }
    }

    fn count(&mut self, execution: &Execution, figures_from: usize, is_of_nobody: bool) {
        let row = self.lists.executions.len();
        if self.kinds.len() <= execution.kind {
            self.kinds
                .resize_with(execution.kind + 1, KindMade::default);
        }
        let Some(kind) = self.kinds.get_mut(execution.kind) else {
            return;
        };
        let figures = self
            .lists
            .figures
            .get(figures_from..)
            .unwrap_or_default()
            .iter();
        let figures = figures.map(|figure| Constant::of_figure(*figure));
        let values = execution.values.iter();
        let constants = figures.chain(values.map(|value| Constant::of_value(Some(value))));
        if kind.executions == 0 {
            kind.first = row;
            kind.cells = constants.map(|constant| (constant, None)).collect();
        } else {
            let mut cells = kind.cells.iter_mut();
            let mut differs = |constant| match cells.next() {
                Some(cell) => {
                    if cell.0 != constant && cell.1.is_none() {
                        cell.1 = Some(row);
                    }
                    None
                }
                // Earlier executions have no content there.
                None => Some((Some(Constant::Null), Some(row))),
            };
            let more: Vec<_> = constants.filter_map(&mut differs).collect();
            for cell in cells.filter(|cell| cell.0 != Some(Constant::Null)) {
                cell.1.get_or_insert(row);
            }
            kind.cells.extend(more);
        }
        kind.executions += 1;
        kind.of_nobody += u64::from(is_of_nobody);
    }

    /// Maps own context numbers to global ones, and adds new contexts to `all`. The cost depends on
    /// different contexts only.
    pub(crate) fn number(&mut self, all: &mut Common) {
        let names = self.own.names.texts().iter();
        let names: Vec<NameId> = names.map(|name| all.names.id(name)).collect();
        let own = &self.own.contexts;
        let mut contexts: Vec<ContextId> = Vec::with_capacity(own.count());
        contexts.push(Contexts::EMPTY);
        for id in 1..own.count() as u32 {
            let Some((around, frame)) = own.parts(ContextId(id)) else {
                continue;
            };
            let name = match frame.kind {
                // Function names are global from the start.
                FrameKind::Function => frame.name,
                _ => names
                    .get(frame.name.0 as usize)
                    .copied()
                    .unwrap_or_default(),
            };
            let around = contexts.get(around.0 as usize).copied().unwrap_or_default();
            let kind = frame.kind;
            contexts.push(all.contexts.within(around, Frame { kind, name }));
        }
        self.contexts = contexts;
        self.own = Common::default();
    }

    /// Maps an own context number to the global one.
    pub(crate) fn context(&self, own: ContextId) -> ContextId {
        match self.contexts.is_empty() {
            true => own,
            false => self
                .contexts
                .get(own.0 as usize)
                .copied()
                .unwrap_or_default(),
        }
    }

    /// Threads in the order in which they were met.
    pub(crate) fn threads(&self) -> &[MetThread] {
        &self.threads.list
    }

    /// Data of the execution at index `place`.
    pub(crate) fn told(&self, place: usize) -> Option<Told<'_>> {
        let to = self.lists.ends.get(place)?;
        let before = place
            .checked_sub(1)
            .and_then(|before| self.lists.ends.get(before));
        let from = before.copied().unwrap_or_default();
        Some(Told {
            execution: self.lists.executions.get(place)?,
            figures: self.lists.figures.get(from.figures..to.figures)?,
            times: self.lists.times.get(from.times..to.times)?,
            steps: self.lists.steps.get(from.steps..to.steps)?,
            thread: self.lists.threads.get(place).copied().flatten(),
            changes: self.lists.changes.get(from.threads..to.threads)?,
        })
    }

    /// Splits the batch into executions; contexts must already have global numbers.
    pub fn into_finished(mut self) -> impl Iterator<Item = Finished> {
        let executions = std::mem::take(&mut self.lists.executions);
        let mut from = Ends::default();
        executions
            .into_iter()
            .zip(0..)
            .map(move |(execution, place)| {
                let to = self.lists.ends.get(place).copied().unwrap_or_default();
                let times = self
                    .lists
                    .times
                    .get(from.times..to.times)
                    .unwrap_or_default()
                    .iter();
                let times = times.map(|(context, time)| (self.context(*context), *time));
                let mut times: Vec<(ContextId, u64)> = times.collect();
                times.sort_unstable();
                let steps = self
                    .lists
                    .steps
                    .get(from.steps..to.steps)
                    .unwrap_or_default()
                    .iter();
                let steps = steps.map(|step| ExecutionStep {
                    context: self.context(step.context),
                    ..*step
                });
                let steps = steps.collect();
                let metrics = self.lists.figures.get(from.figures..to.figures);
                let metrics = metrics.unwrap_or_default().to_vec();
                from = to;
                Finished {
                    execution,
                    metrics,
                    ecct: Ecct { times },
                    steps,
                }
            })
    }
}

impl MetThreads {
    /// Number of a thread with the name it had at `time`.
    fn number(&mut self, graph: &Graph, actor: ActorId, time: i64) -> Option<u32> {
        let of = graph.actor(actor)?;
        let name = of.name_at(time);
        if let Some((last, number)) = self.last.get(&actor)
            && *last == name
        {
            return Some(*number);
        }
        let number = self.list.len() as u32;
        self.list.push(MetThread {
            trace: of.key.trace,
            tid: of.key.tid,
            name: graph.name_at(of, time),
        });
        self.last.insert(actor, (name, number));
        Some(number)
    }
}
