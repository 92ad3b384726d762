//! Feeding a chunk to an analysis: one stream directly, several streams merged by time.

use std::ops::Range;
use std::sync::Arc;

use tracebraid_ctf::clock::{ClockConversion, Timestamp};
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::analysis::{Analysis, Record, StreamPlace};
use crate::chunk::{Chunk, DAWN, DUSK, LAST, StreamRef, packet_limit};

/// Scan tables of all stream classes, by trace and stream class.
pub(crate) struct Tables(Vec<Vec<Arc<ScanTable>>>);

impl Tables {
    pub(crate) fn new<A: Analysis + ?Sized>(set: &TraceSet, analysis: &A) -> Self {
        let table = |(trace, content): (usize, &Trace)| {
            let layouts = content.layout.streams.iter().enumerate();
            layouts
                .map(|(stream, layout)| {
                    Arc::new(ScanTable::new(layout, |class| {
                        analysis.wants(trace, stream, class)
                    }))
                })
                .collect()
        };
        Tables(set.traces.iter().enumerate().map(table).collect())
    }

    pub(crate) fn of(&self, trace: u32, stream_class: usize) -> Option<Arc<ScanTable>> {
        self.0.get(trace as usize)?.get(stream_class).cloned()
    }
}

/// The packets and event records of a chunk.
pub struct Feed<'t> {
    set: &'t TraceSet,
    chunk: &'t Chunk,
    lanes: Vec<StreamPart<'t>>,
    damage: Vec<Damage>,
}

/// A stream's part of a chunk.
pub struct StreamPart<'t> {
    /// The stream.
    pub stream: StreamRef,
    /// See [`Record::number`].
    number: u32,
    content: &'t Stream,
    /// Clock of the stream; `None` without one.
    pub clock: Option<ClockConversion>,
    /// Scanner over the stream's packets in the chunk.
    pub scanner: Scanner<'t>,
    /// Index of the next hit in the scanner's batch.
    at: usize,
    more: bool,
    /// Lower bound of the times of the next event records in this packet.
    floor: Timestamp,
    /// See [`packet_limit`]: later times are clamped to this, so that an event record falls into
    /// the same chunk wherever chunks are cut.
    limit: Timestamp,
    /// A time in the packet exceeded the limit.
    is_past: bool,
    /// `Some` until the packet is reported: whether events were lost before it.
    packet: Option<bool>,
    /// The rest of the packet cannot be decoded, which has not been reported yet.
    is_cut: bool,
}

/// The packets of a stream in a chunk, and lanes that each take the next packet when they finish
/// one.
pub struct Shared<'t> {
    packets: Range<usize>,
    /// The lanes.
    pub lanes: Vec<StreamPart<'t>>,
    /// Damage with the index of its packet.
    damage: Vec<(usize, Damage)>,
}

impl Shared<'_> {
    /// Assigns to `lane` the next unread packet that may hold event records with clock values in
    /// `within`; false if all packets have been assigned.
    pub fn next_packet(&mut self, lane: usize, within: &Range<u64>) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else {
            return false;
        };
        loop {
            let read = lane.scanner.packets().start;
            let damage = lane.scanner.take_damage();
            self.damage
                .extend(damage.into_iter().map(|damage| (read, damage)));
            let may_hold =
                |&packet: &usize| lane.content.may_hold(packet, within.start, within.end);
            let Some(packet) = self.packets.find(may_hold) else {
                return false;
            };
            lane.scanner.go_on_with(packet..packet + 1);
            if lane.next_packet().is_some() {
                return true;
            }
        }
    }
}

impl<'t> Feed<'t> {
    pub(crate) fn new(set: &'t TraceSet, chunk: &'t Chunk, tables: &Tables) -> Self {
        let lane = |slice: &crate::chunk::StreamSlice| {
            let (trace, content) = slice.stream.of(set)?;
            let table = tables.of(slice.stream.trace, content.class)?;
            let scanner = Scanner::new(trace, content, table, slice.packets.clone())?;
            let place = (slice.stream, slice.stream.number(set));
            Some(StreamPart::new(
                place,
                content,
                trace.clock(content),
                scanner,
            ))
        };
        Feed {
            set,
            chunk,
            lanes: chunk.slices.iter().filter_map(lane).collect(),
            damage: Vec::new(),
        }
    }

