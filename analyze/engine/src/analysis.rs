//! The contract of an analysis.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tracebraid_ctf::bits::Cursor;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;

use crate::chunk::{Chunk, StreamRef};
use crate::feed::Feed;

/// A part of the state that covers one interval of time and can be played on any thread; see
/// [`Analysis::slices`]. Its argument is the resident state of the worker ([`Analysis::exchange`]).
pub type Slice<'a, P> = Box<dyn FnOnce(&mut P) -> Composition<'a, P> + Send + 'a>;

/// Joins the outcome of a played slice to the state of all earlier slices. Its cost depends on the
/// number of threads, files and the like that the slice touches, not on its event records.
pub type Composition<'a, P> = Box<dyn FnOnce(&mut P) + Send + 'a>;

/// An analysis of event records that can be computed in pieces.
///
/// The law: [`fold`](crate::fold) returns the same report, byte for byte, for every number of
/// threads and every chunk size, and the same as a single chunk that holds the whole trace. The law
/// holds if
/// * [`merge`](Analysis::merge) is associative, for chunks in the order of the plan,
/// * partial states hold integers and exact sketches, never sums of floating-point numbers,
/// * a fact that a chunk cannot know at its beginning stays an explicit unknown until the chunk is
///   merged with the earlier ones.
pub trait Analysis: Sync {
    /// The state after some chunks. Serializable, so that it could cross a network.
    type Partial: Send + Serialize + DeserializeOwned;
    /// The result of the analysis.
    type Report;

    /// Groups the streams. Chunks are cut from one group at a time, and the event records of all
    /// streams of a group arrive in time order. One stream per group is the fastest; all streams in
    /// one group give a total order.
    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        StreamRef::all(set).map(|stream| vec![stream]).collect()
    }

    /// Number of packets of a stream that are scanned at once: chunks of one stream hold a multiple
    /// of it.
    fn lanes(&self) -> usize {
        1
    }

    /// Whether event records of this class (by index in its stream class) are wanted.
    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool;

    /// The state at the start of a chunk, where all earlier events are unknown.
    fn begin(&self, chunk: &Chunk) -> Self::Partial;

    /// A packet begins. In groups of several streams, packets arrive in time order too. There,
    /// every chunk that the packet reaches into reports it again, but only the first reports losses
    /// before it.
    fn packet(&self, partial: &mut Self::Partial, packet: &StreamPlace<'_>);

    /// The rest of the packet cannot be decoded: its events after `time`, the time of the last
    /// event record that can be decoded, are lost. Called once, by the chunk that `time` belongs
    /// to.
    fn cut(&self, partial: &mut Self::Partial, packet: &StreamPlace<'_>, time: Timestamp) {
        let _ = (partial, packet, time);
    }

    /// Swaps the sums in a chunk's state with those in the worker's resident state. Called after
    /// [`begin`](Analysis::begin) and again after [`end`](Analysis::end), so that one table of sums
    /// grows with all chunks of a worker and no table has to be merged for each chunk. Resident
    /// states are merged into the state of all chunks before the report is made, in any order:
    /// exchanged sums must not depend on the order of merging.
    fn exchange(&self, partial: &mut Self::Partial, resident: &mut Self::Partial) {
        let _ = (partial, resident);
    }

    /// Adds an event record.
    fn event(&self, partial: &mut Self::Partial, record: &mut Record<'_>);

    /// Folds a whole chunk; the default passes on each packet and event record in order.
    fn chunk(&self, partial: &mut Self::Partial, feed: &mut Feed<'_>) {
        feed.run(self, partial);
    }

    /// The chunk ends.
    fn end(&self, partial: &mut Self::Partial, chunk: &Chunk);

    /// Joins the state of later chunks to that of earlier ones.
    fn merge(&self, earlier: &mut Self::Partial, later: Self::Partial);

    /// All event records before the watermark have been merged into this state. Resolves whatever
    /// waited for them, so that memory stays bounded. Must not change the report.
    fn settle(&self, partial: &mut Self::Partial, watermark: Timestamp) {
        let _ = (partial, watermark);
    }

    /// Like [`settle`](Analysis::settle), for analyses that resolve in parallel: removes from the
    /// state all events before the watermark and returns them as slices of time, which any thread
    /// can play without knowledge of earlier slices. The outcomes are composed with the state in
    /// the order of the slices; by then, later chunks may have been merged into the state.
    fn slices<'a>(
        &'a self,
        partial: &mut Self::Partial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, Self::Partial>> {
        self.settle(partial, watermark);
        Vec::new()
    }

    /// Replaces [`slices`](Analysis::slices) in a fold with one thread: resolves all events before
    /// the watermark directly in `partial`, which is cheaper than playing and composing slices. The
    /// report must be the same. Returns false if the analysis supports only slices.
    fn resolve(&self, partial: &mut Self::Partial, watermark: Timestamp) -> bool {
        let _ = (partial, watermark);
        false
    }

    /// Further slices, for work in several steps where each step needs the result of the previous
    /// one. Called after each composition. Further slices are played in parallel with all others
    /// and composed after all that already exist. All slices are composed before the report is
    /// made.
    fn follow_up<'a>(&'a self, partial: &mut Self::Partial) -> Vec<Slice<'a, Self::Partial>> {
        let _ = partial;
        Vec::new()
    }

    /// Makes the report from the final state.
    fn finish(&self, partial: Self::Partial) -> Self::Report;
}

/// A packet and its position in time.
#[derive(Clone, Copy, Debug)]
pub struct StreamPlace<'a> {
    /// The packet's stream.
    pub stream: StreamRef,
    /// Begin time of the packet ([`Packet::begin`](tracebraid_ctf::stream::Packet::begin)); `None`
    /// if the stream has no clock.
    pub begin: Option<Timestamp>,
    /// End time of the packet, if its head contains it.
    pub end: Option<Timestamp>,
    /// True if event records (or whole packets) were lost between the previous packet and this one,
    /// as far as the packets' counters show.
    pub lost_before: bool,
    /// The packet's head.
    pub head: &'a tracebraid_ctf::packet::PacketHead,
}

/// An event record that the analysis wants.
#[derive(Debug)]
pub struct Record<'a> {
    /// The record's stream.
    pub stream: StreamRef,
    /// Number of the stream among those of all traces.
    pub number: u32,
    /// Index of the event class in its stream class.
    pub class: usize,
    /// Time of the event. Never before the beginning of the packet, nor before an earlier wanted
    /// event record of the packet: a clock that goes back is held at the latest time so far.
    pub time: Timestamp,
    /// Cursor at the body, for [`FieldRef`](tracebraid_ctf::layout::FieldRef)s.
    pub body: Cursor<'a>,
    /// Registers for decoding.
    pub slots: &'a mut [u64],
}
