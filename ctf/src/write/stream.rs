//! The packets of a data stream.

use std::sync::Arc;

use super::bits::align_up;
use super::error::WriteError;
use super::event_header::Written;
use super::fields::{Buffer, Fields, Stop};
use super::head::{Head, HeadField, PacketFacts};
use super::plan::{EventPlan, StreamPlan};
use crate::bits::Cursor;
use crate::index::IndexEntry;
use crate::schema::Name;
use crate::write::FieldProblem;

/// The size of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSize {
    /// Always this number of bytes; the rest after the content is padding.
    Fixed(u32),
    /// The size of the content, at most this number of bytes.
    UpTo(u32),
}

/// Largest size of a packet in bytes.
const MOST_BYTES: u32 = 1 << 30;

/// Destination of packets.
pub trait PacketSink {
    /// The result of [`PacketSink::finish`].
    type Output;
    /// Stores a complete packet and its index entry.
    ///
    /// # Errors
    /// If the packet cannot be stored. No part of it may be stored then.
    fn packet(&mut self, bytes: &[u8], entry: &IndexEntry) -> Result<(), WriteError>;

    /// Called after the last packet.
    ///
    /// # Errors
    /// If the sink cannot be completed.
    fn finish(self) -> Result<Self::Output, WriteError>;
}

/// Stores packets in memory.
impl PacketSink for Vec<u8> {
    type Output = Vec<u8>;

    fn packet(&mut self, bytes: &[u8], _: &IndexEntry) -> Result<(), WriteError> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self) -> Result<Vec<u8>, WriteError> {
        Ok(self)
    }
}

/// Writes the packets of a data stream.
///
/// If a stream writer is dropped, its last packet is lost: [`StreamWriter::finish`] writes it.
#[derive(Debug)]
pub struct StreamWriter<S> {
    plan: Arc<StreamPlan>,
    head: Head,
    sink: S,
    size: PacketSize,
    stream_id: Option<u64>,
    out: Buffer,
    slots: Vec<u64>,
    packet: Packet,
    /// Latest time, in cycles.
    last: u64,
    /// Size of all earlier packets in bytes.
    offset: u64,
    sequence: u64,
    discarded: u64,
    /// Value of `discarded` in the last written packet.
    told_discarded: u64,
}

/// Memory for a packet, which stream writers use one after the other. All its bytes are zero.
#[derive(Debug, Default)]
pub struct PacketRoom(Box<[u8]>);

impl PacketRoom {
    fn of(self, bytes: usize) -> Box<[u8]> {
        match self.0.len() == bytes {
            true => self.0,
            false => vec![0; bytes].into(),
        }
    }
}

/// The packet that is being filled.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    is_open: bool,
    /// The caller requested this packet, so it is written even if it has no events.
    is_wanted: bool,
    has_events: bool,
    /// Clock value at the beginning, in cycles.
    begin: u64,
}

/// Result of an attempt to write an event record.
enum Outcome {
    Done,
    /// The event record needs another packet.
    NextPacket,
}

impl<S: PacketSink> StreamWriter<S> {
    /// Begins a stream of this class. `stream_id` is its id within the class; `context` contains
    /// the value of every integer of the packet heads that has no role (such as `cpu_id`), by name.
    ///
    /// # Errors
    /// If a value is missing, does not fit, or belongs to no field; if a packet of this size cannot
    /// hold its own head, or its size does not fit its fields.
    pub fn new(
        plan: &Arc<StreamPlan>,
        sink: S,
        size: PacketSize,
        stream_id: u64,
        context: &[(&str, i64)],
    ) -> Result<Self, WriteError> {
        let room = PacketRoom::default();
        StreamWriter::with_room(plan, (sink, room), size, stream_id, context)
    }