    /// The chunk that is fed.
    pub fn chunk(&self) -> &'t Chunk {
        self.chunk
    }

    /// The traces of the chunk.
    pub fn set(&self) -> &'t TraceSet {
        self.set
    }

    /// For analyses that scan several packets at once: the packets of each stream, with `lanes`
    /// lanes to read them. Damage is returned with [`Feed::give_back`].
    pub fn share(&mut self, lanes: usize) -> Vec<Shared<'t>> {
        let whole = std::mem::take(&mut self.lanes);
        whole.into_iter().map(|lane| lane.share(lanes)).collect()
    }

    /// Collects the damage that the lanes found.
    pub fn give_back(&mut self, mut shared: Shared<'t>) {
        // Which lane reads a packet depends on packet sizes; the order of the stream does not.
        shared.damage.sort_by_key(|&(packet, _)| packet);
        self.damage
            .extend(shared.damage.into_iter().map(|(_, damage)| damage));
    }

    pub(crate) fn take_damage(&mut self) -> Vec<Damage> {
        self.lanes.iter_mut().for_each(StreamPart::end_packet);
        let mut damage = std::mem::take(&mut self.damage);
        damage.extend(
            self.lanes
                .iter_mut()
                .flat_map(|lane| lane.scanner.take_damage()),
        );
        damage
    }

    /// Passes all packets and event records to the analysis.
    pub fn run<A: Analysis + ?Sized>(&mut self, analysis: &A, partial: &mut A::Partial) {
        // A chunk of several streams may have packets of only one of them; its bounds apply all the
        // same.
        let bounded = self.chunk.from > DAWN || self.chunk.until < DUSK;
        match self.lanes.as_mut_slice() {
            [lane] if !bounded => lane.run(analysis, partial),
            _ => self.run_merged(analysis, partial),
        }
    }

    /// Feeds by time, and at equal times in the order of the streams in the chunk. A packet is
    /// reported at its begin time. Losses before a packet belong to the chunk that this time
    /// belongs to.
    fn run_merged<A: Analysis + ?Sized>(&mut self, analysis: &A, partial: &mut A::Partial) {
        let (from, until) = (self.chunk.from, self.chunk.until);
        let heads = self.lanes.iter_mut().enumerate();
        let mut order: Vec<Turn> = heads.map(|(index, lane)| (lane.head(), index)).collect();
        order.sort_unstable();
        while let Some(&(head, index)) = order.first()
            && head < DUSK
            && let Some(lane) = self.lanes.get_mut(index)
        {
            // Event records of one stream often follow each other: only the next turn of the other
            // streams matters until it is reached.
            let bound = order.get(1).map_or(AT_END, |&next| next.min(AT_END));
            let head = lane.give_until(analysis, partial, (index, bound), &(from..until));
            queue((head, index), &mut order);
        }
    }
}

/// Time of the next item of a lane, and the index of the lane: at equal times the earlier lane goes
/// first.
type Turn = (Timestamp, usize);

/// Event records scanned at a time in a stream that is merged with others. The records of all
/// streams are consumed before the next batch, so their bytes should still be in the L1 cache.
const FEW: usize = 64;

/// A turn after all others.
const AT_END: Turn = (DUSK, 0);

/// Moves the first turn to its sorted position. Few streams are busy at a time, so it seldom moves
/// far from the front.
#[inline(always)]
fn queue(turn: Turn, order: &mut [Turn]) {
    let mut at = 0;
    while let Some(&next) = order.get(at + 1)
        && next < turn
    {
        order[at] = next;
        at += 1;
    }
    order[at] = turn;
}

