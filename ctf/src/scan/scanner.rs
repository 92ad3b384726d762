//! Scans the packets of a stream sequentially.

use std::ops::Range;
use std::sync::Arc;

use super::batch::Batch;
use super::fast::{Fast, ScanPosition};
use super::guess::prefetch;
use super::hit::{Counted, Hit, Progress};
use super::lanes::{LANES, ScanLane};
use super::sink::{CountSink, Counts, HitSink, Sink};
use super::steps::Content;
use super::table::ScanTable;
use super::tail::TAIL;
use crate::bits::{Cursor, DecodeError};
use crate::damage::Damage;
use crate::event::decode_head;
use crate::layout::StreamLayout;
use crate::packet::PacketHead;
use crate::reader::{MOST_HEAD, MOST_RECORD_BYTES, describe};
use crate::source::Source;
use crate::stream::{Packet, Stream};
use crate::trace::Trace;
use crate::window::WINDOW;

/// Largest number of hits that a call returns: few enough to stay in the nearest cache.
const BATCH: usize = 1024;

/// Number of cache lines that contain most heads and first event records.
const HEAD_LINES: usize = 16;

/// Scans packets of a stream sequentially.
#[derive(Debug)]
pub struct Scanner<'t> {
    trace: &'t Trace,
    stream: &'t Stream,
    layout: &'t StreamLayout,
    /// Taken out while it is in use, so that threads that share the table need not update the
    /// reference count.
    table: Option<Arc<ScanTable>>,
    packets: Range<usize>,
    source: Source,
    packet: Option<Packet>,
    head: PacketHead,
    /// Position in the packet, in bits.
    pos: u64,
    clock: u64,
    /// A clock that goes back is reported once for each packet.
    went_back: bool,
    /// The rest of the packet cannot be decoded, and [`Scanner::take_cut`] has not been called
    /// since.
    cut: bool,
    slots: Vec<u64>,
    /// Room for a batch of hits, of which the first `found` are valid.
    hits: Vec<Hit>,
    found: usize,
    /// The packet in the window at the time of the last scan.
    view: View,
    damage: Vec<Damage>,
}

/// The part of a packet that is in a window.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    /// Begin and end in the window.
    from: usize,
    to: usize,
    /// Packet-relative byte offset of `from`.
    base: u64,
    /// Packet-relative position in bits after the last decodable bit.
    end: u64,
}

impl<'t> Scanner<'t> {
    /// A scanner of the packets with these indices. `None` if the stream's class is unknown, which
    /// opening a trace excludes.
    pub fn new(
        trace: &'t Trace,
        stream: &'t Stream,
        table: Arc<ScanTable>,
        packets: Range<usize>,
    ) -> Option<Self> {
        Some(Scanner {
            trace,
            stream,
            layout: trace.layout.streams.get(stream.class)?,
            table: Some(table),
            packets,
            source: Source::default(),
            packet: None,
            head: PacketHead::default(),
            pos: 0,
            clock: 0,
            went_back: false,
            cut: false,
            slots: trace.layout.registers(),
            hits: Vec::new(),
            found: 0,
            view: View::default(),
            damage: Vec::new(),
        })
    }

    /// Indices of the remaining packets.
    pub fn packets(&self) -> Range<usize> {
        self.packets.clone()
    }

    /// A scanner with the same table for other packets of the stream.
    pub fn over(&self, packets: Range<usize>) -> Option<Self> {
        Scanner::new(self.trace, self.stream, self.table.clone()?, packets)
    }

    /// Replaces the remaining packets.
    pub fn go_on_with(&mut self, packets: Range<usize>) {
        self.packets = packets;
    }

    /// Returns the damage found since the last call.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// Records damage of the current packet as a whole.
    pub fn damaged(&mut self, message: &str) {
        if let Some(packet) = self.packet {
            let damage = Damage::at(self.path(&packet), packet.offset, message.to_owned());
            self.damage.push(damage);
        }
    }

    /// The packet that is being scanned: its table entry, or the values of its own head if an index
    /// contained others.
    pub fn packet(&self) -> Option<&Packet> {
        self.packet.as_ref()
    }

    /// The head of the packet that is being scanned.
    pub fn packet_head(&self) -> &PacketHead {
        &self.head
    }

