//! Reading the event records of all streams, merged by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::clock::Timestamp;
use crate::damage::Damage;
use crate::reader::stream_reader::StreamReader;
use crate::trace::TraceSet;
use crate::window::WINDOW;

/// Reads the event records of all streams in the order of time.
///
/// Event records with equal times are ordered by the ranks of their traces and streams (see
/// [`crate::order`]), and within a stream by their position. Streams without a clock come first.
#[derive(Debug)]
pub struct MergedReader<'t> {
    readers: Vec<StreamReader<'t>>,
    heap: BinaryHeap<Head>,
    current: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    time: Timestamp,
    rank: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap returns the greatest element first.
        (other.time, other.rank).cmp(&(self.time, self.rank))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Memory for the windows of all streams together, in bytes.
const ALL_WINDOWS: usize = 24 << 20;

impl<'t> MergedReader<'t> {
    /// A reader of all streams of all traces.
    pub fn new(set: &'t TraceSet) -> Self {
        Self::within(set, None, None)
    }

    /// A reader for a range of time. It skips packets that cannot contain event records at or after
    /// `from` and before `until`, and, if there is a limit, streams without a clock. Event records
    /// outside the range may be returned too.
    pub fn within(set: &'t TraceSet, from: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        let mut streams: Vec<_> = set.streams().collect();
        streams.sort_by(|a, b| crate::order::compare(*a, *b));
        let size = (ALL_WINDOWS / streams.len().max(1)).clamp(4096, WINDOW);
        let is_limited = from.is_some() || until.is_some();
        let readers = streams.into_iter().map(|(trace, stream)| {
            let clock = trace.clock(stream);
            let is_left_out = is_limited && clock.is_none();
            let packets = 0..if is_left_out { 0 } else { stream.packets.len() };
            let cycles = |time| Some(clock?.cycles_at(time?));
            let within = cycles(from).unwrap_or(0)..cycles(until).unwrap_or(u64::MAX);
            StreamReader::new(trace, stream, packets, size).limited(within)
        });
        Self::of(readers.collect())
    }

    /// Number of bytes of all streams that have been read.
    pub fn position(&self) -> u64 {
        self.readers.iter().map(StreamReader::position).sum()
    }

    /// Merges readers. Their order is their rank among equal times.
    pub fn of(mut readers: Vec<StreamReader<'t>>) -> Self {
        readers
            .iter_mut()
            .enumerate()
            .for_each(|(rank, reader)| reader.set_rank(rank));
        let heads = readers
            .iter_mut()
            .enumerate()
            .filter_map(|(rank, reader)| head(reader, rank));
        let heap = heads.collect();
        MergedReader {
            readers,
            heap,
            current: None,
        }
    }

    /// Advances to the next event record; `None` at the end. The record is the next event of the
    /// returned reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<(Timestamp, &mut StreamReader<'t>)> {
        if let Some(rank) = self.current.take() {
            let reader = self.readers.get_mut(rank)?;
            reader.advance();
            // Most often the same stream continues, so the heap is accessed only once.
            match (head(reader, rank), self.heap.peek_mut()) {
                (Some(next), Some(mut top)) => *top = next,
                (None, Some(top)) => {
                    std::collections::binary_heap::PeekMut::pop(top);
                }
                _ => {}
            }
        }
        let top = *self.heap.peek()?;
        self.current = Some(top.rank);
        Some((top.time, self.readers.get_mut(top.rank)?))
    }

    /// The reader that [`MergedReader::next`] returned last.
    pub fn current(&mut self) -> Option<&mut StreamReader<'t>> {
        self.readers.get_mut(self.current?)
    }

    /// Returns the damage found since the last call.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        self.readers
            .iter_mut()
            .flat_map(StreamReader::take_damage)
            .collect()
    }
}

fn head(reader: &mut StreamReader<'_>, rank: usize) -> Option<Head> {
    let time = reader.peek()?.unwrap_or(Timestamp(i64::MIN));
    Some(Head { time, rank })
}