impl<'t> StreamPart<'t> {
    fn new(
        (stream, number): (StreamRef, u32),
        content: &'t Stream,
        clock: Option<ClockConversion>,
        scanner: Scanner<'t>,
    ) -> Self {
        StreamPart {
            stream,
            number,
            content,
            clock,
            scanner,
            at: 0,
            more: false,
            floor: DAWN,
            limit: DUSK,
            is_past: false,
            packet: None,
            is_cut: false,
        }
    }

    /// Splits this part, none of which was read yet, into several lanes that share its packets.
    fn share(self, lanes: usize) -> Shared<'t> {
        let lane = |_| {
            let scanner = self.scanner.over(0..0)?;
            let place = (self.stream, self.number);
            Some(StreamPart::new(place, self.content, self.clock, scanner))
        };
        Shared {
            packets: self.scanner.packets(),
            lanes: (0..lanes).filter_map(lane).collect(),
            damage: Vec::new(),
        }
    }

    /// Moves to the next packet and returns it; `None` after the last one.
    pub fn next_packet(&mut self) -> Option<StreamPlace<'_>> {
        self.end_packet();
        self.scanner.next_packet()?;
        // The scanner skips packets with damaged heads, so the index comes from its position.
        let index = self.scanner.packets().start - 1;
        self.floor = self.times().0.unwrap_or(DAWN);
        self.limit = packet_limit(self.content, self.clock, index);
        // Damage that is found only by reading is not included: a chunk that begins after the
        // damaged packet does not see it. The chunk that reads the damaged packet reports it.
        let lost_before = self.content.lost_before(index);
        self.packet = Some(lost_before);
        Some(self.place(lost_before))
    }

    /// Position of the current packet.
    fn place(&self, lost_before: bool) -> StreamPlace<'_> {
        let (begin, end) = self.times();
        StreamPlace {
            stream: self.stream,
            begin,
            end,
            lost_before,
            head: self.scanner.packet_head(),
        }
    }

    /// Begin and end time of the current packet.
    fn times(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let packet = self.scanner.packet();
        let time = |cycles| self.time(cycles).map(|time| time.min(LAST));
        (
            time(packet.and_then(|packet| packet.begin)),
            time(packet.and_then(|packet| packet.end)),
        )
    }

    /// Records damage found while reading the packet.
    fn end_packet(&mut self) {
        if std::mem::take(&mut self.is_past) {
            let message = "timestamps run past the end of the packet; clamped to its end";
            self.scanner.damaged(message);
        }
    }

    /// Converts a clock value of this stream to a time.
    pub fn time(&self, cycles: Option<u64>) -> Option<Timestamp> {
        self.clock
            .zip(cycles)
            .map(|(clock, cycles)| clock.timestamp(cycles))
    }

    fn run<A: Analysis + ?Sized>(&mut self, analysis: &A, partial: &mut A::Partial) {
        while let Some(place) = self.next_packet() {
            analysis.packet(partial, &place);
            loop {
                let progress = self.scanner.scan();
                let (stream, number, clock, limit) =
                    (self.stream, self.number, self.clock, self.limit);
                let (mut floor, mut is_past) = (self.floor, self.is_past);
                self.scanner.batch().for_each(|class, cycles, body, slots| {
                    // Clocks that go back are held.
                    let time = clock.map_or(DAWN, |clock| clock.timestamp(cycles));
                    is_past |= time > limit;
                    floor = floor.max(time.min(limit));
                    analysis.event(
                        partial,
                        &mut Record {
                            stream,
                            number,
                            class,
                            time: floor,
                            body,
                            slots,
                        },
                    );
                });
                (self.floor, self.is_past) = (floor, is_past);
                if progress == Progress::PacketEnd {
                    break;
                }
            }
            if self.ends_early() {
                self.give_cut(analysis, partial, &(DAWN..DUSK));
            }
        }
    }

    #[inline(always)]
    fn hit_time(&mut self) -> Option<Timestamp> {
        let hit = self.scanner.hits().get(self.at)?;
        let time = self.clock.map_or(DAWN, |clock| clock.timestamp(hit.clock));
        // Clocks that go back are held.
        self.floor = self.floor.max(time.min(self.limit));
        Some(self.floor)
    }

    /// Time of the next item: the beginning of an unreported packet, a cut, or a hit.
    fn peek(&mut self) -> Option<Timestamp> {
        loop {
            if self.packet.is_some() || self.is_cut {
                return Some(self.floor);
            }
            if self.at < self.scanner.hits().len() {
                return self.hit_time();
            }
            if self.more {
                self.more = self.scanner.scan_up_to(FEW) == Progress::More;
                self.at = 0;
            } else if !self.ends_early() {
                self.next_packet()?;
                // The current hits are those of the previous packet.
                (self.more, self.at) = (true, usize::MAX);
            }
        }
    }

    /// Time of the next item; [`DUSK`] at the end.
    #[inline(always)]
    fn head(&mut self) -> Timestamp {
        if self.packet.is_none()
            && let Some(time) = self.hit_time()
        {
            return time.min(LAST);
        }
        self.peek().map_or(DUSK, |time| time.min(LAST))
    }

    /// Passes on the items that belong to `range`, until the next turn would be at or after the
    /// bound; returns the time of the next item.
    #[inline(always)]
    fn give_until<A: Analysis + ?Sized>(
        &mut self,
        analysis: &A,
        partial: &mut A::Partial,
        (index, bound): (usize, Turn),
        range: &Range<Timestamp>,
    ) -> Timestamp {
        loop {
            let head = self.head();
            if (head, index) >= bound {
                return head;
            }
            match self.packet.take() {
                Some(lost_before) => self.give_packet(analysis, partial, lost_before, range),
                None if self.is_cut => self.give_cut(analysis, partial, range),
                None => self.give_hits(analysis, partial, (index, bound), range),
            }
        }
    }

    /// Reports a packet at its begin time.
    fn give_packet<A: Analysis + ?Sized>(
        &self,
        analysis: &A,
        partial: &mut A::Partial,
        lost_before: bool,
        range: &Range<Timestamp>,
    ) {
        if self.floor.min(LAST) < range.end {
            let lost_before = lost_before && range.contains(&self.floor.min(LAST).min(self.limit));
            analysis.packet(partial, &self.place(lost_before));
        }
    }

    /// True once for a packet that was scanned up to the point where its rest cannot be decoded.
    fn ends_early(&mut self) -> bool {
        if self.scanner.take_cut() {
            // Unwanted event records may be later than the last wanted one.
            let last = self.time(Some(self.scanner.clock())).unwrap_or(DAWN);
            self.floor = self.floor.max(last.min(self.limit));
            self.is_cut = true;
        }
        self.is_cut
    }

    /// Reports that the rest of the packet is lost, at the time of its last event record.
    #[cold]
    fn give_cut<A: Analysis + ?Sized>(
        &mut self,
        analysis: &A,
        partial: &mut A::Partial,
        range: &Range<Timestamp>,
    ) {
        self.is_cut = false;
        let time = self.floor.min(LAST);
        if range.contains(&time.min(self.limit)) {
            analysis.cut(partial, &self.place(false), time);
        }
    }

    /// Passes on event records of the current batch.
    #[inline(always)]
    fn give_hits<A: Analysis + ?Sized>(
        &mut self,
        analysis: &A,
        partial: &mut A::Partial,
        (index, bound): (usize, Turn),
        range: &Range<Timestamp>,
    ) {
        let (stream, number, clock, limit) = (self.stream, self.number, self.clock, self.limit);
        let mut batch = self.scanner.batch();
        for hit in batch.hits().get(self.at..).unwrap_or_default() {
            // Clocks that go back are held.
            let time = clock.map_or(DAWN, |clock| clock.timestamp(hit.clock));
            self.is_past |= time > limit;
            self.floor = self.floor.max(time.min(limit));
            let time = self.floor.min(LAST);
            if (time, index) >= bound {
                return;
            }
            self.at += 1;
            if range.contains(&time.min(limit)) {
                let (class, body, slots) = batch.record(hit);
                analysis.event(
                    partial,
                    &mut Record {
                        stream,
                        number,
                        class,
                        time,
                        body,
                        slots,
                    },
                );
            }
        }
    }
}