    /// The same with the memory of an earlier writer ([`StreamWriter::finish_with_room`]), if its
    /// packets have the same size.
    ///
    /// # Errors
    /// As for [`StreamWriter::new`].
    pub fn with_room(
        plan: &Arc<StreamPlan>,
        (sink, room): (S, PacketRoom),
        size: PacketSize,
        stream_id: u64,
        context: &[(&str, i64)],
    ) -> Result<Self, WriteError> {
        let mut head = plan.head.clone();
        head.set_stream(stream_id)?;
        for &(name, value) in context {
            head.set_value(name, value)?;
        }
        let is_given = |name: &&Name| context.iter().any(|(given, _)| **name == **given);
        if let Some(name) = head.names().find(|name| !is_given(name)) {
            let message = format!("the packet context's field `{name}` needs a value");
            return Err(WriteError::Misuse(message));
        }
        let (PacketSize::Fixed(bytes) | PacketSize::UpTo(bytes)) = size;
        if u64::from(bytes) * 8 > head.most_bits()
            || bytes > MOST_BYTES
            || u64::from(bytes) * 8 <= head.bits
        {
            let message = format!(
                "packets of {bytes} bytes: their heads have {}, and their sizes must fit their fields",
                head.bits.div_ceil(8)
            );
            return Err(WriteError::Misuse(message));
        }
        let has_stream_id = head.spots.iter().any(|spot| spot.what == HeadField::Stream);
        Ok(StreamWriter {
            plan: plan.clone(),
            sink,
            size,
            stream_id: has_stream_id.then_some(stream_id),
            out: Buffer {
                data: room.of(bytes as usize),
                pos: 0,
                big: false,
                empty: 0,
            },
            head,
            slots: Vec::new(),
            packet: Packet::default(),
            last: 0,
            offset: 0,
            sequence: 0,
            discarded: 0,
            told_discarded: 0,
        })
    }

    /// Size in bytes of all packets that have been written.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Size of the stream in bytes if the current packet were written now, and the number of
    /// packets.
    pub fn bytes_so_far(&self) -> (u64, u64) {
        let open = match self.size {
            _ if !self.packet.is_open => 0,
            PacketSize::Fixed(bytes) => u64::from(bytes),
            PacketSize::UpTo(_) => self.out.pos.div_ceil(8),
        };
        (
            self.offset + open,
            self.sequence + u64::from(self.packet.is_open),
        )
    }

    /// Begin timestamp of the open packet, in clock cycles.
    pub fn packet_begin(&self) -> Option<u64> {
        self.packet.is_open.then_some(self.packet.begin)
    }

    /// Number of bytes that are still free in the open packet.
    pub fn packet_room(&self) -> u64 {
        let filled = self.out.pos.div_ceil(8);
        (self.out.data.len() as u64).saturating_sub(filled)
    }

    /// Sequence number of the current packet, or of the next packet if none is open.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Sets the sequence number of the next packet, if the stream class has sequence numbers.
    pub fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Changes a value of the packet context, starting with the current packet.
    ///
    /// # Errors
    /// If there is no such field, or the value does not fit.
    pub fn set_context(&mut self, name: &str, value: i64) -> Result<(), WriteError> {
        self.head.set_value(name, value)?;
        let bytes = self.head.bytes.len();
        if let (true, Some(place)) = (self.packet.is_open, self.out.data.get_mut(..bytes)) {
            // The first event may share the last byte with the head.
            let last = place.last().copied().unwrap_or(0);
            place.copy_from_slice(&self.head.bytes);
            if let (Some(byte), false) = (place.last_mut(), self.head.bits.is_multiple_of(8)) {
                *byte |= last;
            }
        }
        Ok(())
    }

    /// Counts event records that were discarded since the last call. The count is contained in the
    /// current packet, or in the next packet if none is open.
    pub fn discard(&mut self, events: u64) {
        self.discarded = self.discarded.wrapping_add(events);
    }

