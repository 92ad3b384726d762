//! From when to when a trace goes.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::scan::{Counts, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::selection::Window;
use std::sync::Arc;

/// The time from a trace's first to its last event record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Time of the first event record.
    pub first: Timestamp,
    /// Time of the last one.
    pub last: Timestamp,
}

impl Extent {
    /// Of the traces (by index) that `of` chooses; `None` if they have no event record with a
    /// time. Reads the first and the last packet of each stream.
    pub fn of(set: &TraceSet, of: impl Fn(usize) -> bool) -> Option<Extent> {
        let mut extent: Option<Extent> = None;
        for (_, trace) in set.traces.iter().enumerate().filter(|(index, _)| of(*index)) {
            let mut ends = Ends::new(trace);
            for stream in &trace.streams {
                let (Some(first), Some(last)) = (ends.first(stream), ends.last(stream)) else {
                    continue;
                };
                let of_stream = Extent { first, last };
                extent = Some(extent.map_or(of_stream, |extent| extent.join(of_stream)));
            }
        }
        extent
    }

    /// From the first event record of both to the last.
    pub fn join(self, other: Extent) -> Extent {
        Extent {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }

    /// The part of it that a window shows; it may be empty.
    pub fn within(self, window: Window) -> (Timestamp, Timestamp) {
        let from = window.from.map_or(self.first, |from| from.max(self.first));
        let to = window.to.map_or(self.last, |to| to.min(self.last));
        (from, to.max(from))
    }
}

/// Finds the ends of a trace's streams.
struct Ends<'t> {
    trace: &'t Trace,
    tables: Vec<(Arc<ScanTable>, Counts)>,
}

impl<'t> Ends<'t> {
    fn new(trace: &'t Trace) -> Self {
        let table = |layout| (Arc::new(ScanTable::new(layout, |_| false)), Counts::new(layout));
        Ends {
            trace,
            tables: trace.layout.streams.iter().map(table).collect(),
        }
    }

    /// Times of the first and the last event record of a packet.
    fn packet(&mut self, stream: &'t Stream, index: usize) -> Option<(Timestamp, Timestamp)> {
        let clock = self.trace.clock(stream)?;
        let (table, counts) = self.tables.get_mut(stream.class)?;
        let mut scanner = Scanner::new(self.trace, stream, table.clone(), index..index + 1)?;
        scanner.next_packet()?;
        let counted = scanner.count(counts, u64::MAX);
        (counted.events > 0).then(|| (clock.timestamp(counted.first), clock.timestamp(counted.last)))
    }

    fn first(&mut self, stream: &'t Stream) -> Option<Timestamp> {
        (0..stream.packets.len())
            .find_map(|index| self.packet(stream, index))
            .map(|(first, _)| first)
    }

    /// From the last packet backwards, as far as packets may reach behind what was found: their
    /// times may overlap.
    fn last(&mut self, stream: &'t Stream) -> Option<Timestamp> {
        let clock = self.trace.clock(stream)?;
        let mut last: Option<Timestamp> = None;
        for index in (0..stream.packets.len()).rev() {
            let end = stream.packets.get(index)?.end.map(|end| clock.timestamp(end));
            if last.is_some() && end.is_none_or(|end| Some(end) <= last) {
                break;
            }
            last = last.max(self.packet(stream, index).map(|(_, last)| last));
        }
        last
    }
}
