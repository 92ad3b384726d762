//! Several analyses in one pass.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;

use crate::analysis::{Analysis, Record, StreamPlace};
use crate::chunk::{Chunk, StreamRef};

/// Two analyses in one pass over a trace; either may be two in turn. Their reports are those that
/// each gives alone, if neither minds events that only the other one wants, nor that the event records
/// of all streams come in the order of time.
#[derive(Debug)]
pub struct Together<A, B>(pub A, pub B);

impl<A: Analysis, B: Analysis> Analysis for Together<A, B> {
    type Partial = (A::Partial, B::Partial);
    type Report = (A::Report, B::Report);

    /// All streams that either reads, in one group.
    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let mut streams = self.0.groups(set).concat();
        for stream in self.1.groups(set).concat() {
            if !streams.contains(&stream) {
                streams.push(stream);
            }
        }
        vec![streams]
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.0.wants(trace, stream_class, class) || self.1.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> Self::Partial {
        (self.0.begin(chunk), self.1.begin(chunk))
    }

    fn packet(&self, partial: &mut Self::Partial, packet: &StreamPlace<'_>) {
        self.0.packet(&mut partial.0, packet);
        self.1.packet(&mut partial.1, packet);
    }

    #[inline]
    fn event(&self, partial: &mut Self::Partial, record: &mut Record<'_>) {
        self.0.event(&mut partial.0, record);
        self.1.event(&mut partial.1, record);
    }

    fn end(&self, partial: &mut Self::Partial, chunk: &Chunk) {
        self.0.end(&mut partial.0, chunk);
        self.1.end(&mut partial.1, chunk);
    }

    fn merge(&self, earlier: &mut Self::Partial, later: Self::Partial) {
        self.0.merge(&mut earlier.0, later.0);
        self.1.merge(&mut earlier.1, later.1);
    }

    fn settle(&self, partial: &mut Self::Partial, watermark: Timestamp) {
        self.0.settle(&mut partial.0, watermark);
        self.1.settle(&mut partial.1, watermark);
    }

    fn finish(&self, partial: Self::Partial) -> Self::Report {
        (self.0.finish(partial.0), self.1.finish(partial.1))
    }
}