    /// Writes an event record at this time, in cycles of the stream's clock. `fields` passes its
    /// values; it is called again if the packet has no room for them.
    ///
    /// # Errors
    /// If the time is earlier than that of the previous event record, the values are not those of
    /// the event class, no packet has room for them, or the previous packet cannot be written.
    #[inline]
    pub fn record(
        &mut self,
        event: &EventPlan,
        time: u64,
        mut fields: impl FnMut(&mut Fields<'_>),
    ) -> Result<(), WriteError> {
        self.prepare(event, time)?;
        self.attempts(event, time, |plan, out, slots| {
            Fields::run(plan, out, slots, &mut fields)
        })
    }

    /// Writes an event record whose part after the header is encoded already.
    ///
    /// # Errors
    /// As for [`StreamWriter::record`]; also if a field is aligned to more than a byte, since the
    /// final position of the bytes is unknown when they are encoded.
    pub fn record_encoded(
        &mut self,
        event: &EventPlan,
        time: u64,
        body: &[u8],
    ) -> Result<(), WriteError> {
        self.record_filled(event, time, body.len(), |place| place.copy_from_slice(body))
    }

    /// Writes an event record whose part after the header has `bytes` bytes, which `fill` encodes
    /// in the packet. They are zero until then.
    ///
    /// # Errors
    /// As for [`StreamWriter::record_encoded`].
    #[inline]
    pub fn record_filled(
        &mut self,
        event: &EventPlan,
        time: u64,
        bytes: usize,
        mut fill: impl FnMut(&mut [u8]),
    ) -> Result<(), WriteError> {
        self.prepare(event, time)?;
        if !event.is_packed() {
            return Err(field_error(event, Name::default(), FieldProblem::Alignment));
        }
        self.attempts(event, time, |plan, out, slots| {
            filled(plan, out, slots, bytes, &mut fill)
        })
    }

    /// Ends the packet at this time, in cycles, and begins another. All earlier event records can
    /// then be read, and readers know that nothing was recorded since.
    ///
    /// # Errors
    /// If the time is earlier than that of the last event record, or the packet cannot be written.
    pub fn flush(&mut self, time: u64) -> Result<(), WriteError> {
        self.check_time(time)?;
        self.last = time;
        self.close(time)?;
        self.begin(time);
        self.packet.is_wanted = true;
        Ok(())
    }

    /// Begins the stream's first packet before its first event record.
    ///
    /// # Errors
    /// If a packet has been begun already, or the time is earlier than its end.
    pub fn start(&mut self, time: u64) -> Result<(), WriteError> {
        self.check_time(time)?;
        if self.packet.is_open {
            return Err(WriteError::Misuse("a packet has been begun already".into()));
        }
        self.last = time;
        self.begin(time);
        self.packet.is_wanted = true;
        Ok(())
    }

    /// Writes the last packet and finishes the sink. A stream that was neither started nor flushed
    /// and has no event records has no packets, since its time is unknown.
    ///
    /// # Errors
    /// If the packet cannot be written.
    pub fn finish(self) -> Result<S::Output, WriteError> {
        self.finish_with_room().map(|(output, _)| output)
    }

    /// The same; also returns the memory for packets.
    ///
    /// # Errors
    /// As for [`StreamWriter::finish`].
    pub fn finish_with_room(mut self) -> Result<(S::Output, PacketRoom), WriteError> {
        let has_news = self.discarded != self.told_discarded;
        if has_news && !self.packet.is_open {
            self.begin(self.last);
        }
        // After a flush, the packet may contain no new information.
        let is_empty = !self.packet.has_events && self.packet.begin == self.last && self.offset > 0;
        self.packet.is_wanted = has_news || self.packet.is_wanted && !is_empty;
        self.close(self.last)?;
        // The head of a packet that was not written.
        if let Some(head) = self.out.data.get_mut(..self.head.bytes.len()) {
            head.fill(0);
        }
        Ok((self.sink.finish()?, PacketRoom(self.out.data)))
    }

    #[inline(always)]
    fn check_time(&self, time: u64) -> Result<(), WriteError> {
        if time < self.last {
            return Err(WriteError::TimeBackwards {
                last: self.last,
                time,
            });
        }
        Ok(())
    }

    #[inline(always)]
    fn prepare(&mut self, event: &EventPlan, time: u64) -> Result<(), WriteError> {
        self.check_time(time)?;
        if !Arc::ptr_eq(&event.stream, &self.plan) {
            let message = format!("event `{}` belongs to another stream class", event.name);
            return Err(WriteError::Misuse(message));
        }
        if self.slots.len() < event.slots {
            self.slots.resize(event.slots, 0);
        }
        if !self.packet.is_open {
            self.begin(time);
        }
        Ok(())
    }

    /// Tries to write the event record into this packet, then into a new packet.
    #[inline(always)]
    fn attempts(
        &mut self,
        event: &EventPlan,
        time: u64,
        mut body: impl FnMut(&EventPlan, &mut Buffer, &mut [u64]) -> Result<(), Stop>,
    ) -> Result<(), WriteError> {
        if let Outcome::Done = self.attempt(event, time, &mut body)? {
            return Ok(());
        }
        let is_fresh = !self.packet.has_events && self.packet.begin == time;
        if !is_fresh {
            self.close(time)?;
            self.begin(time);
            if let Outcome::Done = self.attempt(event, time, &mut body)? {
                return Ok(());
            }
        }
        Err(WriteError::EventTooLarge {
            event: event.name.clone(),
            room: (self.out.data.len() as u64).saturating_sub(self.head.bits.div_ceil(8)),
        })
    }

    #[inline(always)]
    fn attempt(
        &mut self,
        event: &EventPlan,
        time: u64,
        body: &mut impl FnMut(&EventPlan, &mut Buffer, &mut [u64]) -> Result<(), Stop>,
    ) -> Result<Outcome, WriteError> {
        let before = (self.out.pos, self.out.big, self.out.empty);
        let header = &self.plan.header;
        let start = align_up(self.out.pos, header.align);
        let clock = if self.packet.has_events {
            self.last
        } else {
            self.packet.begin
        };
        if start & 7 != 0 && header.big().is_some_and(|big| big != self.out.big) {
            return Err(field_error(event, Name::default(), FieldProblem::ByteOrder));
        }
        let passed = time.wrapping_sub(clock);
        let stop = match header.write(&mut self.out.data, start, &event.lead, time, passed) {
            Written::To(end) => {
                self.out.pos = end;
                self.out.big = header.big().unwrap_or(self.out.big);
                body(event, &mut self.out, &mut self.slots).err()
            }
            Written::Full => {
                // Part of it may be written before the end.
                self.out.pos = self.out.data.len() as u64 * 8;
                Some(Stop::Full)
            }
            Written::NotReached => Some(Stop::Full),
        };
        // Fields of zero bits may be aligned to a position past the end.
        let is_over = self.out.pos > self.out.data.len() as u64 * 8;
        match stop.or(is_over.then_some(Stop::Full)) {
            None => {
                self.last = time;
                self.packet.has_events = true;
                Ok(Outcome::Done)
            }
            Some(stop) => {
                self.take_back(before);
                match stop {
                    Stop::Full => Ok(Outcome::NextPacket),
                    Stop::Field(name, problem) => Err(field_error(event, name, problem)),
                }
            }
        }
    }

    /// Resets to zero the bytes that were written for an event record.
    #[cold]
    fn take_back(&mut self, (pos, big, empty): (u64, bool, u64)) {
        let end = self.out.pos.max(pos);
        (self.out.big, self.out.empty) = (big, empty);
        let last = (pos >> 3) as usize;
        let kept = self.out.data.get(last).copied().unwrap_or(0);
        let dirty = (end.div_ceil(8) as usize).min(self.out.data.len());
        if let Some(bytes) = self.out.data.get_mut(last..dirty) {
            bytes.fill(0);
        }
        self.out.pos = pos;
        if let (Some(byte), shift @ 1..) = (self.out.data.get_mut(last), (pos & 7) as u32) {
            // Bits of the previous event record.
            let mask = if big {
                !(0xff >> shift)
            } else {
                !(0xff << shift)
            };
            *byte = kept & mask;
        }
    }

    /// Begins a packet.
    fn begin(&mut self, time: u64) {
        if let Some(place) = self.out.data.get_mut(..self.head.bytes.len()) {
            place.copy_from_slice(&self.head.bytes);
        }
        (self.out.pos, self.out.big, self.out.empty) = (self.head.bits, self.head.big, 0);
        self.packet = Packet {
            is_open: true,
            begin: time,
            ..Packet::default()
        };
    }

    /// Ends the packet and writes it, if it contains any information.
    fn close(&mut self, end: u64) -> Result<(), WriteError> {
        let is_told = self.packet.has_events || self.packet.is_wanted;
        if !self.packet.is_open || !is_told {
            self.packet = Packet::default();
            return Ok(());
        }
        let bytes = match self.size {
            PacketSize::Fixed(bytes) => u64::from(bytes),
            PacketSize::UpTo(_) => self.out.pos.div_ceil(8),
        };
        let facts = PacketFacts {
            total: bytes * 8,
            content: self.out.pos,
            sequence: self.sequence,
            discarded: self.discarded,
            begin: self.packet.begin,
            end,
        };
        self.head.finish(&mut self.out.data, &facts);
        let entry = IndexEntry {
            offset: self.offset,
            packet_bits: facts.total,
            content_bits: facts.content,
            begin: facts.begin,
            end,
            discarded: facts.discarded,
            stream_class: self.plan.id,
            stream_id: self.stream_id,
            sequence: Some(facts.sequence),
        };
        let packet = self.out.data.get(..bytes as usize).unwrap_or_default();
        self.sink.packet(packet, &entry)?;
        self.offset += bytes;
        self.sequence = self.sequence.wrapping_add(1);
        self.told_discarded = self.discarded;
        self.packet = Packet::default();
        let used = (self.out.pos.div_ceil(8) as usize).min(self.out.data.len());
        if let Some(used) = self.out.data.get_mut(..used) {
            used.fill(0);
        }
        Ok(())
    }
}

#[cold]
fn field_error(event: &EventPlan, field: Name, problem: FieldProblem) -> WriteError {
    WriteError::Field {
        event: event.name.clone(),
        field,
        problem,
    }
}

/// Lets `fill` encode the body of an event, and checks that it has the size of the event's fields.
#[inline]
fn filled(
    plan: &EventPlan,
    out: &mut Buffer,
    slots: &mut [u64],
    bytes: usize,
    fill: &mut impl FnMut(&mut [u8]),
) -> Result<(), Stop> {
    if out.pos & 7 != 0 {
        return refused(FieldProblem::Alignment);
    }
    let start = (out.pos >> 3) as usize;
    let Some(place) = out.data.get_mut(start..start.saturating_add(bytes)) else {
        return Err(Stop::Full);
    };
    fill(place);
    let end = out.pos + bytes as u64 * 8;
    if plan.body_bytes == Some(bytes) {
        out.pos = end;
        return Ok(());
    }
    check_size(plan, out, slots, end)
}

/// Checks that the fields of a body of variable size end at this bit.
fn check_size(plan: &EventPlan, out: &mut Buffer, slots: &mut [u64], end: u64) -> Result<(), Stop> {
    let mut cursor = Cursor::new(&out.data);
    (cursor.pos, cursor.end) = (out.pos, end);
    out.pos = end;
    crate::layout::skip::start_packet(slots);
    let is_whole = plan
        .body()
        .is_none_or(|program| program.run(&mut cursor, slots).is_ok());
    match is_whole && cursor.pos == end {
        true => Ok(()),
        false => refused(FieldProblem::Encoded),
    }
}

fn refused(problem: FieldProblem) -> Result<(), Stop> {
    Err(Stop::Field(Name::default(), problem))
}
