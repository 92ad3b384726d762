//! Packets: header, context, and the event records up to the content's end.

use super::fields::{Cursor, Targets};
use super::{DecodeError, DecodeErrorKind, Mark};
use crate::value::Value;
use tracebraid_ctf::schema::{FieldClass, Roles, Scope, StreamClass, TraceClass};

/// The magic number of a packet.
const MAGIC: u64 = 0xc1fc_1fc1;

/// The decoded header and context of a packet, before its events.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketHead {
    /// Index of its stream class in the trace class.
    pub stream_class: usize,
    /// Id of the stream within its class, if given.
    pub stream_id: Option<u64>,
    /// Header.
    pub header: Option<Value>,
    /// Context.
    pub context: Option<Value>,
    /// Total length in bits: as recorded, or else up to the end of the stream.
    pub total_length: u64,
    /// Length of the content in bits: as recorded, or else the total length.
    pub content_length: u64,
    /// Time of its beginning, in cycles.
    pub begin: Option<u64>,
    /// Time of its end, in cycles.
    pub end: Option<u64>,
    /// Sequence number.
    pub sequence_number: Option<u64>,
    /// Cumulative count of discarded event records.
    pub discarded_events: Option<u64>,
    /// The fields of header and context that have roles.
    pub marks: Vec<Mark>,
}

/// A decoded event record.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Index of its class in the stream class.
    pub class: usize,
    /// Position before any alignment, in bits from the packet's start.
    pub start: u64,
    /// Position of the end, in bits from the packet's start.
    pub end: u64,
    /// Value of the stream's clock after its header, in cycles; `None` without a clock.
    pub time: Option<u64>,
    /// Header.
    pub header: Option<Value>,
    /// Common context.
    pub common_context: Option<Value>,
    /// Specific context.
    pub specific_context: Option<Value>,
    /// Payload.
    pub payload: Option<Value>,
    /// The fields of its header that have roles.
    pub marks: Vec<Mark>,
    /// The fields, in any of its scopes, that gave a length.
    pub lengths: Vec<Mark>,
}

/// Decodes the event records of one packet.
#[derive(Debug)]
pub struct PacketReader<'r> {
    class: &'r StreamClass,
    cursor: Cursor<'r>,
    clock: u64,
    head: PacketHead,
    is_done: bool,
}

impl<'r> PacketReader<'r> {
    pub(super) fn start(
        class: &'r TraceClass,
        targets: &'r Targets,
        data: &'r [u8],
    ) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(data, targets);
        let header = decode_scope(
            &mut cursor,
            Scope::PacketHeader,
            class.packet_header.as_ref(),
        )?;
        check_identity(class, &cursor)?;
        let stream_class = find_stream_class(class, &cursor)?;
        let stream = &class.streams[stream_class];
        let context = decode_scope(
            &mut cursor,
            Scope::PacketContext,
            stream.packet_context.as_ref(),
        )?;

        let (total_length, content_length) = lengths(&cursor)?;
        cursor.set_limit(content_length);
        let marks = std::mem::take(&mut cursor.marks);
        let value_of = |role| {
            marks
                .iter()
                .rev()
                .find(|mark| mark.roles.contains(role))
                .map(|mark| mark.value)
        };
        let mut clock = 0;
        let has_begin = update_clock(&mut clock, &marks);
        let head = PacketHead {
            stream_class,
            stream_id: value_of(Roles::STREAM_ID),
            header,
            context,
            total_length,
            content_length,
            begin: has_begin.then_some(clock),
            end: value_of(Roles::PACKET_END_TIMESTAMP),
            sequence_number: value_of(Roles::PACKET_SEQUENCE_NUMBER),
            discarded_events: value_of(Roles::DISCARDED_EVENTS),
            marks,
        };
        Ok(PacketReader {
            class: stream,
            cursor,
            clock,
            head,
            is_done: false,
        })
    }

    /// Header and context.
    pub fn head(&self) -> &PacketHead {
        &self.head
    }

    /// Header and context, once the events are no longer needed.
    pub fn into_head(self) -> PacketHead {
        self.head
    }

    /// The next event record; `None` at the content's end and after an error.
    pub fn next_event(&mut self) -> Option<Result<Event, DecodeError>> {
        if self.is_done {
            return None;
        }
        if self.cursor.position() >= self.cursor.limit() {
            self.is_done = true;
            let is_cut = self.head.content_length > self.cursor.limit();
            let error = self
                .cursor
                .error(DecodeErrorKind::Truncated(self.head.total_length));
            return is_cut.then_some(Err(error));
        }
        let event = self.event();
        self.is_done = event.is_err();
        Some(event)
    }

    fn event(&mut self) -> Result<Event, DecodeError> {
        let cursor = &mut self.cursor;
        let stream = self.class;
        cursor.start_event();
        let start = cursor.position();
        let header = decode_scope(cursor, Scope::EventHeader, stream.event_header.as_ref())?;
        let id = last_value(&cursor.marks, Roles::EVENT_CLASS_ID);
        let has_id = id.is_some();
        let id = id.unwrap_or(0);
        let by_id = stream.events.iter().position(|class| class.id == id);
        let only = (!has_id && stream.events.len() == 1).then_some(0);
        let Some(class) = by_id.or(only) else {
            return Err(cursor.error(DecodeErrorKind::UnknownEventClass(id)));
        };
        let mut clock = self.clock;
        let marks = cursor.marks.clone();
        update_clock(&mut clock, &marks);
        let common_context =
            decode_scope(cursor, Scope::CommonContext, stream.common_context.as_ref())?;
        let event_class = &stream.events[class];
        let specific_context = decode_scope(
            cursor,
            Scope::SpecificContext,
            event_class.specific_context.as_ref(),
        )?;
        let payload = decode_scope(cursor, Scope::Payload, event_class.payload.as_ref())?;
        let end = cursor.position();
        if end == start {
            return Err(cursor.error(DecodeErrorKind::EmptyEvent));
        }
        self.clock = clock;
        let time = stream.default_clock.map(|_| clock);
        let lengths = std::mem::take(&mut self.cursor.lengths);
        Ok(Event {
            class,
            start,
            end,
            time,
            header,
            common_context,
            specific_context,
            payload,
            marks,
            lengths,
        })
    }
}

