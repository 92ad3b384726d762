//! Memory of the analysis: its state is bounded by the numbers of threads, CPUs, connections,
//! requests in progress, futexes and names. The graph itself, which is the result, grows with the
//! event records.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_models::bounds::{at_end, encoded_bytes, repeated};

use crate::GraphAnalysis;
use crate::rules::GraphPartial;

/// Sizes once all slices are composed.
#[derive(Debug)]
struct Sizes {
    threads: usize,
    /// Bytes of the state and the graph.
    all: usize,
    /// Bytes of the state that later event records can refer to or change.
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

/// Drops the graph, except parts to which open waits, requests and segments refer.
fn drop_result(partial: &mut GraphPartial) {
    let machine = &mut partial.machine;
    machine.drop_before(i64::MAX);
    // Part of the result: the threads that had each id, and the segments to which nothing refers.
    machine.held.clear();
    machine.packets.unused.clear();
}

/// Maximum number of bytes for each created thread. They are kept after the thread's end, since
/// paths may lead to it, and are not reused for a thread with the same id. Measured: 120 to 140 for
/// threads that made system calls.
const THREAD: usize = 200;

#[test]
fn state_grows_with_created_threads_only() {
    for (name, times) in [
        ("kernel-ust-requests/kernel", [2, 8]),
        ("kernel-mix-small", [5, 20]),
    ] {
        let directory = tempfile::tempdir().expect("a directory for traces");
        let [few, many] = times.map(|times| sizes(&repeated(name, times, directory.path())));
        let created = many.threads - few.threads;
        assert!(
            many.state < few.state + THREAD * created,
            "{few:?} {many:?}"
        );
        // The graph grows with the event records.
        assert!(many.all > 3 * few.all, "{few:?} {many:?}");
    }
}