    /// The clock's value at the current position, in cycles.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// True once if the rest of the current packet cannot be decoded.
    pub fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.cut)
    }

    /// Advances to the next packet and returns its table entry; `None` after the last packet.
    pub fn next_packet(&mut self) -> Option<Packet> {
        if let Some(packet) = self.packet.take() {
            let damage = crate::reader::out_of_range(self.trace, self.stream, &packet, self.clock);
            self.damage.extend(damage);
        }
        loop {
            let index = self.packets.next()?;
            let packet = *self.stream.packets.get(index)?;
            self.packet = Some(packet);
            self.prefetch_head(index + LANES, packet.file);
            if self.open(&packet) {
                return self.packet;
            }
        }
    }

    /// Prefetches the head of a packet if the window contains it. The processor's own prefetching
    /// does not find heads, which are far from each other.
    fn prefetch_head(&self, index: usize, file: u32) {
        let packet = self
            .stream
            .packets
            .get(index)
            .filter(|packet| packet.file == file);
        let window = self.source.window();
        let at = packet.and_then(|packet| packet.offset.checked_sub(window.offset()));
        if let Some(head) = at.and_then(|at| window.bytes().get(usize::try_from(at).ok()?..)) {
            (0..HEAD_LINES).for_each(|line| prefetch(head.as_ptr().wrapping_add(line * 64)));
        }
    }

    fn open(&mut self, packet: &Packet) -> bool {
        let mut want = 4096usize;
        loop {
            self.fill(packet, packet.offset, want);
            if self.source.is_missing() {
                return false;
            }
            let (data, base) =
                crate::source::slice(self.source.window(), packet).unwrap_or((&[], 0));
            let have = (base + data.len() as u64) * 8;
            let mut cursor = Cursor {
                data,
                base,
                pos: 0,
                end: have.min(packet.content_bits),
            };
            match PacketHead::decode(&self.trace.layout, &mut cursor, &mut self.slots, 0) {
                Ok(head) => {
                    let (packet, damage) = crate::packets::reconcile_with_head(
                        self.trace,
                        self.stream,
                        *packet,
                        &head,
                    );
                    self.damage.extend(damage);
                    self.packet = Some(packet);
                    self.pos = head.end_of_head;
                    // The clock starts anew in each packet, so packets can be read in any order.
                    self.clock = packet.clock.unwrap_or(0);
                    self.head = head;
                    self.went_back = false;
                    self.cut = false;
                    return true;
                }
                Err(_)
                    if have < packet.content_bits
                        && have / 8 >= want as u64
                        && want < MOST_HEAD =>
                {
                    want *= 8
                }
                Err(error) => {
                    let damage = Damage::at(self.path(packet), packet.offset, error.to_string());
                    self.damage.push(damage.skipping(packet.bytes));
                    return false;
                }
            }
        }
    }

    fn path(&self, packet: &Packet) -> std::path::PathBuf {
        self.stream
            .files
            .get(packet.file as usize)
            .map(|file| file.path.clone())
            .unwrap_or_default()
    }

    fn fill(&mut self, packet: &Packet, from: u64, want: usize) {
        let files = &self.stream.files;
        if let Err(damage) = self.source.fill(files, packet.file, (from, want), WINDOW) {
            self.damage.push(damage);
        }
    }

    /// Continues scanning the current packet. The hits are then available from [`Scanner::hits`].
    pub fn scan(&mut self) -> Progress {
        self.scan_up_to(BATCH)
    }

    /// Like [`Scanner::scan`], for at most `most` hits. A caller that alternates between scanners
    /// touches less memory in between if `most` is small.
    pub fn scan_up_to(&mut self, most: usize) -> Progress {
        let most = most.clamp(1, BATCH);
        let mut hits = std::mem::take(&mut self.hits);
        hits.resize(BATCH, Hit::default());
        let mut sink = HitSink {
            hits: hits.get_mut(..most).unwrap_or_default(),
            count: 0,
        };
        let progress = self.run(&mut sink);
        self.found = sink.count.min(most);
        self.view = self.view();
        self.hits = hits;
        progress
    }

    /// The hits of the last [`Scanner::scan`].
    pub fn hits(&self) -> &[Hit] {
        self.hits.get(..self.found).unwrap_or_default()
    }

    /// Counts the event records of the current packet by class into `counts`, up to the first
    /// record whose clock value is not in the range `within`. An end of `u64::MAX` means no limit.
    /// To continue from that record, call again with a range that contains it.
    pub fn count(&mut self, counts: &mut Counts, within: Range<u64>) -> Counted {
        let mut sink = CountSink::new(counts, within);
        let mut progress = Progress::More;
        while progress == Progress::More && sink.refused.is_none() {
            progress = self.run(&mut sink);
        }
        sink.counted(self.clock, progress == Progress::PacketEnd)
    }

    /// Counts in the current packets of several scanners of a stream at once, each up to its limit,
    /// until a scanner must stop and needs [`Scanner::count_next`]. Returns the number of event
    /// records counted in each packet, and the index of the scanner that stopped.
    pub fn count_together(
        mut scanners: [&mut Scanner<'t>; LANES],
        counts: &mut Counts,
        limits: [u64; LANES],
    ) -> ([u64; LANES], usize) {
        let Some(table) = scanners
            .first_mut()
            .and_then(|scanner| scanner.table.take())
        else {
            return ([0; LANES], 0);
        };
        let counted = match &table.fast {
            Some(fast) => count_lanes(&mut scanners, fast, counts, limits),
            None => ([0; LANES], 0),
        };
        if let Some(scanner) = scanners.first_mut() {
            scanner.table = Some(table);
        }
        counted
    }

    /// The available content of the current packet, and its byte offset in the packet.
    fn content(&self) -> (&[u8], u64) {
        let packet = self.packet.unwrap_or(EMPTY);
        let (data, base) = crate::source::slice(self.source.window(), &packet).unwrap_or((&[], 0));
        let end = (packet.content_bits / 8)
            .saturating_sub(base)
            .min(data.len() as u64) as usize;
        (data.get(..end).unwrap_or(data), base)
    }

    /// Position of the next event record in the available content, if it begins at a byte boundary.
    fn place(&self) -> Option<ScanPosition> {
        let align = u64::from(self.layout.event_align.max(1));
        let pos = self.pos.checked_next_multiple_of(align)?;
        let at = (pos / 8).checked_sub(self.content().1)?;
        pos.is_multiple_of(8)
            .then(|| ScanPosition::new(at as usize, self.clock))
    }

    /// Continues from where the fast path stopped, given where it began and its content.
    fn go_to(&mut self, start: ScanPosition, stop: ScanPosition, base: u64) {
        self.clock = stop.clock;
        if stop.at != start.at {
            let exact = stop
                .last
                .and_then(|last| self.end_of((base + last as u64) * 8));
            self.pos = exact.unwrap_or((base + stop.at as u64) * 8);
        }
    }

    /// End of the event record at a position, without the padding before the next record. Messages
    /// name this position.
    fn end_of(&mut self, start: u64) -> Option<u64> {
        let packet = self.packet?;
        let (data, base) = crate::source::slice(self.source.window(), &packet)?;
        let mut cursor = Cursor {
            data,
            base,
            pos: start,
            end: ((base + data.len() as u64) * 8).min(packet.content_bits),
        };
        decode(self.layout, &mut cursor, &mut self.slots, 0).ok()?;
        Some(cursor.pos)
    }

    /// Counts an event record of the current packet, if its clock value is in the range `within`,
    /// and all later records in the range if too few bytes are left for lanes; or reads more of the
    /// packet.
    pub fn count_next(&mut self, counts: &mut Counts, within: Range<u64>) -> Counted {
        let mut sink = CountSink::new(counts, within);
        let progress = match self.packet {
            Some(packet) if self.low(&packet) => {
                self.fill(&packet, packet.offset + (self.pos >> 3), WINDOW);
                Progress::More
            }
            Some(packet) => {
                let table = self.table.take();
                let progress = match &table {
                    Some(table) if !self.count_next_fast(table, &mut sink) => {
                        self.run_general(&packet, table, &mut sink, 1)
                    }
                    Some(_) => Progress::More,
                    None => Progress::PacketEnd,
                };
                self.table = table;
                progress
            }
            None => Progress::PacketEnd,
        };
        let done = self
            .packet
            .is_none_or(|packet| self.pos >= packet.content_bits);
        sink.counted(self.clock, done || progress == Progress::PacketEnd)
    }

    /// Counts an event record with the tables, and all later records if too few bytes are left for
    /// lanes. False if the first record must take the general path.
    fn count_next_fast(&mut self, table: &ScanTable, sink: &mut CountSink<'_>) -> bool {
        let (Some(fast), Some(start)) = (&table.fast, self.place()) else {
            return false;
        };
        let (data, base) = self.content();
        let content = Content { data, base };
        let mut stop = sink.count_checked(fast, content, start, 1);
        if stop.at == start.at {
            return false;
        }
        if content.data.len() < stop.at.saturating_add(fast.reach()) {
            stop = sink.count_checked(fast, content, stop, u64::MAX);
        }
        self.go_to(start, stop, base);
        true
    }

    /// Moves to an offset near the end of the current packet at which an event record seems to
    /// begin. False if the packet is too small, or no such offset is found; see `scan/tail.rs`.
    pub fn guess_tail(&mut self) -> bool {
        let (Some(packet), Some(table)) = (self.packet, self.table.take()) else {
            return false;
        };
        let place = table.fast.as_ref().and_then(|fast| {
            let end = packet.content_bits / 8;
            let from = end
                .checked_sub(TAIL as u64)
                .filter(|from| *from > self.pos / 8)?;
            self.fill(&packet, packet.offset + from, TAIL);
            let (data, base) = self.content();
            let skipped = usize::try_from(from.checked_sub(base)?).ok()?;
            let content = Content {
                data: data.get(skipped..)?,
                base: from,
            };
            let place = fast.guess_place(content, self.clock)?;
            Some((from + place.at as u64) * 8)
        });
        self.table = Some(table);
        match place {
            Some(place) => self.pos = place,
            // The window may no longer contain the bytes at the unchanged position.
            None => self.fill(&packet, packet.offset + (self.pos >> 3), WINDOW),
        }
        place.is_some()
    }

    /// Reads the whole current packet into memory, for measurements without I/O.
    pub fn preload(&mut self) {
        let Some(packet) = self.packet else { return };
        let from = packet.offset + (self.pos >> 3);
        self.fill(&packet, from, packet.bytes as usize);
    }

    /// The hits of the last scan, with the bytes that they refer to.
    #[inline(always)]
    pub fn batch(&mut self) -> Batch<'_> {
        let View {
            from,
            to,
            base,
            end,
        } = self.view;
        let cursor = Cursor {
            data: self
                .source
                .window()
                .bytes()
                .get(from..to)
                .unwrap_or_default(),
            base,
            pos: 0,
            end,
        };
        Batch {
            hits: self.hits.get(..self.found).unwrap_or_default(),
            layout: self.layout,
            cursor,
            slots: &mut self.slots,
        }
    }

    fn view(&self) -> View {
        let packet = self.packet.unwrap_or(EMPTY);
        let (data, base) = crate::source::slice(self.source.window(), &packet).unwrap_or((&[], 0));
        let from = packet.offset.saturating_sub(self.source.window().offset()) as usize;
        View {
            from,
            to: from + data.len(),
            base,
            end: ((base + data.len() as u64) * 8).min(packet.content_bits),
        }
    }

    #[inline(always)]
    fn run<S: Sink>(&mut self, sink: &mut S) -> Progress {
        let Some(packet) = self.packet else {
            return Progress::PacketEnd;
        };
        if self.pos >= packet.content_bits {
            return Progress::PacketEnd;
        }
        // More is read when less than this is left at the end of a window.
        let (data, base) = crate::source::slice(self.source.window(), &packet).unwrap_or((&[], 0));
        let have = (base + data.len() as u64) * 8;
        if have < packet.content_bits && have.saturating_sub(self.pos) < LOW {
            self.fill(&packet, packet.offset + (self.pos >> 3), WINDOW);
        }
        let Some(table) = self.table.take() else {
            return Progress::PacketEnd;
        };
        let progress = match &table.fast {
            Some(fast) => self.run_fast(&packet, fast, &table, sink),
            None => self.run_general(&packet, &table, sink, u64::MAX),
        };
        self.table = Some(table);
        progress
    }

    /// Takes the fast path as far as possible through the available bytes, and the general path in
    /// between.
    #[inline(always)]
    fn run_fast<S: Sink>(
        &mut self,
        packet: &Packet,
        fast: &Fast,
        table: &ScanTable,
        sink: &mut S,
    ) -> Progress {
        loop {
            if let Some(start) = self.place() {
                let (data, base) = self.content();
                let stop = sink.run_fast(fast, Content { data, base }, start);
                self.go_to(start, stop, base);
            }
            if sink.is_full() {
                return Progress::More;
            }
            if self.pos >= packet.content_bits {
                return Progress::PacketEnd;
            }
            // A single unusual record, or a record that extends past the window.
            match self.run_general(packet, table, sink, 1) {
                Progress::More if !sink.must_stop_for_window(self.low(packet)) => {}
                progress => return progress,
            }
        }
    }

    /// True if little is left of the window, but not of the packet.
    #[inline(always)]
    fn low(&self, packet: &Packet) -> bool {
        let have = self.source.window().end();
        let at = packet.offset + (self.pos >> 3);
        have < packet.offset + packet.content_bits / 8 && have.saturating_sub(at) < LOW / 8
    }

    /// Takes the general path for at most `most` records.
    fn run_general<S: Sink>(
        &mut self,
        packet: &Packet,
        table: &ScanTable,
        sink: &mut S,
        records: u64,
    ) -> Progress {
        for _ in 0..records {
            if self.pos >= packet.content_bits {
                return Progress::PacketEnd;
            }
            if sink.is_full() {
                return Progress::More;
            }
            let (data, base) =
                crate::source::slice(self.source.window(), packet).unwrap_or((&[], self.pos >> 3));
            let have = (base + data.len() as u64) * 8;
            let end = have.min(packet.content_bits);
            let mut cursor = Cursor {
                data,
                base,
                pos: self.pos,
                end,
            };
            match decode(self.layout, &mut cursor, &mut self.slots, self.clock) {
                Ok((_, clock)) if sink.refuses(clock) => return Progress::More,
                Ok((class, clock)) if cursor.pos > self.pos => {
                    if clock < self.clock && !std::mem::replace(&mut self.went_back, true) {
                        let message = crate::reader::went_back(self.clock, clock);
                        let offset = packet.offset + (self.pos >> 3);
                        self.damage
                            .push(Damage::at(self.path(packet), offset, message));
                    }
                    self.clock = clock;
                    let start = std::mem::replace(&mut self.pos, cursor.pos);
                    let chosen = table.chosen.get(class).copied().unwrap_or(false);
                    sink.general(class, chosen, start, self.clock);
                }
                Err(error)
                    if have < packet.content_bits && error.may_go_on(packet.content_bits) =>
                {
                    if sink.has_hits() {
                        // The bytes of the hits must stay available until the hits have been
                        // processed.
                        return Progress::More;
                    }
                    let from = packet.offset + (self.pos >> 3);
                    let had = (packet.offset + have / 8).saturating_sub(from) as usize;
                    if had as u64 >= MOST_RECORD_BYTES {
                        return self.give_up(packet, DecodeError::TooLarge { at: self.pos });
                    }
                    self.fill(packet, from, (had * 2).max(WINDOW));
                    let now = self.source.window().end();
                    if now.saturating_sub(from) as usize <= had {
                        return self.give_up(packet, error);
                    }
                }
                Ok(_) => {
                    return self.give_up(
                        packet,
                        DecodeError::Length {
                            at: self.pos,
                            length: 0,
                        },
                    );
                }
                Err(error) => return self.give_up(packet, error),
            }
        }
        Progress::More
    }

    #[cold]
    fn give_up(&mut self, packet: &Packet, error: DecodeError) -> Progress {
        let at = self.pos.min(packet.content_bits) >> 3;
        let skipped = (packet.content_bits >> 3).saturating_sub(at);
        let damage =
            Damage::at(self.path(packet), packet.offset + at, describe(error)).skipping(skipped);
        self.damage.push(damage);
        self.cut = true;
        self.pos = packet.content_bits;
        Progress::PacketEnd
    }
}

