//! Reads the event records of a stream sequentially.

use std::ops::Range;

use crate::bits::{Cursor, DecodeError, MOST_RECORD_BYTES};
use crate::clock::{ClockConversion, OUT_OF_RANGE, Timestamp};
use crate::damage::Damage;
use crate::event::{Event, EventHead, decode_head};
use crate::layout::StreamLayout;
use crate::packet::PacketHead;
use crate::packets;
use crate::source::{Source, slice};
use crate::stream::{Packet, Stream};
use crate::trace::Trace;
use crate::walk::{Silent, Visitor, walk};
use crate::window::WINDOW;

/// Reads the event records of a range of packets of a stream, in order.
///
/// Damage never stops the reader: it is recorded, and valid data after it is read.
#[derive(Debug)]
pub struct StreamReader<'t> {
    trace: &'t Trace,
    stream: &'t Stream,
    layout: &'t StreamLayout,
    conversion: Option<ClockConversion>,
    packets: Range<usize>,
    /// Packets that cannot contain event records with these clock values are skipped; an end of
    /// `u64::MAX` means no limit.
    within: Range<u64>,
    source: Source,
    window_size: usize,
    /// The packet that is being read.
    packet: Option<Packet>,
    head: PacketHead,
    /// Position in the packet, in bits.
    pos: u64,
    clock: u64,
    /// The clock has gone back in this packet.
    went_back: bool,
    slots: Vec<u64>,
    /// The next event record: its start, body, end and head.
    next: Option<Found>,
    /// The bytes of the packet's header and context.
    head_bytes: Vec<u8>,
    /// Number of packets that have been begun.
    begun: u64,
    rank: usize,
    damage: Vec<Damage>,
}

/// Largest head of a packet that is decoded, in bytes.
pub(crate) const MOST_HEAD: usize = 1 << 24;

#[derive(Clone, Copy, Debug)]
struct Found {
    start: u64,
    body: u64,
    head: EventHead,
}

impl<'t> StreamReader<'t> {
    /// A reader of the packets with these indices.
    pub fn new(
        trace: &'t Trace,
        stream: &'t Stream,
        packets: Range<usize>,
        window_size: usize,
    ) -> Self {
        // Opening a trace checks that every stream has a data stream class.
        static NONE: std::sync::OnceLock<StreamLayout> = std::sync::OnceLock::new();
        let layout = trace
            .layout
            .streams
            .get(stream.class)
            .unwrap_or_else(|| NONE.get_or_init(StreamLayout::empty));
        StreamReader {
            trace,
            stream,
            layout,
            conversion: trace.clock(stream),
            packets,
            within: 0..u64::MAX,
            source: Source::default(),
            window_size,
            packet: None,
            head: PacketHead::default(),
            pos: 0,
            clock: 0,
            went_back: false,
            slots: trace.layout.registers(),
            next: None,
            head_bytes: Vec::new(),
            begun: 0,
            rank: 0,
            damage: Vec::new(),
        }
    }

    /// Skips packets that cannot contain event records with clock values in this range, in cycles.
    /// An end of `u64::MAX` means no limit.
    pub(super) fn limited(self, within: Range<u64>) -> Self {
        StreamReader { within, ..self }
    }

    /// Sets the rank among streams, which orders event records with equal times.
    pub(super) fn set_rank(&mut self, rank: usize) {
        self.rank = rank;
    }

    /// Rank among the readers of a [`MergedReader`](crate::reader::MergedReader); dense from 0.
    #[inline(always)]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of packets that have been begun. Changes whenever [`StreamReader::packet`] does.
    #[inline(always)]
    pub fn packets_begun(&self) -> u64 {
        self.begun
    }

    /// Number of bytes of the packets that have been read.
    pub fn position(&self) -> u64 {
        let begun = self
            .stream
            .packets
            .get(..self.packets.start)
            .unwrap_or_default();
        let begun: u64 = begun.iter().map(|packet| packet.bytes).sum();
        let rest = self
            .packet
            .map_or(0, |packet| packet.bytes.saturating_sub(self.pos >> 3));
        begun.saturating_sub(rest)
    }

