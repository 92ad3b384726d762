//! Time spans of traces.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::scan::{Counts, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::selection::Window;
use std::sync::Arc;

/// The time from the first to the last event record of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Time of the first event record.
    pub first: Timestamp,
    /// Time of the last event record.
    pub last: Timestamp,
}

impl Extent {
    /// Extent of the traces (by index) that `of` selects; `None` if they have no event record with
    /// a time. Reads the beginning of the first packet and all of the last packet of each stream,
    /// and all packets whose heads contain no times.
    pub fn of(set: &TraceSet, of: impl Fn(usize) -> bool) -> Option<Extent> {
        let mut extent: Option<Extent> = None;
        for (_, trace) in set
            .traces
            .iter()
            .enumerate()
            .filter(|(index, _)| of(*index))
        {
            let mut last_records = LastRecords::new(trace);
            for stream in &trace.streams {
                let (Some(first), Some(last)) = (first(trace, stream), last_records.of(stream))
                else {
                    continue;
                };
                let of_stream = Extent { first, last };
                extent = Some(extent.map_or(of_stream, |extent| extent.join(of_stream)));
            }
        }
        extent
    }

    /// Time of the first event record of all traces. Reads only the beginnings of packets.
    pub fn start(set: &TraceSet) -> Option<Timestamp> {
        set.streams()
            .filter_map(|(trace, stream)| first(trace, stream))
            .min()
    }

    /// Time span of the packets of all traces; see [`Extent::covered`].
    pub fn of_packets(set: &TraceSet) -> Option<Extent> {
        set.streams()
            .filter_map(|(trace, stream)| Extent::covered(trace, stream))
            .reduce(Extent::join)
    }

    /// Like [`Extent::of_packets`], but if a stream is one large packet whose head does not contain
    /// its end, the end is guessed from the last bytes. Also returns the guessed ends.
    ///
    /// Finding such an end exactly takes as long as counting the event records. A caller that
    /// counts them anyway can compare the guesses with the counted ends, and count again if a guess
    /// is wrong.
    pub fn of_packets_guessed(set: &TraceSet) -> (Option<Extent>, Vec<GuessedEnd>) {
        let mut guessed = Vec::new();
        let mut extent: Option<Extent> = None;
        for (trace_index, trace) in set.traces.iter().enumerate() {
            for (stream_index, stream) in trace.streams.iter().enumerate() {
                let mut last_records = LastRecords::new(trace);
                let guess = last_records.guess(stream);
                if let Some(last) =
                    guess.and_then(|last| Some(trace.clock(stream)?.timestamp(last)))
                {
                    guessed.push(GuessedEnd {
                        trace: trace_index,
                        stream: stream_index,
                        last,
                    });
                }
                if let Some(of_stream) = covered(trace, stream, last_records, guess) {
                    extent = Some(extent.map_or(of_stream, |extent| extent.join(of_stream)));
                }
            }
        }
        (extent, guessed)
    }

    /// Time span of the packets of a stream. Taken from packet heads; extends to the last event
    /// record if the heads do not contain the end, or contain an end that all later packets
    /// contradict. `None` if the stream has no times.
    pub fn covered(trace: &Trace, stream: &Stream) -> Option<Extent> {
        covered(trace, stream, LastRecords::new(trace), None)
    }

    /// The span from the first event record of both to the last.
    pub fn join(self, other: Extent) -> Extent {
        Extent {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }

    /// The part inside of a window; may be empty.
    pub fn within(self, window: Window) -> (Timestamp, Timestamp) {
        let from = window.from.map_or(self.first, |from| from.max(self.first));
        let to = window.to.map_or(self.last, |to| to.min(self.last));
        (from, to.max(from))
    }
}

/// End of a stream, guessed by [`Extent::of_packets_guessed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuessedEnd {
    /// Index of the trace.
    pub trace: usize,
    /// Index of the stream in the trace.
    pub stream: usize,
    /// Guessed time of the stream's last event record.
    pub last: Timestamp,
}

/// Like [`Extent::covered`]. `known`: clock value of the last event record, in cycles, if it need
/// not be read.
fn covered<'t>(
    trace: &'t Trace,
    stream: &'t Stream,
    mut last_records: LastRecords<'t>,
    known: Option<u64>,
) -> Option<Extent> {
    let clock = trace.clock(stream)?;
    let begins = || stream.packets.iter().filter_map(|packet| packet.begin);
    let ends = stream.packets.iter().filter_map(|packet| packet.end);
    let first = begins().chain(ends).min()?;
    let mut last = begins().chain(last_records.end(stream)).max()?;
    if !gives_its_end(stream) {
        let of_stream = known.or_else(|| last_records.of_stream(stream));
        last = of_stream.map_or(last, |of| of.max(last));
    }
    Some(Extent {
        first: clock.timestamp(first),
        last: clock.timestamp(last),
    })
}

