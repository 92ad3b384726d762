//! The chunk plan: runs of packets of one stream whose sizes add up to a threshold (the hybrid
//! partitioning of Reumont-Locke et al., 2019, section 4.1.3), and, for groups of several streams,
//! slices of time whose packets add up to it.

use std::ops::Range;

use tracebraid_ctf::clock::{ClockConversion, Timestamp};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

/// A stream of a trace set, by indices.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct StreamRef {
    /// Index of the trace.
    pub trace: u32,
    /// Index of the stream in the trace.
    pub stream: u32,
}

impl StreamRef {
    /// All streams of a set.
    pub fn all(set: &TraceSet) -> impl Iterator<Item = StreamRef> + '_ {
        set.traces.iter().enumerate().flat_map(|(trace, content)| {
            (0..content.streams.len()).map(move |stream| StreamRef {
                trace: trace as u32,
                stream: stream as u32,
            })
        })
    }

    /// Looks up the trace and the stream.
    pub fn of(self, set: &TraceSet) -> Option<(&Trace, &Stream)> {
        let trace = set.traces.get(self.trace as usize)?;
        Some((trace, trace.streams.get(self.stream as usize)?))
    }

    /// Number of the stream among those of all traces.
    pub(crate) fn number(self, set: &TraceSet) -> u32 {
        let before = set.traces.iter().take(self.trace as usize);
        let before: usize = before.map(|trace| trace.streams.len()).sum();
        u32::try_from(before).map_or(u32::MAX, |before| before.saturating_add(self.stream))
    }
}

/// A range of packets of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSlice {
    /// Stream that the packets belong to.
    pub stream: StreamRef,
    /// Indices of the packets in the stream.
    pub packets: Range<usize>,
}

/// A unit of work: packets that are folded together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Index in the order of merging.
    pub index: usize,
    /// Index of the group of streams.
    pub group: usize,
    /// Packets to read, by stream.
    pub slices: Vec<StreamSlice>,
    /// Event records before this time do not belong to the chunk. Bounds the chunks of groups of
    /// several streams; with one stream, it excludes only records before the beginning of the fold.
    pub from: Timestamp,
    /// Event records at or after this time do not belong to the chunk. The end of time with one
    /// stream.
    pub until: Timestamp,
    /// Lower bound of the times of the chunk's event records.
    pub earliest: Timestamp,
    /// Size of the packets in bytes.
    pub bytes: u64,
}

/// The chunks of a fold, in the order of merging, with the watermark after each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Chunks, ordered by (earliest time, group, position in the group).
    pub chunks: Vec<Chunk>,
    /// For each chunk: once it is merged, so are all event records before this time.
    pub watermarks: Vec<Timestamp>,
    /// True if the packets of each stream are in time order.
    pub is_in_order: bool,
}

/// Parameters of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Size of packets in bytes at which a chunk is closed; 0 for the default of the streams.
    pub(crate) threshold: u64,
    /// With one stream: chunks hold a multiple of this number of packets, unless they become too
    /// large.
    pub(crate) packets: usize,
    /// Packets that begin at or after this time are skipped.
    pub(crate) until: Timestamp,
    /// Packets that end before this time are skipped, and so are earlier event records of other
    /// packets.
    pub(crate) since: Timestamp,
    /// Groups of one stream are cut into slices of time as well.
    pub(crate) by_time: bool,
}

impl Cut {
    /// Fills in the default threshold for chunks of one stream.
    fn of_one_stream(self) -> Cut {
        let threshold = if self.threshold == 0 {
            ONE_STREAM
        } else {
            self.threshold
        };
        Cut { threshold, ..self }
    }

    /// The threshold of slices of time over several streams. At each boundary, a packet of each
    /// stream is read a second time (half of it on average), so slices are many packets long.
    fn of_streams<'s>(self, streams: impl Iterator<Item = &'s Stream>) -> u64 {
        let packet = |stream: &Stream| stream.bytes() / stream.packets.len().max(1) as u64;
        match self.threshold {
            0 => streams
                .map(packet)
                .sum::<u64>()
                .saturating_mul(SLICE_PACKETS)
                .max(ONE_STREAM),
            threshold => threshold,
        }
    }

    fn is_full(self, packets: usize, bytes: u64) -> bool {
        let too_large = bytes >= self.threshold.saturating_mul(MOST_EXCESS);
        bytes >= self.threshold && packets.is_multiple_of(self.packets.max(1)) || too_large
    }
}

/// Default size of a chunk of one stream, in bytes.
const ONE_STREAM: u64 = 4 << 20;
/// Default length of a slice of time, in packets of each stream.
const SLICE_PACKETS: u64 = 8;
/// Factor by which a chunk may exceed the threshold in order to hold the wanted number of packets.
const MOST_EXCESS: u64 = 4;