    /// Walks over the context of the packet that contains the next event record.
    ///
    /// # Errors
    /// Never for a packet from which event records are read.
    pub fn walk_packet_context<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), DecodeError> {
        let mut cursor = Cursor::new(&self.head_bytes);
        if let Some(header) = self.trace.layout.packet_header.root() {
            walk(header, &mut cursor, &mut self.slots, &mut Silent)?;
        }
        match self.layout.packet_context.root() {
            Some(context) => walk(context, &mut cursor, &mut self.slots, visitor),
            None => Ok(()),
        }
    }

    /// The stream that is read.
    pub fn stream(&self) -> &'t Stream {
        self.stream
    }

    /// The trace of the stream.
    pub fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// The packet that contains the next event record.
    pub fn packet(&self) -> Option<&Packet> {
        self.packet.as_ref()
    }

    /// The head of the packet that contains the next event record.
    pub fn packet_head(&self) -> &PacketHead {
        &self.head
    }

    /// Returns the damage found since the last call.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// Time of the next event record; `None` at the end. `Some(None)` for a stream without a clock.
    #[inline]
    pub fn peek(&mut self) -> Option<Option<Timestamp>> {
        if self.next.is_none() {
            self.find();
        }
        let clock = self.next.as_ref()?.head.clock;
        Some(
            self.conversion
                .map(|conversion| conversion.timestamp(clock)),
        )
    }

    /// The next event record. It remains the next until [`StreamReader::advance`] is called.
    #[inline]
    pub fn event(&mut self) -> Option<Event<'_>> {
        if self.next.is_none() {
            self.find();
        }
        let found = self.next.as_ref()?;
        let packet = self.packet.as_ref()?;
        let (data, base) = slice(self.source.window(), packet)?;
        let end = (base + data.len() as u64)
            .saturating_mul(8)
            .min(packet.content_bits);
        let cursor = Cursor {
            data,
            base,
            pos: found.start,
            end,
        };
        Some(Event {
            stream: self.layout,
            class: self.layout.events.get(found.head.class)?,
            class_index: found.head.class,
            clock: found.head.clock,
            start: cursor,
            body: Cursor {
                pos: found.body,
                ..cursor
            },
            slots: &mut self.slots,
        })
    }

    /// Skips the next event record.
    #[inline]
    pub fn advance(&mut self) {
        if let Some(found) = &self.next {
            self.clock = found.head.clock;
            self.next = None;
        }
    }

    /// Finds the next event record; `next` is `None` at the end.
    fn find(&mut self) {
        loop {
            let Some(packet) = &self.packet else {
                if self.open_packet().is_none() {
                    return;
                }
                continue;
            };
            if self.pos >= packet.content_bits {
                let damage = out_of_range(self.trace, self.stream, packet, self.clock);
                self.damage.extend(damage);
                self.packet = None;
                continue;
            }
            match self.decode() {
                Ok(()) if !self.is_past() => return,
                // The clock can only advance from here.
                Ok(()) => (self.packet, self.next) = (None, None),
                Err(error) => self.give_up(error),
            }
        }
    }

    /// Whether the rest of the packet is after the selected range.
    #[inline(always)]
    fn is_past(&self) -> bool {
        let clock = self.next.as_ref().map_or(0, |next| next.head.clock);
        clock >= self.within.end && self.within.end < u64::MAX && !self.layout.has_full_timestamps
    }

    /// Decodes the event record at the position; reads more of the file if necessary.
    #[inline(always)]
    fn decode(&mut self) -> Result<(), DecodeError> {
        loop {
            let Some(packet) = &self.packet else {
                return Ok(());
            };
            let (data, base) = slice(self.source.window(), packet).unwrap_or((&[], self.pos >> 3));
            let have = (base + data.len() as u64).saturating_mul(8);
            let content = packet.content_bits;
            let mut cursor = Cursor {
                data,
                base,
                pos: self.pos,
                end: have.min(content),
            };
            let result = decode_event(self.layout, &mut cursor, &mut self.slots, self.clock);
            match result {
                Ok((found, _)) if cursor.pos == self.pos => {
                    return Err(DecodeError::Length {
                        at: found.start,
                        length: 0,
                    });
                }
                Ok((found, end)) => {
                    if found.head.clock < self.clock && !self.went_back {
                        self.tell_step_back(found.head.clock);
                    }
                    self.pos = end;
                    self.next = Some(found);
                    return Ok(());
                }
                Err(error) if have < content && error.may_go_on(content) => match self.more() {
                    More::Bytes => {}
                    More::None => return Err(error),
                    More::TooMany => return Err(DecodeError::TooLarge { at: self.pos }),
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes more bytes after the position available.
    fn more(&mut self) -> More {
        let Some(packet) = &self.packet else {
            return More::None;
        };
        let from = packet.offset.saturating_add(self.pos >> 3);
        let had = self.source.window().end().saturating_sub(from);
        if had >= MOST_RECORD_BYTES {
            return More::TooMany;
        }
        // Doubles the size each time, so that a long record is decoded only a few times.
        self.fill(from, (had as usize).saturating_mul(2).max(64));
        if self.source.window().end().saturating_sub(from) > had {
            More::Bytes
        } else {
            More::None
        }
    }

    fn fill(&mut self, from: u64, want: usize) {
        let Some(packet) = self.packet else { return };
        let size = self.window_size.max(want);
        let files = &self.stream.files;
        if let Err(damage) = self.source.fill(files, packet.file, (from, want), size) {
            self.damage.push(damage);
        }
    }

    fn open_packet(&mut self) -> Option<()> {
        let (stream, within) = (self.stream, &self.within);
        let may_hold = |&index: &usize| stream.may_hold(index, within.start, within.end);
        let index = self.packets.find(may_hold)?;
        let packet = *self.stream.packets.get(index)?;
        self.packet = Some(packet);
        self.pos = 0;
        let mut want = 256;
        loop {
            self.fill(packet.offset, want);
            if self.source.is_missing() {
                self.packet = None;
                return Some(());
            }
            let (data, base) = slice(self.source.window(), &packet).unwrap_or((&[], 0));
            let have = data.len() as u64;
            let end = (have * 8).min(packet.content_bits);
            let mut cursor = Cursor {
                data,
                base,
                pos: 0,
                end,
            };
            match PacketHead::decode(&self.trace.layout, &mut cursor, &mut self.slots, 0) {
                Ok(head) => {
                    let bytes = head.end_of_head.div_ceil(8) as usize;
                    self.head_bytes.clear();
                    self.head_bytes
                        .extend_from_slice(data.get(..bytes).unwrap_or(data));
                    let packet = self.checked(packet, &head);
                    self.packet = Some(packet);
                    self.pos = head.end_of_head;
                    // The clock starts anew in each packet, so packets can be read in any order.
                    self.clock = packet.clock.unwrap_or(0);
                    self.went_back = false;
                    self.begun += 1;
                    self.head = head;
                    return Some(());
                }
                Err(_)
                    if have * 8 < packet.content_bits
                        && have >= want as u64
                        && want < MOST_HEAD =>
                {
                    want *= 8
                }
                Err(error) => {
                    let path = self.path(&packet);
                    self.damage.push(
                        Damage::at(path, packet.offset, error.to_string()).skipping(packet.bytes),
                    );
                    self.packet = None;
                    return Some(());
                }
            }
        }
    }

    fn found(&mut self) -> Option<Found> {
        self.peek()?;
        self.next
    }

    /// Corrects the packet by its own head if the index differs.
    fn checked(&mut self, packet: Packet, head: &PacketHead) -> Packet {
        let (packet, damage) = packets::reconcile_with_head(self.trace, self.stream, packet, head);
        self.damage.extend(damage);
        packet
    }

    fn path(&self, packet: &Packet) -> std::path::PathBuf {
        self.stream
            .files
            .get(packet.file as usize)
            .map(|file| file.path.clone())
            .unwrap_or_default()
    }

    /// Reports, once for each packet, that the clock goes back at the position.
    #[cold]
    fn tell_step_back(&mut self, clock: u64) {
        self.went_back = true;
        let Some(packet) = &self.packet else { return };
        let damage = Damage::at(
            self.path(packet),
            packet.offset.saturating_add(self.pos >> 3),
            went_back(self.clock, clock),
        );
        self.damage.push(damage);
    }

    /// Reports that the rest of the packet cannot be decoded: without the length of an event
    /// record, the begin of the next record is unknown.
    fn give_up(&mut self, error: DecodeError) {
        let Some(packet) = self.packet.take() else {
            return;
        };
        let at = self.pos.min(packet.content_bits) >> 3;
        let skipped = (packet.content_bits >> 3).saturating_sub(at);
        let message = describe(error);
        self.damage
            .push(Damage::at(self.path(&packet), packet.offset + at, message).skipping(skipped));
    }
}

/// Message for a packet whose event records reach a time out of range, unless it was reported when
/// the trace was opened. Called once for each packet, at its end: the clock does not go back.
pub(crate) fn out_of_range(
    trace: &Trace,
    stream: &Stream,
    packet: &Packet,
    clock: u64,
) -> Option<Damage> {
    let file = stream.files.get(packet.file as usize)?;
    let is_new = !file.is_out_of_range && trace.clock(stream)?.is_out_of_range(clock);
    let message = format!("the time of the packet's last event record {OUT_OF_RANGE}");
    is_new.then(|| Damage::at(&file.path, packet.offset, message))
}

/// Result of requesting more bytes.
enum More {
    Bytes,
    None,
    TooMany,
}

/// Size in bits of the content of a packet whose head does not contain it: up to the end of the
/// last event record that begins before the last nonzero byte, which is the current `content_bits`.
/// `None` if the packet cannot be decoded up to there.
pub(crate) fn written_content(trace: &Trace, stream: &Stream, index: usize) -> Option<u64> {
    let packet = *stream.packets.get(index)?;
    let whole = Packet {
        content_bits: packet.bytes.checked_mul(8)?,
        ..packet
    };
    let probe = Stream {
        packets: vec![whole],
        ..stream.clone()
    };
    let mut reader = StreamReader::new(trace, &probe, 0..1, WINDOW);
    let mut end = None;
    loop {
        let found = reader.found();
        end = end.or(Some(reader.head.end_of_head));
        match found {
            Some(found) if found.start < packet.content_bits => end = Some(reader.pos),
            Some(_) => return end,
            None if reader.damage.is_empty() => return end,
            None => return None,
        }
        reader.advance();
    }
}

/// Message for an event record that cannot be decoded.
pub fn describe(error: DecodeError) -> String {
    match error {
        DecodeError::Length { length: 0, .. } => "an event record has no bits".to_owned(),
        error => format!("this event record cannot be decoded: {error}"),
    }
}

/// Message for a clock that goes back.
pub(crate) fn went_back(before: u64, now: u64) -> String {
    format!(
        "the clock goes back by {} cycles here",
        before.saturating_sub(now)
    )
}

/// Decodes the head and skips the body. Returns the event record and its end.
#[inline(always)]
fn decode_event(
    layout: &StreamLayout,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    clock: u64,
) -> Result<(Found, u64), DecodeError> {
    let mut at = *cursor;
    at.align(layout.event_align);
    let start = at.pos;
    let head = decode_head(layout, cursor, slots, clock)?;
    let body = cursor.pos;
    if let Some(event) = layout.events.get(head.class) {
        event.body.run(cursor, slots)?;
    }
    Ok((Found { start, body, head }, cursor.pos))
}
