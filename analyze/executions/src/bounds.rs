//! Memory while executions are built is bounded by the number of threads, connections and
//! executions in progress, not by the number of event records or ended executions.

use std::convert::Infallible;
use std::sync::PoisonError;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Control;
use tracebraid_graph::Graph;
use tracebraid_language::executions::Definitions;
use tracebraid_models::bounds::{at_end, encoded_bytes, grown, repeated};
use tracebraid_profile::Samples;

use crate::build::{BuildRules, Finished, Sink, Union, streaming};

/// The kinds of definitions that keep state: calls, and a period whose metrics are counted.
const DEFINITIONS: [&str; 3] = [
    "call read",
    "call recv*",
    "period request : app:request_begin : app:request_end && id == $begin.id",
];

#[derive(Default)]
struct Count(usize);

impl Sink for Count {
    type Error = Infallible;

    fn take(&mut self, _: &Graph, _: Finished) -> Result<(), Infallible> {
        self.0 += 1;
        Ok(())
    }
}

/// Sizes after all executions have been made.
#[derive(Debug)]
struct Sizes {
    executions: usize,
    /// Bytes of the state of all merged chunks.
    partial: usize,
    /// Lengths of the debug output of the graph, the turns and the time series in `Known`, which
    /// cannot be serialized, after all droppable state has been dropped.
    known: [usize; 3],
}

fn sizes(set: &TraceSet) -> Sizes {
    let mut definitions = Definitions::default();
    for text in DEFINITIONS {
        definitions.add(text).expect("a definition");
    }
    let rules = BuildRules {
        definitions,
        behind_ns: BuildRules::BEHIND_NS / 100,
        interval_bytes: 200_000,
        ..BuildRules::default()
    };
    let (mut count, control) = (Count::default(), Control::default());
    let (samples, union) = (Samples::default(), Union::default());
    let streaming = streaming(set, &rules, &samples, union, &control, &mut count).expect("a plan");
    let partial = at_end(set, &streaming, |streaming, mut partial| {
        streaming.complete(&mut partial);
        encoded_bytes(&partial)
    });
    let known = streaming.known.into_inner();
    let mut known = known.unwrap_or_else(PoisonError::into_inner);
    known.drop_before(i64::MAX);
    let known = [
        format!("{:?}", known.growing).len(),
        format!("{:?}", known.turns).len(),
        format!("{:?}", known.series).len(),
    ];
    Sizes {
        executions: count.0,
        partial,
        known,
    }
}

#[test]
fn state_does_not_grow_with_event_records() {
    let directory = tempfile::tempdir().expect("a directory for traces");
    let [few, many] =
        [2, 8].map(|times| sizes(&repeated("kernel-ust-requests", times, directory.path())));
    assert!(few.executions > 5000 && many.executions > 3 * few.executions);
    assert_eq!(grown("partial state", few.partial, many.partial), None);
    for (few, many) in few.known.into_iter().zip(many.known) {
        assert!(many < few + few / 5 + 100, "{few} {many}");
    }
}
