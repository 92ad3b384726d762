//! An analysis that forwards to another one, and gives tests access to its partial states.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Feed, Record, Slice, StreamPlace, StreamRef};

/// Receives the state of a chunk.
pub(crate) type TakeChunk<'a, P> = &'a (dyn Fn(&P) + Sync);

/// Folds like `analysis`, except for the report and, with `take_chunk`, for merging.
pub(crate) struct Forwarding<'a, A: Analysis, F> {
    pub(crate) analysis: &'a A,
    /// Receives the state of each chunk at the end of the chunk. States are then neither exchanged
    /// nor merged, so each covers exactly its chunk.
    pub(crate) take_chunk: Option<TakeChunk<'a, A::Partial>>,
    /// Makes the report from the merged state.
    pub(crate) finish: F,
}

impl<A: Analysis, R, F: Fn(&A, A::Partial) -> R + Sync> Analysis for Forwarding<'_, A, F> {
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
        if let Some(take) = self.take_chunk {
            take(partial);
        }
    }

    fn exchange(&self, partial: &mut A::Partial, resident: &mut A::Partial) {
        if self.take_chunk.is_none() {
            self.analysis.exchange(partial, resident);
        }
    }

    fn merge(&self, earlier: &mut A::Partial, later: A::Partial) {
        if self.take_chunk.is_none() {
            self.analysis.merge(earlier, later);
        }
    }

    fn slices<'a>(
        &'a self,
        partial: &mut A::Partial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, A::Partial>> {
        match self.take_chunk {
            None => self.analysis.slices(partial, watermark),
            Some(_) => Vec::new(),
        }
    }

    fn follow_up<'a>(&'a self, partial: &mut A::Partial) -> Vec<Slice<'a, A::Partial>> {
        match self.take_chunk {
            None => self.analysis.follow_up(partial),
            Some(_) => Vec::new(),
        }
    }

    fn finish(&self, partial: A::Partial) -> R {
        (self.finish)(self.analysis, partial)
    }
}
