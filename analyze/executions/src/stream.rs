//! Executions that are made while the trace is read, and what is forgotten behind them.
//!
//! Executions come out in the order in which they end. Each is what is known of it a time behind its end: what ends a wait
//! that goes on there, who sent a segment that came by a clock that is ahead, who else had used the disk. Most are known for
//! good before; then they do not wait for that time, which changes nothing but the memory that they take. What ended before
//! the first execution begins that is open, or not made yet, is dropped.

use std::collections::VecDeque;

use tracebraid_graph::{ActorId, Graph, Growing, Kind, Occupant, Path, Question, Wake};
use tracebraid_periods::EndedPeriod;

use crate::build::{BuildRules, Finished, Sink, Union};
use crate::contexts::Contexts;
use crate::counts::{CountLines, Quantities};
use crate::ecct::{Builder, Common, Ecct};
use crate::execution::{Execution, Kernels, Whose};
use crate::metrics::all_metrics;
use crate::pass::{Pass, PassPartial};
use crate::sampled::Sampling;
use crate::turns::{Label, Turns};

/// Executions that are made while the trace is read.
pub(crate) struct Stream<'s, S: Sink> {
    growing: Growing,
    kernels: Kernels,
    sampling: Sampling,
    /// What the trees that were made have in common.
    common: Common,
    /// The first one that has ended and is not made yet, and what it waits for.
    first: Option<Execution>,
    question: Option<Question>,
    /// The others, in the order in which they have ended.
    pending: VecDeque<(EndedPeriod, Option<Label>)>,
    /// When threads turned to executions.
    turns: Turns,
    sink: &'s mut S,
    error: Option<S::Error>,
    limits: Limits,
    /// What was before is dropped.
    cut: i64,
    told: Told,
}

/// What bounds the memory.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// How long behind its end an execution is made at the latest, in nanoseconds.
    behind: u64,
    /// How much may happen in an execution.
    most: u64,
    /// Behind this time nothing is known.
    known_until: i64,
}

/// What is told in the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Executions in which too much happened.
    pub(crate) given_up: u64,
    /// The most stretches of time lines that there were at a time.
    pub(crate) most_stretches: usize,
    /// Page faults of all threads.
    pub(crate) faults: u64,
}

impl<'s, S: Sink> Stream<'s, S> {
    pub(crate) fn new(
        pass: &Pass,
        (kernels, mut sampling, contexts): (Kernels, Sampling, Contexts),
        rules: &BuildRules,
        sink: &'s mut S,
    ) -> Self {
        let mut growing = Growing::new(&pass.graph);
        let names = std::mem::take(&mut sampling.sampled.names);
        let limits = Limits {
            behind: rules.behind_ns,
            most: rules.most_within,
            known_until: growing.graph().known_until,
        };
        Stream {
            growing,
            kernels,
            sampling,
            common: Common {
                contexts,
                names,
                ..Common::default()
            },
            first: None,
            question: None,
            pending: VecDeque::new(),
            turns: Turns::default(),
            sink,
            error: None,
            limits,
            cut: i64::MIN,
            told: Told::default(),
        }
    }

    /// Everything before that time is in the partial state; without a time, everything there is. False if the sink takes no
    /// more.
    pub(crate) fn settle(&mut self, pass: &Pass, partial: &mut PassPartial, until: Option<i64>) -> bool {
        let (ended, turns) = pass.periods.take_with_turns(&mut partial.0);
        let labelled = ended.into_iter().map(|ended| {
            let label = pass.periods.label(&ended);
            (ended, label)
        });
        self.pending.extend(labelled);
        self.turns.extend(turns);
        while self.error.is_none()
            && let Some(end) = self.first_end()
        {
            let deadline = self.limits.deadline(end);
            let is_due = deadline.is_some_and(|deadline| until.is_none_or(|until| deadline <= until));
            let reached = if is_due { deadline } else { until };
            self.play(pass, partial, reached);
            let counted = (pass.counts.quantities(), &partial.2.lines);
            if !self.makes_first(is_due || until.is_none(), counted) {
                break;
            }
        }
        self.play(pass, partial, until);
        self.forget(pass, partial);
        if until.is_none() {
            self.told.faults = partial.2.faults();
        }
        self.error.is_none()
    }

    fn play(&mut self, pass: &Pass, partial: &mut PassPartial, until: Option<i64>) {
        if until.is_none_or(|until| self.growing.until() < until) {
            self.growing.play(&pass.graph, &mut partial.1, until);
            if !self.sampling.is_empty() {
                self.sampling.advance(&self.kernels, self.growing.graph(), until);
            }
        }
    }

    /// Makes the first execution that has ended, if it is known for good, or must be made; false if it is not made.
    fn makes_first(&mut self, must: bool, counted: (&Quantities, &CountLines)) -> bool {
        if !must && self.question.is_some_and(|question| self.is_open(question)) {
            return false;
        }
        self.question = None;
        let Some(execution) = self.take_first() else {
            return false;
        };
        let Execution { begin, end, .. } = execution;
        if begin < self.cut || self.growing.between(begin, end) > self.limits.most {
            self.told.given_up += 1;
            return true;
        }
        let path = execution.path(self.growing.graph());
        self.question = match &path {
            Some(path) if !must => {
                let passed = execution.passed.as_ref();
                let of_passed = passed.and_then(|passed| self.growing.question_of_passed(passed));
                of_passed.or_else(|| self.asks(path, end))
            }
            _ => None,
        };
        if self.question.is_some() {
            self.first = Some(execution);
            return false;
        }
        self.make(execution, path, counted);
        true
    }

