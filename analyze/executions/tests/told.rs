//! Test data of threads and stacks, and trees with names.

use std::collections::{BTreeMap, HashMap};

use tracebraid_executions::{Builder, Ecct, FrameKind, Names, Stacks, ThreadStacks};
use tracebraid_follow::ThreadKey;
use tracebraid_graph::{Actor, ActorId, Graph, State, Stretch};

/// Names of the frames of a context, the outermost first.
pub(crate) type Words = Vec<(FrameKind, String)>;

/// A sample: time, begin of the wait if it is of a wait, and functions, the outermost first.
pub(crate) type Sample = (i64, Option<i64>, Vec<String>);

pub(crate) fn words(frames: &[(FrameKind, &str)]) -> Words {
    frames
        .iter()
        .map(|(kind, name)| (*kind, (*name).to_owned()))
        .collect()
}

pub(crate) fn functions(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

pub(crate) fn actor(tid: i32, name: &str, line: &[(i64, State)]) -> Actor {
    Actor {
        key: ThreadKey { trace: 0, tid },
        name: Some(name.to_owned()),
        line: line
            .iter()
            .map(|&(begin, state)| Stretch { begin, state })
            .collect(),
        ..Actor::default()
    }
}

/// The tree of a thread's execution in a window of time.
pub(crate) fn tree(
    graph: &Graph,
    samples: &[Vec<Sample>],
    execution: (ActorId, i64, i64),
) -> BTreeMap<Words, u64> {
    let mut names = Names::default();
    let mut stacks = Stacks::default();
    let mut threads: HashMap<ActorId, ThreadStacks> = HashMap::new();
    for (actor, samples) in (0..).map(ActorId).zip(samples) {
        let thread = threads.entry(actor).or_default();
        for (time, since, functions) in samples {
            let stack = stacks.of(functions
                .iter()
                .map(|name| names.id(name))
                .collect::<Vec<_>>());
            match since {
                Some(since) => thread.waited(*since, *time, stack),
                None => thread.ran(*time, stack),
            }
        }
        thread.settle(&stacks);
    }
    let (actor, begin, end) = execution;
    let path = graph.path(actor, begin, end);
    let mut builder = Builder::new(graph, &stacks, &threads, names);
    let ecct: Ecct = builder.ecct(&path);
    assert_eq!(ecct.total(), begin.abs_diff(end), "{path:?}");
    assert!(ecct.times.is_sorted() && ecct.times.iter().all(|(_, time)| *time > 0));
    let in_words = |(context, time): &(_, u64)| {
        let frames = builder.contexts.frames(*context);
        let frame = |frame: &tracebraid_executions::Frame| {
            (frame.kind, builder.names.text(frame.name).to_owned())
        };
        (frames.iter().map(frame).collect(), *time)
    };
    ecct.times.iter().map(in_words).collect()
}
