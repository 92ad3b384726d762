//! Stacks that were recorded, by the threads of a graph.

use std::collections::HashMap;

use tracebraid_critical_path::{ActorId, Graph, State};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_profile::Samples;

use crate::execution::Whose;
use crate::names::{NameId, Names};
use crate::stacks::{Stacks, ThreadStacks};

/// Stacks that were recorded, by the threads of a graph.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Names of functions.
    pub names: Names,
    /// The stacks.
    pub stacks: Stacks,
    /// Which thread has which of them when.
    pub threads: HashMap<ActorId, ThreadStacks>,
    /// Stacks of threads that the graph does not know.
    pub of_nobody: u64,
}

impl Sampled {
    /// Stacks of those traces; names of functions go on from `names`.
    pub fn new(set: &TraceSet, graph: &Graph, samples: &Samples, names: Names) -> Sampled {
        let whose = Whose::new(set, graph);
        let mut sampled = Sampled {
            names,
            ..Sampled::default()
        };
        let names: Vec<NameId> = samples.names.iter().map(|name| sampled.names.id(name)).collect();
        for sample in &samples.stacks {
            let time = sample.time.0;
            let waited = sample.wait_ns.unwrap_or(0);
            let begin = time.saturating_sub_unsigned(waited);
            let Some(actor) = whose.thread(sample.trace, sample.tid, begin) else {
                sampled.of_nobody += 1;
                continue;
            };
            let functions = sample.functions.iter();
            let functions = functions.filter_map(|&function| names.get(function as usize).copied());
            let stack = sampled.stacks.of(functions);
            let thread = sampled.threads.entry(actor).or_default();
            match sample.wait_ns {
                Some(_) => thread.waited(began(graph, actor, begin, waited), time, stack),
                None => thread.ran(time, stack),
            }
        }
        for thread in sampled.threads.values_mut() {
            thread.settle(&sampled.stacks);
        }
        sampled
    }
}

/// When a wait of that length began, of which is known when about that was. Its stack is taken when the thread goes back to its
/// program, a little after the wait is over: so much later seems the wait to have begun.
fn began(graph: &Graph, actor: ActorId, about: i64, waited: u64) -> i64 {
    let line = graph.actor(actor).map_or(&[][..], |actor| &actor.line);
    let before = line.partition_point(|stretch| stretch.begin <= about);
    // In that time it may have been woken, run, and been interrupted.
    let stretches = line.get(..before).unwrap_or_default().iter().rev().take(LATER);
    let mut waits = stretches.filter(|stretch| matches!(stretch.state, State::Blocked { .. }));
    let wait = waits.next().map(|wait| wait.begin);
    wait.filter(|begin| begin.abs_diff(about) < waited)
        .unwrap_or(about)
}

/// How many stretches of a thread there may be from when it begins to wait to when it seems to.
const LATER: usize = 4;
