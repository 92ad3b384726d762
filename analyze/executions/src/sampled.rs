//! Recorded stacks, assigned to the threads of a graph.

use std::collections::{HashMap, VecDeque};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::ThreadKey;
use tracebraid_graph::{ActorId, Graph, Growing, State};
use tracebraid_profile::{SampledStack, Samples};

use crate::execution::{Kernels, Whose};
use crate::names::{NameId, Names};
use crate::stacks::{Sample, Stacks, ThreadStacks};

/// Recorded stacks, assigned to the threads of a graph.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Names of functions.
    pub names: Names,
    /// All distinct stacks.
    pub stacks: Stacks,
    /// Stacks of each thread over time.
    pub threads: HashMap<ActorId, ThreadStacks>,
    /// Number of stacks whose thread is not in the graph.
    pub of_nobody: u64,
}

/// Recorded stacks, which are assigned to threads while a graph grows.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// Assigned stacks.
    pub(crate) sampled: Sampled,
    /// Stacks that are not assigned yet, in the order of time: sample, its trace, and thread id.
    waiting: VecDeque<(Sample, u32, Option<i64>)>,
    /// Times of the stacks in `waiting`, by thread.
    times: HashMap<ThreadKey, VecDeque<i64>>,
    waits_have_stacks: bool,
}

impl Sampled {
    /// Assigns the stacks of traces; names of functions are added to `names`.
    pub fn new(set: &TraceSet, graph: &Graph, samples: &Samples, names: Names) -> Sampled {
        let kernels = Kernels::of_graph(set, graph);
        let mut sampling = Sampling::new(&kernels, samples, names);
        sampling.advance(&kernels, graph, None);
        sampling.sampled
    }
}

impl Sampling {
    pub(crate) fn new(kernels: &Kernels, samples: &Samples, names: Names) -> Sampling {
        let mut sampled = Sampled {
            names,
            ..Sampled::default()
        };
        let names: Vec<NameId> = samples
            .names
            .iter()
            .map(|name| sampled.names.id(name))
            .collect();
        let mut sample = |of: &SampledStack| {
            let functions = of.functions.iter();
            let functions = functions.filter_map(|&function| names.get(function as usize).copied());
            let sample = Sample {
                time: of.time.0,
                since: of
                    .wait_ns
                    .map(|wait| of.time.0.saturating_sub_unsigned(wait)),
                stack: sampled.stacks.of(functions),
            };
            (sample, of.trace, of.tid)
        };
        let mut waiting: Vec<_> = samples.stacks.iter().map(&mut sample).collect();
        waiting.sort_by_key(|waiting| waiting.0);
        let mut times: HashMap<ThreadKey, VecDeque<i64>> = HashMap::new();
        for (sample, trace, tid) in &waiting {
            if let Some(key) = key(kernels, *trace, *tid) {
                times.entry(key).or_default().push_back(sample.time);
            }
        }
        Sampling {
            sampled,
            waiting: waiting.into(),
            times,
            waits_have_stacks: samples.quality.limits.threshold_ns > Some(0),
        }
    }

    /// Assigns the stacks earlier than `until`; without it, all stacks.
    pub(crate) fn advance(&mut self, kernels: &Kernels, graph: &Graph, until: Option<i64>) {
        let whose = Whose::new(kernels, graph);
        let is_due = |of: &(Sample, u32, Option<i64>)| until.is_none_or(|until| of.0.time < until);
        while self.waiting.front().is_some_and(is_due)
            && let Some((sample, trace, tid)) = self.waiting.pop_front()
        {
            if let Some(times) = key(kernels, trace, tid).and_then(|key| self.times.get_mut(&key)) {
                times.pop_front();
            }
            match whose.thread(trace, tid, sample.since.unwrap_or(sample.time)) {
                Some(actor) => {
                    let since = sample
                        .since
                        .map(|since| began(graph, actor, since, sample.time));
                    let thread = self.sampled.threads.entry(actor);
                    let thread =
                        thread.or_insert_with(|| ThreadStacks::with_waits(self.waits_have_stacks));
                    thread.go_on(&self.sampled.stacks, Sample { since, ..sample });
                }
                None => self.sampled.of_nobody += 1,
            }
        }
    }

    /// True if the stacks of a thread before `until` may depend on a sample that is not assigned
    /// yet and is earlier than `deadline`.
    pub(crate) fn is_open(&self, graph: &Graph, actor: ActorId, until: i64, deadline: i64) -> bool {
        let known = self.sampled.threads.get(&actor);
        if known
            .and_then(ThreadStacks::until)
            .is_some_and(|known| known >= until)
        {
            return false;
        }
        let key = graph.actor(actor).map(|actor| actor.key);
        let times = key.and_then(|key| self.times.get(&key));
        times
            .and_then(VecDeque::front)
            .is_some_and(|time| *time < deadline)
    }

    /// True if no stacks were recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sampled.threads.is_empty()
    }

    /// Drops stacks from before a time that is not queried again.
    pub(crate) fn drop_before(&mut self, cut: i64) {
        for thread in self.sampled.threads.values_mut() {
            thread.drop_before(cut);
        }
    }
}

/// The thread of a stack.
fn key(kernels: &Kernels, trace: u32, tid: Option<i64>) -> Option<ThreadKey> {
    let (trace, tid) = (kernels.of(trace)?, i32::try_from(tid?).ok()?);
    Some(ThreadKey { trace, tid })
}

/// Begin of a wait, given an estimate of it (`about`) and the time at which its stack was taken.
/// The stack is taken when the thread returns to its program, a little after the wait ends; the
/// estimated begin is too late by the same amount.
fn began(graph: &Graph, actor: ActorId, about: i64, taken: i64) -> i64 {
    let line = graph.actor(actor).map_or(&[][..], |actor| &actor.line);
    let before = line.partition_point(|stretch| stretch.begin <= about);
    // In between, the thread may have been woken, have run, and have been interrupted.
    let stretches = line
        .get(..before)
        .unwrap_or_default()
        .iter()
        .rev()
        .take(LATER);
    let mut waits = stretches.filter(|stretch| matches!(stretch.state, State::Blocked { .. }));
    let wait = waits.next().map(|wait| wait.begin);
    wait.filter(|begin| begin.abs_diff(about) < about.abs_diff(taken))
        .unwrap_or(about)
}

/// Maximum number of stretches of a thread between the begin of a wait and its estimate. The graph
/// keeps at least as many when it drops earlier ones.
const LATER: usize = 1 + Growing::KEPT_BEFORE;