    /// When the first one has ended that is not made yet.
    fn first_end(&self) -> Option<i64> {
        let first = self.first.as_ref().map(|first| first.end);
        first.or(self.pending.front().map(|first| first.0.end.time))
    }

    fn take_first(&mut self) -> Option<Execution> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let (first, label) = self.pending.pop_front()?;
        self.look_up_turns();
        let whose = Whose::new(&self.kernels, self.growing.graph());
        Some(whose.execution(first, label, &self.turns))
    }

    /// Looks up the threads that turned to something up to where the graph has grown.
    fn look_up_turns(&mut self) {
        let until = self.growing.until();
        let whose = Whose::new(&self.kernels, self.growing.graph());
        let until = Some(until).filter(|until| *until < i64::MAX);
        self.turns
            .look_up(until, |time, thread| whose.actor(time, thread));
    }

    fn is_open(&mut self, question: Question) -> bool {
        match question {
            Question::Line(actor, time) => self.growing.goes_on(actor, time).is_some(),
            Question::Open => true,
        }
    }

    /// What may yet change of a path that ends then, or of the stacks on it.
    fn asks(&mut self, path: &Path, end: i64) -> Option<Question> {
        if let Some(question) = self.growing.question(path) {
            return Some(question);
        }
        if self.sampling.is_empty() {
            return None;
        }
        let deadline = end.saturating_add_unsigned(self.limits.behind);
        let graph = self.growing.graph();
        let mut actors = actors(graph, path).into_iter();
        let is_open = actors.any(|actor| self.sampling.is_open(graph, actor, end, deadline));
        is_open.then_some(Question::Open)
    }

    fn make(&mut self, execution: Execution, path: Option<Path>, counted: (&Quantities, &CountLines)) {
        let graph = self.growing.graph();
        let sampled = &self.sampling.sampled;
        let common = std::mem::take(&mut self.common);
        let mut builder = Builder::going_on(graph, &sampled.stacks, &sampled.threads, common);
        let finished = finished((graph, counted), &mut builder, execution, path);
        self.common = builder.into_common();
        self.error = self.sink.take(graph, finished).err();
    }

    /// Drops what no execution needs that is open or not made yet.
    fn forget(&mut self, pass: &Pass, partial: &mut PassPartial) {
        let open = pass.periods.open(&partial.0);
        let looked_at = pass.periods.room(&partial.0) + self.pending.len();
        if !self.growing.is_due(looked_at) {
            return;
        }
        let until = self.growing.until();
        let too_much = |begin: i64| begin < self.cut || self.growing.between(begin, until) > self.limits.most;
        let open = open.filter(|begin| !too_much(*begin));
        let pending = self.pending.iter().map(|(period, _)| period.begin.time);
        let pending = pending.chain(self.first.as_ref().map(|first| first.begin));
        let pending = pending.filter(|begin| *begin >= self.cut);
        let cut = open.chain(pending).min().unwrap_or(until).min(until);
        let stretches = self.growing.stretches();
        self.told.most_stretches = self.told.most_stretches.max(stretches);
        if cut <= self.cut {
            return;
        }
        self.cut = cut;
        self.look_up_turns();
        self.turns.drop_before(cut);
        self.growing.drop_before(cut);
        partial.2.lines.forget(cut);
        if !self.sampling.is_empty() {
            let since = self.growing.requests_since(cut);
            self.sampling.drop_before(since);
        }
    }

    /// What trees refer to, what else is to be told, how many stacks are of nobody, and why the sink took no more.
    pub(crate) fn into_parts(mut self) -> (Union, Told, u64, Option<S::Error>) {
        let stretches = self.growing.stretches();
        self.told.most_stretches = self.told.most_stretches.max(stretches);
        let union = Union {
            contexts: self.common.contexts,
            names: self.common.names,
        };
        (union, self.told, self.sampling.sampled.of_nobody, self.error)
    }
}

impl Limits {
    /// When an execution that ends then is made at the latest; none if that is behind all that is known.
    fn deadline(&self, end: i64) -> Option<i64> {
        let deadline = end.checked_add_unsigned(self.behind)?;
        (deadline <= self.known_until).then_some(deadline)
    }
}

/// The threads whose stacks may be on a path.
fn actors(graph: &Graph, path: &Path) -> Vec<ActorId> {
    let mut actors: Vec<ActorId> = path.hops.iter().map(|hop| hop.actor).collect();
    for segment in &path.segments {
        match segment.kind {
            Kind::Preempted(Occupant::Thread(by)) | Kind::Runnable(Occupant::Thread(by)) => actors.push(by),
            Kind::Waiting {
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

fn finished(
    (graph, counted): (&Graph, (&Quantities, &CountLines)),
    builder: &mut Builder<'_>,
    execution: Execution,
    path: Option<Path>,
) -> Finished {
    let Some(path) = path else {
        let mut metrics = vec![None; crate::Metric::all().count() + counted.0.extra().len()];
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
        metrics: all_metrics(graph, &path, execution.kind, counted),
        execution,
        ecct,
        steps,
    }
}
