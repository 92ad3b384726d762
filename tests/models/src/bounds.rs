//! The size of the state of an analysis once all chunks and slices are merged: it must not depend
//! on the number of event records.

use std::path::Path;

use serde::Serialize;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_testkit::grow::{Target, grow};

use crate::forwarding::Forwarding;

/// Folds a trace in small chunks and slices (200 kB), and returns the result of `finish` for the
/// merged state.
pub fn at_end<A: Analysis, R>(
    set: &TraceSet,
    analysis: &A,
    finish: impl Fn(&A, A::Partial) -> R + Sync,
) -> R {
    let options = Options {
        threads: 1,
        chunk_bytes: 200_000,
        slice_bytes: 200_000,
        ..Options::default()
    };
    let forwarding = Forwarding {
        analysis,
        take_chunk: None,
        finish,
    };
    let folded = fold(set, &forwarding, options, &Control::default());
    folded.expect("the fold is not cancelled").report
}

/// Bytes of a state in its serialized form (postcard).
pub fn encoded_bytes(state: &impl Serialize) -> usize {
    postcard::to_allocvec(state)
        .expect("a state can be serialized")
        .len()
}

/// A test trace repeated `times` times in `directory`: the same threads, descriptors and files,
/// with more event records of each. `name` is a path in the archive named by its first component.
pub fn repeated(name: &str, times: u64, directory: &Path) -> TraceSet {
    let archive = name.split('/').next().unwrap_or(name);
    let source = tracebraid_testkit::recorded::unpacked(archive).join(name);
    let destination = directory.join(times.to_string());
    grow(&source, &destination, Target::Times(times)).expect("the trace can be repeated");
    TraceSet::open(std::slice::from_ref(&destination)).expect("the trace can be opened")
}

/// A message if `many`, the bytes after four times the event records of `few`, exceeds `few` by a
/// fifth or more.
pub fn grown(name: &str, few: usize, many: usize) -> Option<String> {
    assert!(few > 100, "{name}: {few} bytes");
    // The tolerance is for larger sums: integers have a variable length.
    let is_same = many < few + few / 5;
    (!is_same).then(|| format!("{name}: {few} bytes, and {many} after four times as many events"))
}
