//! Recorded traces and their data.

use std::path::PathBuf;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_graph::{Graph, GraphAnalysis};

/// Opens traces.
pub(crate) fn open(paths: &[PathBuf]) -> TraceSet {
    TraceSet::open(paths).expect("the traces can be opened")
}

/// The graph of traces.
pub(crate) fn graph(set: &TraceSet, selection: Selection, options: Options) -> Graph {
    let analysis = GraphAnalysis::new(set, selection);
    let outcome = fold(set, &analysis, options, &Control::default());
    outcome.expect("not cancelled").report
}

/// Nanoseconds to add to a trace's clock to convert its times to the origin.
pub(crate) fn origin(set: &TraceSet, trace: usize) -> i64 {
    let clock = set.traces[trace].layout.class.clocks.first();
    let clock = clock.expect("the trace has a clock");
    clock.offset_seconds * 1_000_000_000 + clock.offset_cycles
}

/// The rows of a file of comma-separated values, without the header.
pub(crate) fn rows(path: &PathBuf) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("the table is there");
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(row).collect()
}
