//! The size of the state of an analysis once all chunks and slices are merged: it must not depend on the number of event
//! records.

use std::path::Path;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{
    Analysis, Chunk, Control, Feed, Options, Record, Slice, StreamPlace, StreamRef, fold,
};
use tracebraid_testkit::grow::{Target, grow};

/// An analysis with its report replaced by `finish`, so that tests see the merged state.
struct AtEnd<'a, A, F> {
    analysis: &'a A,
    finish: F,
}

impl<A: Analysis, R, F: Fn(&A, A::Partial) -> R + Sync> Analysis for AtEnd<'_, A, F> {
    type Partial = A::Partial;
    type Report = R;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.analysis.groups(set)
    }

    fn lanes(&self) -> usize {
        self.analysis.lanes()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.analysis.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> A::Partial {
        self.analysis.begin(chunk)
    }

    fn packet(&self, partial: &mut A::Partial, packet: &StreamPlace<'_>) {
        self.analysis.packet(partial, packet);
    }

    fn cut(&self, partial: &mut A::Partial, packet: &StreamPlace<'_>, time: Timestamp) {
        self.analysis.cut(partial, packet, time);
    }

    fn event(&self, partial: &mut A::Partial, record: &mut Record<'_>) {
        self.analysis.event(partial, record);
    }

    fn chunk(&self, partial: &mut A::Partial, feed: &mut Feed<'_>) {
        self.analysis.chunk(partial, feed);
    }

    fn end(&self, partial: &mut A::Partial, chunk: &Chunk) {
        self.analysis.end(partial, chunk);
    }

    fn exchange(&self, partial: &mut A::Partial, resident: &mut A::Partial) {
        self.analysis.exchange(partial, resident);
    }

    fn merge(&self, earlier: &mut A::Partial, later: A::Partial) {
        self.analysis.merge(earlier, later);
    }

    fn slices<'a>(&'a self, partial: &mut A::Partial, watermark: Timestamp) -> Vec<Slice<'a, A::Partial>> {
        self.analysis.slices(partial, watermark)
    }

    fn follow_up<'a>(&'a self, partial: &mut A::Partial) -> Vec<Slice<'a, A::Partial>> {
        self.analysis.follow_up(partial)
    }

    fn finish(&self, partial: A::Partial) -> R {
        (self.finish)(self.analysis, partial)
    }
}

/// Folds a trace in small chunks and slices (200 kB), and returns the result of `finish` for the merged state.
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
    let at_end = AtEnd { analysis, finish };
    let folded = fold(set, &at_end, options, &Control::default());
    folded.expect("the fold is not cancelled").report
}

/// Bytes of a state in its serialized form (postcard).
pub fn encoded_bytes(state: &impl Serialize) -> usize {
    postcard::to_allocvec(state)
        .expect("a state can be serialized")
        .len()
}

/// A test trace repeated `times` times in `directory`: the same threads, descriptors and files, with more event records of
/// each. `name` is a path in the archive named by its first component.
pub fn repeated(name: &str, times: u64, directory: &Path) -> TraceSet {
    let archive = name.split('/').next().unwrap_or(name);
    let source = tracebraid_testkit::recorded::unpacked(archive).join(name);
    let destination = directory.join(times.to_string());
    grow(&source, &destination, Target::Times(times)).expect("the trace can be repeated");
    TraceSet::open(std::slice::from_ref(&destination)).expect("the trace can be opened")
}

/// A message if `many`, the bytes after four times the event records of `few`, exceeds `few` by a fifth or more.
pub fn grown(name: &str, few: usize, many: usize) -> Option<String> {
    assert!(few > 100, "{name}: {few} bytes");
    // The tolerance is for larger sums: integers have a variable length.
    let is_same = many < few + few / 5;
    (!is_same).then(|| format!("{name}: {few} bytes, and {many} after four times as many events"))
}