/// [`Scanner::count_together`], with the table.
fn count_lanes(
    scanners: &mut [&mut Scanner<'_>; LANES],
    fast: &Fast,
    counts: &mut Counts,
    limits: [u64; LANES],
) -> ([u64; LANES], usize) {
    let mut starts = [ScanPosition::new(0, 0); LANES];
    for (index, (start, scanner)) in starts.iter_mut().zip(&*scanners).enumerate() {
        match scanner.place() {
            Some(place) => *start = place,
            None => return ([0; LANES], index),
        }
    }
    let mut limit = limits.into_iter();
    let lanes = scanners.each_ref().map(|scanner| {
        let (data, base) = scanner.content();
        let limit = limit.next().unwrap_or(0);
        ScanLane { data, base, limit }
    });
    let bases = lanes.map(|lane| lane.base);
    let mut places = starts;
    let counted = fast.count_lanes(lanes, &mut places, &mut counts.by_id);
    for (((scanner, start), place), base) in scanners.iter_mut().zip(starts).zip(places).zip(bases)
    {
        scanner.go_to(start, place, base);
    }
    counted
}

const LOW: u64 = 4096 * 8;

const EMPTY: Packet = Packet {
    file: 0,
    offset: 0,
    bytes: 0,
    content_bits: 0,
    clock: None,
    begin: None,
    end: None,
    discarded: None,
    sequence: None,
    is_misplaced: false,
};

#[inline(always)]
fn decode(
    layout: &StreamLayout,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    clock: u64,
) -> Result<(usize, u64), DecodeError> {
    let head = decode_head(layout, cursor, slots, clock)?;
    if let Some(event) = layout.events.get(head.class) {
        event.body.run(cursor, slots)?;
    }
    Ok((head.class, head.clock))
}
