//! The state of the graph is bounded by its keys: threads, CPUs, connections, requests in progress, futexes, names. The
//! graph itself, which is the result, grows with the event records.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_models::bounds::{at_end, encoded_bytes, repeated};

use crate::GraphAnalysis;
use crate::rules::GraphPartial;

/// Sizes once all slices are composed.
#[derive(Debug)]
struct Sizes {
    threads: usize,
    /// Bytes of all that is kept.
    all: usize,
    /// Bytes of what later event records can refer to or change.
    state: usize,
}

fn sizes(set: &TraceSet) -> Sizes {
    let analysis = GraphAnalysis::new(set, Selection::default());
    at_end(set, &analysis, |analysis, mut partial| {
        partial.machine.catch_up(&analysis.rules().classes);
        let all = encoded_bytes(&partial);
        drop_result(&mut partial);
        Sizes {
            threads: partial.machine.lines.len(),
            all,
            state: encoded_bytes(&partial),
        }
    })
}

/// Drops the graph, but for what waits, requests and segments that go on refer to.
fn drop_result(partial: &mut GraphPartial) {
    let machine = &mut partial.machine;
    machine.drop_before(i64::MAX);
    // Both number the graph: who had an id when, and which of its segments are none.
    machine.held.clear();
    machine.packets.unused.clear();
}

/// Bytes for a thread that was created, to which paths may lead after its end: it is another one than those that had its id
/// before. (Of a thread that made calls, 120 to 140.)
const THREAD: usize = 200;

#[test]
fn the_state_grows_with_created_threads_only() {
    for (name, times) in [
        ("kernel-ust-requests/kernel", [2, 8]),
        ("kernel-mix-small", [5, 20]),
    ] {
        let directory = tempfile::tempdir().expect("a directory for traces");
        let [few, many] = times.map(|times| sizes(&repeated(name, times, directory.path())));
        println!("{few:?} {many:?}");
        let created = many.threads - few.threads;
        assert!(many.state < few.state + THREAD * created, "{few:?} {many:?}");
        // The graph grows with the event records.
        assert!(many.all > 3 * few.all, "{few:?} {many:?}");
    }
}
