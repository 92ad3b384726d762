//! The size of what an analysis knows once all chunks and slices are merged: it must not depend on the number of event
//! records.

use std::path::Path;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{
    Analysis, Chunk, Control, Feed, Options, Record, Slice, StreamPlace, StreamRef, fold,
};
use tracebraid_testkit::grow::{Target, grow};

/// An analysis whose report is made of the last state by a function.
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

/// Folds a trace in many chunks and slices; `finish` makes the result of the state of all of them.
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

/// Bytes of a state as it would cross a network.
pub fn encoded_bytes(state: &impl Serialize) -> usize {
    postcard::to_allocvec(state)
        .expect("a state can be serialized")
        .len()
}

/// A trace of the tests' data whose activity is repeated that often: the same threads, descriptors and files, with more
/// event records of each. `name` is the path in an archive that has the name of its first directory.
pub fn repeated(name: &str, times: u64, directory: &Path) -> TraceSet {
    let archive = name.split('/').next().unwrap_or(name);
    let source = tracebraid_testkit::recorded::unpacked(archive).join(name);
    let destination = directory.join(times.to_string());
    grow(&source, &destination, Target::Times(times)).expect("the trace can be repeated");
    TraceSet::open(std::slice::from_ref(&destination)).expect("the trace can be opened")
}

/// Both sizes in bytes, if `many`, after four times as many event records as `few`, is not about the same.
pub fn grown(name: &str, few: usize, many: usize) -> Option<String> {
    assert!(few > 100, "{name}: {few} bytes");
    // Numbers take more bytes as sums grow.
    let is_same = many < few + few / 5;
    (!is_same).then(|| format!("{name}: {few} bytes, and {many} after four times as many events"))
}
