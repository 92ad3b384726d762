//! The contract of an analysis.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tracebraid_ctf::bits::Cursor;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;

use crate::chunk::{Chunk, StreamRef};
use crate::feed::Feed;

/// What happened between two watermarks, to be played on any thread; see [`Analysis::slices`]. It
/// is given the worker's resident state ([`Analysis::exchange`]).
pub type Slice<'a, P> = Box<dyn FnOnce(&mut P) -> Composition<'a, P> + Send + 'a>;

/// Joins what a slice contained to the state of all that came before it. Takes a time that depends
/// on the number of threads, files and the like that the slice is about, not on its event records.
pub type Composition<'a, P> = Box<dyn FnOnce(&mut P) + Send + 'a>;

/// An analysis of event records that can be done in pieces.
///
/// The law: [`fold`](crate::fold) gives the same report, byte for byte, for every number of threads
/// and every chunk size, and the same as one chunk that holds everything. It holds if
/// * [`merge`](Analysis::merge) is associative, for chunks in the order of the plan,
/// * partial states hold integers and exact sketches, never sums of floating point numbers,
/// * what a chunk cannot know at its beginning stays an explicit unknown until it is merged with
///   what came before.
pub trait Analysis: Sync {
    /// What is known after some chunks. Serializable, so that it could cross a network.
    type Partial: Send + Serialize + DeserializeOwned;
    /// The answer.
    type Report;

    /// Groups the streams: chunks are cut from one group at a time, and the event records of a
    /// group's streams come in the order of time. One stream a group is the fastest; all streams
    /// in one group give the total order.
    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        StreamRef::all(set).map(|stream| vec![stream]).collect()
    }

    /// Packets of a stream that are scanned at once: chunks of one stream hold a multiple of that.
    fn lanes(&self) -> usize {
        1
    }

    /// Whether event records of that class (by index in its stream class) are wanted.
    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool;

    /// The state before a chunk, in which all that came before is unknown.
    fn begin(&self, chunk: &Chunk) -> Self::Partial;

    /// A packet begins. In groups of several streams this comes in the order of time, too; there,
    /// chunks that a packet reaches into tell of it again, then without losses before it.
    fn packet(&self, partial: &mut Self::Partial, packet: &StreamPlace<'_>);

    /// The rest of the packet cannot be decoded: what happened in it from that time on, that of the
    /// last event record that can be, is lost. Told once, by the chunk to which that time belongs.
    fn cut(&self, partial: &mut Self::Partial, packet: &StreamPlace<'_>, time: Timestamp) {
        let _ = (partial, packet, time);
    }

    /// Exchanges the sums of a chunk's state with those of the worker's resident state: called
    /// after [`begin`](Analysis::begin) and once more after [`end`](Analysis::end), so that one
    /// table of sums grows with all chunks of a worker, and none has to be merged for each chunk.
    /// Resident states are merged into the state of all chunks before the report is made, in any
    /// order: what is exchanged must not depend on the order of merging.
    fn exchange(&self, partial: &mut Self::Partial, resident: &mut Self::Partial) {
        let _ = (partial, resident);
    }

    /// An event record.
    fn event(&self, partial: &mut Self::Partial, record: &mut Record<'_>);

    /// Folds a whole chunk; the default gives each packet and event record in order.
    fn chunk(&self, partial: &mut Self::Partial, feed: &mut Feed<'_>) {
        feed.run(self, partial);
    }

    /// The chunk ends.
    fn end(&self, partial: &mut Self::Partial, chunk: &Chunk);

    /// Joins the state of later chunks to that of earlier ones.
    fn merge(&self, earlier: &mut Self::Partial, later: Self::Partial);

    /// All event records before the watermark have been merged into this state: what waited for
    /// them can be resolved, so that memory stays bounded. Must not change the report.
    fn settle(&self, partial: &mut Self::Partial, watermark: Timestamp) {
        let _ = (partial, watermark);
    }

    /// Like [`settle`](Analysis::settle), for analyses that resolve in parallel: takes out of the
    /// state whatever happened before the watermark, as slices of time that are played on any
    /// thread without knowledge of what came before. What comes of each slice is composed with the
    /// state in the order in which they were taken out; later chunks may have been merged into the
    /// state by then.
    fn slices<'a>(
        &'a self,
        partial: &mut Self::Partial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, Self::Partial>> {
        self.settle(partial, watermark);
        Vec::new()
    }

    /// Replaces [`slices`](Analysis::slices) in a fold with one thread: resolves everything before
    /// the watermark directly in `partial`, which is cheaper than playing slices and composing
    /// them. The report must be the same. Returns false if the analysis supports only slices.
    fn resolve(&self, partial: &mut Self::Partial, watermark: Timestamp) -> bool {
        let _ = (partial, watermark);
        false
    }

    /// Further slices, for work in several steps of which each needs what another one found: asked
    /// for after each composition. They are played beside all others, and composed after those that
    /// were there already. Before the report is made, all of them are.
    fn follow_up<'a>(&'a self, partial: &mut Self::Partial) -> Vec<Slice<'a, Self::Partial>> {
        let _ = partial;
        Vec::new()
    }

    /// Turns the state of everything into the report.
    fn finish(&self, partial: Self::Partial) -> Self::Report;
}

/// Where a packet is.
#[derive(Clone, Copy, Debug)]
pub struct StreamPlace<'a> {
    /// Its stream.
    pub stream: StreamRef,
    /// Time at which it begins ([`Packet::begin`](tracebraid_ctf::stream::Packet::begin)); `None`
    /// if its stream has no clock.
    pub begin: Option<Timestamp>,
    /// Time at which it ends, if its head gives that.
    pub end: Option<Timestamp>,
    /// True if event records (or whole packets) were lost between the packet before and this one,
    /// as far as the packets' counters tell.
    pub lost_before: bool,
    /// Its head.
    pub head: &'a tracebraid_ctf::packet::PacketHead,
}

/// An event record that the analysis wants.
#[derive(Debug)]
pub struct Record<'a> {
    /// Its stream.
    pub stream: StreamRef,
    /// Number of its stream among those of all traces.
    pub number: u32,
    /// Index of its class in its stream class.
    pub class: usize,
    /// When it happened. Never before its packet's beginning, nor before a wanted event record
    /// that comes before it in its packet: clocks that go back are held.
    pub time: Timestamp,
    /// At its body, for [`FieldRef`](tracebraid_ctf::layout::FieldRef)s.
    pub body: Cursor<'a>,
    /// Registers to decode with.
    pub slots: &'a mut [u64],
}
