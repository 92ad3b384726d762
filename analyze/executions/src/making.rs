//! Makes executions from the known state: on any thread, while the state grows.
//!
//! An execution in which nothing is open is the same whichever later state it is made from. An
//! execution with an open question must wait ([`Question`]), and so must all later ones of its
//! batch; the caller tries again later.

use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock};

use tracebraid_graph::{ActorId, Graph, Occupant, Path, Question, SegmentKind, Wake};

use crate::counts::SeriesCursors;
use crate::delimit::{Block, EndedOnes};
use crate::ecct::Builder;
use crate::execution::{Execution, Whose};
use crate::known::Known;
use crate::made::Made;
use crate::metrics::{Metric, put_metrics};
use crate::pass::Pass;

/// Executions that have ended but are not made yet, in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Remaining executions of each block.
    blocks: VecDeque<EndedOnes>,
    /// First pending execution, if its threads are already resolved.
    first: Option<Execution>,
}

impl Pending {
    pub(crate) fn push(&mut self, block: Block) {
        self.blocks.push_back(block.numbered());
    }

    /// End of the first pending execution.
    pub(crate) fn first_end(&self) -> Option<i64> {
        if let Some(first) = &self.first {
            return Some(first.end);
        }
        self.blocks.iter().find_map(EndedOnes::end)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first_end().is_none()
    }

    fn take_first(&mut self, pass: &Pass, known: &Known) -> Option<Execution> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let period = loop {
            match self.blocks.front_mut()?.next() {
                Some((_, period)) => break period,
                None => _ = self.blocks.pop_front(),
            }
        };
        let label = pass.periods.label(&period);
        let whose = Whose::new(&known.kernels, known.growing.graph());
        let command = pass.periods.command(&period);
        Some(whose.execution(period, (label, command), &known.turns))
    }
}

/// Reason for which no more executions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// No wait: the requested number is made, or nothing is pending.
    No,
    /// The known state does not reach the end of the next execution.
    IsAhead,
    /// The next execution has an open question.
    For(Question),
}

/// Number of executions made under one read lock. While a writer waits for the last reader, all
/// other threads pause, so the lock must be held briefly.
const AT_ONCE: usize = 8;

/// Makes executions until one must wait, or all; in between, other threads may extend the known
/// state.
pub(crate) fn make_all(
    (pass, known): (&Pass, &RwLock<Known>),
    pending: &mut Pending,
    made: &mut Made,
    must: bool,
) -> Waits {
    let mut cursors = SeriesCursors::default();
    while !pending.is_empty() {
        let known = known.read().unwrap_or_else(PoisonError::into_inner);
        let waits = make((pass, &known, &mut cursors), pending, made, (AT_ONCE, must));
        if waits != Waits::No {
            return waits;
        }
    }
    // Freed on this thread, since composing is serial.
    pending.blocks = VecDeque::new();
    Waits::No
}

/// Makes at most `most` executions and stops at one that must wait. If `must`, open questions are
/// ignored.
pub(crate) fn make(
    (pass, known, cursors): (&Pass, &Known, &mut SeriesCursors),
    pending: &mut Pending,
    made: &mut Made,
    (most, must): (usize, bool),
) -> Waits {
    let graph = known.growing.graph();
    let sampled = &known.sampling.sampled;
    let own = std::mem::take(&mut made.own);
    let mut builder = Builder::going_on(graph, &sampled.stacks, &sampled.threads, own);
    let mut waits = Waits::No;
    for _ in 0..most {
        let Some(end) = pending.first_end() else {
            break;
        };
        let until = known.growing.until();
        if end > until || end == until && !must {
            waits = Waits::IsAhead;
            break;
        }
        let Some(execution) = pending.take_first(pass, known) else {
            break;
        };
        if known.is_too_much((execution.begin, execution.end)) {
            made.given_up += 1;
            continue;
        }
        let path = execution.path(graph);
        let question = match &path {
            Some(path) if !must => asks(known, &execution, path),
            _ => None,
        };
        if let Some(question) = question {
            waits = Waits::For(question);
            pending.first = Some(execution);
            break;
        }
        put(
            (pass, known, cursors),
            &mut builder,
            made,
            (execution, path),
        );
    }
    made.own = builder.into_common();
    waits
}

/// Open question that may still change the execution.
fn asks(known: &Known, execution: &Execution, path: &Path) -> Option<Question> {
    let passed = execution.passed.as_ref();
    let of_passed = passed.and_then(|passed| known.growing.question_of_passed(passed));
    if let Some(question) = of_passed.or_else(|| known.growing.question(path)) {
        return Some(question);
    }
    if known.sampling.is_empty() {
        return None;
    }
    let (end, graph) = (execution.end, known.growing.graph());
    let deadline = known.limits.deadline(end).unwrap_or(i64::MAX);
    let mut actors = actors(graph, path).into_iter();
    let is_open = actors.any(|actor| known.sampling.is_open(graph, actor, end, deadline));
    is_open.then_some(Question::Open)
}

/// Adds an execution with its metrics, calling contexts and steps.
fn put(
    (pass, known, cursors): (&Pass, &Known, &mut SeriesCursors),
    builder: &mut Builder<'_>,
    made: &mut Made,
    (execution, path): (Execution, Option<Path>),
) {
    let graph = known.growing.graph();
    let quantities = pass.counts.quantities();
    let Some(path) = path else {
        let duration = execution.duration();
        let others = Metric::all().count() - 1 + pass.extra;
        made.push(graph, execution, (&[], &[]), |figures| {
            figures.push(Some(duration));
            figures.extend(std::iter::repeat_n(None, others));
        });
        return;
    };
    let (ecct, steps) = builder.ecct_and_steps(&path);
    let counted = (execution.kind, quantities, (&known.series, cursors));
    made.push(graph, execution, (&ecct.times, &steps), |figures| {
        put_metrics(figures, graph, &path, counted);
    });
}

/// Threads whose stacks may occur on a path; ascending, without duplicates.
fn actors(graph: &Graph, path: &Path) -> Vec<ActorId> {
    let mut actors: Vec<ActorId> = path.hops.iter().map(|hop| hop.actor).collect();
    for segment in &path.segments {
        match segment.kind {
            SegmentKind::Preempted(Occupant::Thread(by))
            | SegmentKind::Runnable(Occupant::Thread(by)) => actors.push(by),
            SegmentKind::Waiting {
                wake: Wake::Request(place),
                ..
            } => {
                if let Some(request) = graph.requests.get(place as usize) {
                    let (trace, device) = (request.trace, request.device);
                    let users = graph.requests(trace, device, (segment.begin, segment.end));
                    actors.extend(users.filter_map(|request| request.by));
                }
            }
            _ => {}
        }
    }
    actors.sort_unstable();
    actors.dedup();
    actors
}