/// The beginning of time, also used for streams without a clock and for packets without a begin
/// time.
pub(crate) const DAWN: Timestamp = Timestamp(i64::MIN);
pub(crate) const DUSK: Timestamp = Timestamp(i64::MAX);
/// The latest time of an event. No event is at dusk itself: later clock values are clamped to this.
pub(crate) const LAST: Timestamp = Timestamp(DUSK.0 - 1);

impl Plan {
    /// Cuts the groups into chunks.
    pub(crate) fn new(set: &TraceSet, groups: &[Vec<StreamRef>], cut: Cut) -> Plan {
        let mut chunks = Vec::new();
        for (group, streams) in groups.iter().enumerate() {
            match streams.as_slice() {
                [stream] if !cut.by_time => by_packets(set, group, *stream, cut, &mut chunks),
                streams => by_time(set, group, streams, cut, &mut chunks),
            }
        }
        // The sort is stable: chunks of one group are already in order where their times are equal.
        chunks.sort_by_key(|chunk| (chunk.earliest, chunk.group));
        let mut watermarks = vec![DUSK; chunks.len()];
        let mut earliest = DUSK;
        for (index, chunk) in chunks.iter_mut().enumerate().rev() {
            chunk.index = index;
            watermarks[index] = earliest;
            earliest = earliest.min(chunk.earliest);
        }
        Plan {
            chunks,
            watermarks,
            is_in_order: are_in_order(set, groups),
        }
    }

    /// Total size of the chunks in bytes.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes).sum()
    }
}

/// The times at which a fold of these streams as one group begins its slices of time, in order, with
/// [`Options::by_time`](crate::Options::by_time) and this size of chunks.
pub fn slice_times(set: &TraceSet, streams: Vec<StreamRef>, chunk_bytes: u64) -> Vec<Timestamp> {
    let cut = Cut {
        threshold: chunk_bytes,
        packets: 1,
        until: DUSK,
        since: DAWN,
        by_time: true,
    };
    let plan = Plan::new(set, &[streams], cut);
    plan.chunks.iter().map(|chunk| chunk.from).collect()
}

/// Whether the packets of each stream are in time order.
pub fn are_in_order(set: &TraceSet, groups: &[Vec<StreamRef>]) -> bool {
    let mut streams = groups.iter().flatten().filter_map(|stream| stream.of(set));
    streams.all(|(_, stream)| stream.is_in_order_of_time())
}

/// Begin times of the packets of a stream.
pub(crate) struct Begins<'a> {
    stream: &'a Stream,
    clock: Option<ClockConversion>,
}

impl<'a> Begins<'a> {
    pub(crate) fn new(trace: &Trace, stream: &'a Stream) -> Self {
        Begins {
            stream,
            clock: trace.clock(stream),
        }
    }

    /// True if the begin times of all packets are known, and the reach of all but the last.
    /// Otherwise each slice of time must be searched from the first packet on.
    fn are_known(&self) -> bool {
        let packets = &self.stream.packets;
        let mut reaches = (1..packets.len()).map(|next| self.stream.reach(next - 1));
        self.clock.is_some()
            && packets.iter().all(|packet| packet.begin.is_some())
            && reaches.all(|reach| reach.is_some())
    }

    pub(crate) fn at(&self, packet: usize) -> Timestamp {
        let begin = self
            .stream
            .packets
            .get(packet)
            .and_then(|packet| packet.begin);
        self.clock
            .zip(begin)
            .map_or(DAWN, |(clock, begin)| clock.timestamp(begin).min(LAST))
    }
}

/// Clock conversion starts anew in each packet, so a stream can be cut between any two packets.
fn by_packets(
    set: &TraceSet,
    group: usize,
    stream_ref: StreamRef,
    cut: Cut,
    chunks: &mut Vec<Chunk>,
) {
    let Some((trace, stream)) = stream_ref.of(set) else {
        return;
    };
    let cut = cut.of_one_stream();
    let begins = Begins::new(trace, stream);
    let skipped = first_reaching(trace, stream, cut.since);
    let (mut start, mut bytes, mut earliest) = (skipped, 0u64, DUSK);
    let first = chunks.len();
    let mut close = |packets: Range<usize>, bytes: u64, earliest: Timestamp| {
        if !packets.is_empty() {
            // Only a non-default `from` makes the feed check bounds.
            let reaches_over = earliest < cut.since;
            let slices = vec![StreamSlice {
                stream: stream_ref,
                packets,
            }];
            chunks.push(Chunk {
                index: 0,
                group,
                slices,
                from: if reaches_over { cut.since } else { DAWN },
                until: DUSK,
                earliest: earliest.max(cut.since),
                bytes,
            });
        }
    };
    for (index, packet) in stream.packets.iter().enumerate().skip(skipped) {
        let begin = begins.at(index);
        if begin >= cut.until {
            close(start..index, bytes, earliest);
            (start, bytes, earliest) = (index + 1, 0, DUSK);
            continue;
        }
        bytes += packet.bytes;
        earliest = earliest.min(begin);
        if cut.is_full(index + 1 - start, bytes) {
            close(start..index + 1, bytes, earliest);
            (start, bytes, earliest) = (index + 1, 0, DUSK);
        }
    }
    close(start..stream.packets.len(), bytes, earliest);
    // Packets may begin before earlier ones of their stream; chunks merge in the stream's order.
    let mut after = DUSK;
    for chunk in chunks.get_mut(first..).unwrap_or_default().iter_mut().rev() {
        chunk.earliest = chunk.earliest.min(after);
        after = chunk.earliest;
    }
}