fn decode_scope(
    cursor: &mut Cursor<'_>,
    scope: Scope,
    class: Option<&FieldClass>,
) -> Result<Option<Value>, DecodeError> {
    class.map(|class| cursor.scope(scope, class)).transpose()
}

fn last_value(marks: &[Mark], role: Roles) -> Option<u64> {
    marks
        .iter()
        .rev()
        .find(|mark| mark.roles.contains(role))
        .map(|mark| mark.value)
}

/// Checks magic number and UUID where the header has them.
fn check_identity(class: &TraceClass, cursor: &Cursor<'_>) -> Result<(), DecodeError> {
    if let Some(magic) =
        last_value(&cursor.marks, Roles::PACKET_MAGIC).filter(|&magic| magic != MAGIC)
    {
        return Err(DecodeError {
            position: 0,
            kind: DecodeErrorKind::BadMagic(magic),
        });
    }
    match (&cursor.uuid, &class.uuid) {
        (Some(uuid), Some(expected)) if uuid != expected => Err(DecodeError {
            position: 0,
            kind: DecodeErrorKind::WrongUuid,
        }),
        _ => Ok(()),
    }
}

fn find_stream_class(class: &TraceClass, cursor: &Cursor<'_>) -> Result<usize, DecodeError> {
    let id = last_value(&cursor.marks, Roles::STREAM_CLASS_ID);
    let by_id = class
        .streams
        .iter()
        .position(|stream| stream.id == id.unwrap_or(0));
    let only = (id.is_none() && class.streams.len() == 1).then_some(0);
    by_id
        .or(only)
        .ok_or_else(|| cursor.error(DecodeErrorKind::UnknownStreamClass(id.unwrap_or(0))))
}

/// Total and content length in bits.
fn lengths(cursor: &Cursor<'_>) -> Result<(u64, u64), DecodeError> {
    let given_total = last_value(&cursor.marks, Roles::PACKET_TOTAL_LENGTH);
    let given_content = last_value(&cursor.marks, Roles::PACKET_CONTENT_LENGTH);
    let all = cursor.limit();
    let total = given_total.or(given_content).unwrap_or(all);
    let content = given_content.unwrap_or(total);
    if total == 0 || !total.is_multiple_of(8) || content > total {
        return Err(cursor.error(DecodeErrorKind::BadPacketLength { total, content }));
    }
    if content < cursor.position() {
        return Err(cursor.error(DecodeErrorKind::ContentTooShort(content)));
    }
    Ok((total, content))
}

/// Updates a clock's value from the fields with its role; true if there are any.
fn update_clock(clock: &mut u64, marks: &[Mark]) -> bool {
    let mut is_updated = false;
    for mark in marks
        .iter()
        .filter(|mark| mark.roles.contains(Roles::CLOCK_TIMESTAMP))
    {
        *clock = updated(*clock, mark);
        is_updated = true;
    }
    is_updated
}

/// The clock's value after a field with its low bits, which may have wrapped once.
fn updated(clock: u64, mark: &Mark) -> u64 {
    if mark.length >= 64 {
        return mark.value;
    }
    let period = 1u64 << mark.length;
    let low = clock & (period - 1);
    let value = (clock - low) | mark.value;
    if mark.value < low {
        value.wrapping_add(period)
    } else {
        value
    }
}