/// Time of the first event record of a stream. Packets may be out of time order and begin long
/// before their first event record, so every packet that begins before the earliest time found may
/// have an earlier record.
fn first(trace: &Trace, stream: &Stream) -> Option<Timestamp> {
    let clock = trace.clock(stream)?;
    let begin = |&index: &usize| stream.packets.get(index).and_then(|packet| packet.begin);
    let mut order: Vec<usize> = (0..stream.packets.len()).collect();
    order.sort_by_key(begin);
    let mut first: Option<Timestamp> = None;
    for index in order {
        let begin = begin(&index).map(|begin| clock.timestamp(begin));
        if first.is_some() && begin >= first {
            break;
        }
        let found = StreamReader::new(trace, stream, index..index + 1, HEAD).peek();
        first = [first, found.flatten()].into_iter().flatten().min();
    }
    first
}

/// True if the packet heads contain the end of the stream. An end equal to the beginning does not
/// count, because the packet has event records.
fn gives_its_end(stream: &Stream) -> bool {
    let mut reaches = (1..stream.packets.len()).map(|next| stream.reach(next - 1));
    let last = stream.packets.last();
    last.is_none_or(|last| last.end > last.begin) && reaches.all(|reach| reach.is_some())
}

/// Enough bytes for the first event record of a packet.
const HEAD: usize = 4096;

/// Time of the last event record of a packet.
pub(crate) fn last_of_packet(trace: &Trace, stream: &Stream, index: usize) -> Option<Timestamp> {
    let clock = trace.clock(stream)?;
    let last = LastRecords::new(trace).packet(stream, index)?;
    Some(clock.timestamp(last))
}

/// Finds the last event records of a trace's streams.
struct LastRecords<'t> {
    trace: &'t Trace,
    /// By stream class, created on demand.
    tables: Vec<Option<(Arc<ScanTable>, Counts)>>,
}

impl<'t> LastRecords<'t> {
    fn new(trace: &'t Trace) -> Self {
        LastRecords {
            trace,
            tables: vec![None; trace.layout.streams.len()],
        }
    }

    /// Time of a packet's last event record, in cycles.
    fn packet(&mut self, stream: &'t Stream, index: usize) -> Option<u64> {
        let (mut scanner, counts) = self.at(stream, index)?;
        let counted = scanner.count(counts, 0..u64::MAX);
        (counted.events > 0).then_some(counted.last)
    }

    /// Time of the last event record of a stream of one large packet that does not contain its end,
    /// in cycles: guessed from the last bytes.
    fn guess(&mut self, stream: &'t Stream) -> Option<u64> {
        if stream.packets.len() != 1 || gives_its_end(stream) {
            return None;
        }
        let (mut scanner, counts) = self.at(stream, 0)?;
        if !scanner.guess_tail() {
            return None;
        }
        let counted = scanner.count(counts, 0..u64::MAX);
        let is_sound = !scanner.take_cut() && scanner.take_damage().is_empty();
        (is_sound && counted.events > 0).then_some(counted.last)
    }

    /// A scanner positioned at a packet, and counters for its event classes.
    fn at(&mut self, stream: &'t Stream, index: usize) -> Option<(Scanner<'t>, &mut Counts)> {
        let layout = self.trace.layout.streams.get(stream.class)?;
        let new = || {
            (
                Arc::new(ScanTable::new(layout, |_| false)),
                Counts::new(layout),
            )
        };
        let (table, counts) = self.tables.get_mut(stream.class)?.get_or_insert_with(new);
        let mut scanner = Scanner::new(self.trace, stream, table.clone(), index..index + 1)?;
        scanner.next_packet()?;
        Some((scanner, counts))
    }

    /// The latest end in packet heads, in cycles. An end that is later than that of the last packet
    /// counts only up to the last event record of its packet: packets may be in another order, or
    /// the end may be wrong.
    fn end(&mut self, stream: &'t Stream) -> Option<u64> {
        let mut latest = stream.packets.last().and_then(|last| last.end);
        let ends = stream.packets.iter().map(|packet| packet.end).enumerate();
        let mut doubtful: Vec<(usize, Option<u64>)> =
            ends.filter(|(_, end)| *end > latest).collect();
        doubtful.sort_by_key(|&(_, end)| std::cmp::Reverse(end));
        for (index, end) in doubtful {
            if end <= latest {
                break;
            }
            latest = latest.max(self.packet(stream, index));
        }
        latest
    }

    fn of(&mut self, stream: &'t Stream) -> Option<Timestamp> {
        let clock = self.trace.clock(stream)?;
        self.of_stream(stream).map(|last| clock.timestamp(last))
    }

    /// Time of the last event record, in cycles. Reads packets from the last one backwards, as long
    /// as a packet may reach beyond the latest time found: packets may overlap in time.
    fn of_stream(&mut self, stream: &'t Stream) -> Option<u64> {
        let mut last: Option<u64> = None;
        for index in (0..stream.packets.len()).rev() {
            let reach = stream.reach(index);
            if last.is_none() || reach.is_none() || reach > last {
                last = last.max(self.packet(stream, index));
            }
        }
        last
    }
}