/// Cuts slices of time over several streams. A packet that crosses a boundary belongs to both
/// chunks; each chunk takes the event records within its own bounds.
fn by_time(set: &TraceSet, group: usize, streams: &[StreamRef], cut: Cut, chunks: &mut Vec<Chunk>) {
    let members: Vec<_> = streams
        .iter()
        .filter_map(|&stream_ref| {
            let (trace, stream) = stream_ref.of(set)?;
            Some((stream_ref, stream, Begins::new(trace, stream)))
        })
        .collect();
    let bounds = slice_bounds(&members, cut);
    for bound in bounds.windows(2) {
        let [from, to] = [bound[0], bound[1]];
        let mut bytes = 0;
        let mut slices = Vec::new();
        for (stream_ref, stream, begins) in &members {
            let packets = overlapping(begins, from, to.min(cut.until));
            bytes += stream
                .packets
                .get(packets.clone())
                .unwrap_or_default()
                .iter()
                .map(|p| p.bytes)
                .sum::<u64>();
            slices.push(StreamSlice {
                stream: *stream_ref,
                packets,
            });
        }
        slices.retain(|slice| !slice.packets.is_empty());
        if !slices.is_empty() {
            chunks.push(Chunk {
                index: 0,
                group,
                slices,
                from,
                until: to,
                earliest: from,
                bytes,
            });
        }
    }
}

/// Begin times of the slices, then the end time of the last slice.
fn slice_bounds(members: &[(StreamRef, &Stream, Begins<'_>)], cut: Cut) -> Vec<Timestamp> {
    let divisible = members.iter().all(|(_, _, begins)| begins.are_known());
    let mut begins: Vec<(Timestamp, u64)> = members
        .iter()
        .flat_map(|(_, stream, begins)| {
            stream
                .packets
                .iter()
                .enumerate()
                .map(|(index, packet)| (begins.at(index), packet.bytes))
        })
        .filter(|(begin, _)| *begin < cut.until && *begin >= cut.since)
        .collect();
    begins.sort_unstable();
    let threshold = cut.of_streams(members.iter().map(|(_, stream, _)| *stream));
    let mut bounds = vec![cut.since];
    let mut bytes = 0u64;
    for (begin, packet_bytes) in begins {
        if bytes >= threshold && divisible && Some(&begin) > bounds.last() {
            bounds.push(begin);
            bytes = 0;
        }
        bytes += packet_bytes;
    }
    bounds.push(DUSK);
    bounds
}

/// Packets that can hold event records in `from..to`.
fn overlapping(begins: &Begins<'_>, from: Timestamp, to: Timestamp) -> Range<usize> {
    let count = begins.stream.packets.len();
    let first = first_to_reach(begins.stream, begins.clock, from);
    let last = (first..count)
        .rev()
        .find(|&index| begins.at(index) < to)
        .map_or(first, |index| index + 1);
    first..last
}

/// Index of the first packet of a stream that can hold event records at or after `time`; the number
/// of packets if no packet can.
pub fn first_reaching(trace: &Trace, stream: &Stream, time: Timestamp) -> usize {
    first_to_reach(stream, trace.clock(stream), time)
}

fn first_to_reach(stream: &Stream, clock: Option<ClockConversion>, time: Timestamp) -> usize {
    let count = stream.packets.len();
    let reaches = |&index: &usize| packet_limit(stream, clock, index) >= time;
    (0..count).find(reaches).unwrap_or(count)
}

/// Upper bound of the times in a packet ([`Stream::reach`]). Event records with later times are
/// clamped to this time.
pub(crate) fn packet_limit(
    stream: &Stream,
    clock: Option<ClockConversion>,
    packet: usize,
) -> Timestamp {
    clock
        .zip(stream.reach(packet))
        .map_or(LAST, |(clock, reach)| clock.timestamp(reach).min(LAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_full_with_a_multiple_of_packets_or_when_it_gets_too_large() {
        let cut = |threshold, packets| Cut {
            threshold,
            packets,
            until: DUSK,
            since: DAWN,
            by_time: false,
        };
        assert!(!cut(100, 3).is_full(3, 99));
        assert!(cut(100, 3).is_full(3, 100));
        assert!(!cut(100, 3).is_full(4, 399));
        assert!(cut(100, 3).is_full(6, 399));
        assert!(cut(100, 3).is_full(4, 400));
        assert!(cut(1, 3).is_full(1, 4096), "the number of packets can be 1");
        assert!(cut(100, 1).is_full(1, 100));
        assert!(!cut(u64::MAX, 1).is_full(7, u64::MAX - 1));
    }
}
