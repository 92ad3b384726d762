//! The packets of a random stream: times of its events, and their encoding in headers.

use super::classes::{Classes, HeaderStyle, StreamPlan};
use super::values::{ValueMaker, set_facts, set_uuid};
use super::{GeneratedEvent, GeneratedPacket, GeneratedStream, Options};
use crate::reference::nanoseconds_from_origin;
use crate::rng::Rng;
use crate::value::Value;
use crate::write::{EventValues, PacketWriter};
use anyhow::{Result, bail};
use tracebraid_ctf::schema::{FieldClass, Roles, Scope, StreamClass};

/// The magic number of a packet.
const MAGIC: u64 = 0xc1fc_1fc1;

/// Start time of the streams of a class in cycles; in nanoseconds it is far below the maximum
/// `i64`.
pub(super) fn base_time(rng: &mut Rng, classes: &Classes, class: usize) -> u64 {
    let clock = classes.class.streams[class].default_clock;
    let frequency = clock.map_or(1, |clock| classes.class.clocks[clock].frequency);
    rng.sized(55) % (frequency << 28)
}

/// Makes a stream of the class at index `class` with about `events` event records.
pub(super) fn make(
    rng: &mut Rng,
    options: &Options,
    classes: &Classes,
    class: usize,
    number: u64,
    base: u64,
    events: u64,
) -> Result<GeneratedStream> {
    let id = classes.has_stream_ids.then_some(class as u64 * 16 + number);
    let plan = &classes.plans[class];
    let mut stream = GeneratedStream {
        file_name: format!("stream{class}_{number}"),
        class,
        id,
        packets: Vec::new(),
        data: Vec::new(),
        index: None,
    };
    let mut state = State {
        time: base,
        sequence: rng.below(3),
        discarded: 0,
    };
    let mut left = events;
    loop {
        let count = if plan.one_packet {
            left
        } else {
            rng.below(25).min(left)
        };
        left -= count;
        let mut packet_maker = PacketMaker {
            classes,
            stream_class: &classes.class.streams[class],
            plan,
            id,
            values: ValueMaker::new(rng, options, &classes.needs, class),
        };
        let (mut packet, bytes) = packet_maker.packet(&mut state, count)?;
        packet.offset = stream.data.len() as u64;
        stream.data.extend(bytes);
        stream.packets.push(packet);
        if left == 0 {
            break;
        }
    }
    Ok(stream)
}

/// State carried over from packet to packet.
struct State {
    /// Latest time in cycles.
    time: u64,
    sequence: u64,
    discarded: u64,
}

struct PacketMaker<'a> {
    classes: &'a Classes,
    stream_class: &'a StreamClass,
    plan: &'a StreamPlan,
    id: Option<u64>,
    values: ValueMaker<'a>,
}

impl PacketMaker<'_> {
    fn packet(&mut self, state: &mut State, count: u64) -> Result<(GeneratedPacket, Vec<u8>)> {
        self.values.start_packet();
        let mut header = self.values.scope(
            Scope::PacketHeader,
            self.classes.class.packet_header.as_ref(),
        );
        let mut context = self.values.scope(
            Scope::PacketContext,
            self.stream_class.packet_context.as_ref(),
        );
        let begin = self.begin(state);
        // End, counts and lengths are set once the events are known. The times come first.
        let times = self.times(begin, count);
        let last = times.last().copied().unwrap_or(begin);
        let end = last
            + if self.values.rng.chance(50) {
                self.values.rng.sized(20)
            } else {
                0
            };
        state.time = end;
        if self.values.rng.chance(20) {
            state.discarded += self.values.rng.sized(8);
        }
        let (discarded, sequence) = (state.discarded, state.sequence);
        state.sequence += if self.values.rng.chance(5) { 3 } else { 1 };

        let facts = |role: Roles| match role {
            Roles::PACKET_MAGIC => Some(MAGIC),
            Roles::STREAM_CLASS_ID => Some(self.stream_class.id),
            Roles::STREAM_ID => self.id,
            Roles::PACKET_SEQUENCE_NUMBER => Some(sequence),
            Roles::DISCARDED_EVENTS => Some(discarded),
            Roles::CLOCK_TIMESTAMP => Some(begin),
            Roles::PACKET_END_TIMESTAMP => Some(end),
            Roles::PACKET_TOTAL_LENGTH | Roles::PACKET_CONTENT_LENGTH => Some(0),
            _ => None,
        };
        self.set(header_class(self.classes), header.as_mut(), &facts)?;
        self.set(
            self.stream_class.packet_context.as_ref(),
            context.as_mut(),
            &facts,
        )?;

        let class = &self.classes.class;
        let mut writer =
            PacketWriter::new(class, self.stream_class, header.as_ref(), context.as_ref())?;
        let mut clock = if self.plan.has_begin { begin } else { 0 };
        let mut events = Vec::new();
        for time in times {
            events.push(self.event(&mut writer, &mut clock, time)?);
        }
        let padding = self.padding();
        let (data, content_length) = writer.finish(&padding)?;
        let total_length = data.len() as u64 * 8;
        let lengths = |role: Roles| match role {
            Roles::PACKET_TOTAL_LENGTH => Some(total_length),
            Roles::PACKET_CONTENT_LENGTH => Some(content_length),
            _ => None,
        };
        self.set(
            self.stream_class.packet_context.as_ref(),
            context.as_mut(),
            &lengths,
        )?;
        let has = |role| {
            self.stream_class
                .packet_context
                .as_ref()
                .is_some_and(|class| contains(class, role))
        };
        let packet = GeneratedPacket {
            offset: 0,
            total_length,
            content_length,
            begin: self.plan.has_begin.then_some(begin),
            end: has(Roles::PACKET_END_TIMESTAMP).then_some(end),
            sequence_number: has(Roles::PACKET_SEQUENCE_NUMBER).then_some(sequence),
            discarded_events: has(Roles::DISCARDED_EVENTS).then_some(discarded),
            header,
            context,
            events,
        };
        Ok((packet, data))
    }

    fn set(
        &self,
        class: Option<&FieldClass>,
        value: Option<&mut Value>,
        facts: &impl Fn(Roles) -> Option<u64>,
    ) -> Result<()> {
        if let (Some(class), Some(value)) = (class, value) {
            if !set_facts(class, value, facts) {
                bail!("a number does not fit its field");
            }
            if let Some(uuid) = &self.classes.class.uuid {
                set_uuid(class, value, uuid);
            }
        }
        Ok(())
    }

    /// Time of the packet's beginning. Without a field that records it, the stream's only packet
    /// begins at zero for the purpose of short timestamps.
    fn begin(&mut self, state: &State) -> u64 {
        match self.short_bits() {
            Some(bits) if !self.plan.has_begin => state.time & ((1 << bits) - 1),
            _ => {
                state.time
                    + if self.values.rng.chance(50) {
                        self.values.rng.sized(16)
                    } else {
                        0
                    }
            }
        }
    }

    /// Number of bits of truncated timestamps without a longer alternative.
    fn short_bits(&self) -> Option<u32> {
        match self.plan.header {
            HeaderStyle::Plain {
                timestamp_bits: Some(bits),
            } if bits < 64 => Some(bits),
            _ => None,
        }
    }

    /// Times of `count` event records from `begin` on.
    fn times(&mut self, begin: u64, count: u64) -> Vec<u64> {
        let has_time = !matches!(
            self.plan.header,
            HeaderStyle::Plain {
                timestamp_bits: None
            }
        );
        let frequency = self
            .stream_class
            .default_clock
            .map_or(1, |clock| self.classes.class.clocks[clock].frequency);
        // A step must be shorter than the period of short timestamps.
        let longest = self
            .short_bits()
            .map_or(u64::MAX, |bits| (1u64 << bits) - 1)
            .min(frequency << 12);
        // If the beginning is not recorded, the first step from zero reaches `begin` itself.
        let first_is_free = self.plan.has_begin || self.short_bits().is_none();
        let mut time = begin;
        let mut times = Vec::new();
        for number in 0..count {
            if has_time && (number > 0 || first_is_free) {
                time += match self.values.rng.below(20) {
                    0 => self.values.rng.sized(36).min(longest),
                    1 => longest.min(1 << 27),
                    _ => self.values.rng.sized(14).min(longest),
                };
            }
            times.push(time);
        }
        times
    }

    /// Padding bytes after the content.
    fn padding(&mut self) -> Vec<u8> {
        if self.plan.no_padding || self.values.rng.chance(50) {
            return Vec::new();
        }
        let junk = if self.values.rng.chance(50) { 0xff } else { 0 };
        vec![junk; self.values.rng.sized(10) as usize]
    }

    fn event(
        &mut self,
        writer: &mut PacketWriter<'_>,
        clock: &mut u64,
        time: u64,
    ) -> Result<GeneratedEvent> {
        let class = self.values.rng.below(self.stream_class.events.len() as u64) as usize;
        let event_class = &self.stream_class.events[class];
        self.values.start_event(class);
        let header = match self.plan.header {
            HeaderStyle::Plain { .. } => self.plain_header(event_class.id, time)?,
            HeaderStyle::Escaped {
                escape_id,
                timestamp_bits,
            } => {
                let is_far = time.wrapping_sub(*clock) >> timestamp_bits != 0;
                let is_long = event_class.id >= escape_id || is_far || self.values.rng.chance(5);
                Some(escaped_header(
                    event_class.id,
                    time,
                    escape_id,
                    timestamp_bits,
                    is_long,
                ))
            }
        };
        let has_time = !matches!(
            self.plan.header,
            HeaderStyle::Plain {
                timestamp_bits: None
            }
        );
        if has_time {
            *clock = time;
        }
        let common_context = self.values.scope(
            Scope::CommonContext,
            self.stream_class.common_context.as_ref(),
        );
        let specific_context = self.values.scope(
            Scope::SpecificContext,
            event_class.specific_context.as_ref(),
        );
        let payload = self
            .values
            .scope(Scope::Payload, event_class.payload.as_ref());
        let values = EventValues {
            header,
            common_context,
            specific_context,
            payload,
        };
        let (start, end) = writer.event(class, &values)?;
        let clock_class = self
            .stream_class
            .default_clock
            .map(|index| &self.classes.class.clocks[index]);
        let nanoseconds =
            clock_class.map(|class| i64::try_from(nanoseconds_from_origin(class, *clock)));
        let time = clock_class.map(|_| *clock);
        Ok(GeneratedEvent {
            class,
            start,
            end,
            time,
            nanoseconds: nanoseconds.transpose()?,
            values,
        })
    }

    fn plain_header(&mut self, id: u64, time: u64) -> Result<Option<Value>> {
        let class = self.stream_class.event_header.as_ref();
        let mut header = self.values.scope(Scope::EventHeader, class);
        let facts = |role: Roles| match role {
            Roles::EVENT_CLASS_ID => Some(id),
            Roles::CLOCK_TIMESTAMP => Some(time),
            _ => None,
        };
        self.set(class, header.as_mut(), &facts)?;
        Ok(header)
    }
}

fn header_class(classes: &Classes) -> Option<&FieldClass> {
    classes.class.packet_header.as_ref()
}

/// The header of an event record in LTTng's format.
fn escaped_header(id: u64, time: u64, escape_id: u64, timestamp_bits: u32, is_long: bool) -> Value {
    let (first, option, members) = if is_long {
        (escape_id, 1, vec![Value::UInt(id), Value::UInt(time)])
    } else {
        (id, 0, vec![Value::UInt(time & ((1 << timestamp_bits) - 1))])
    };
    let variant = Value::Variant {
        option,
        value: Box::new(Value::Struct(members)),
    };
    Value::Struct(vec![Value::UInt(first), variant])
}

/// True if a member of the structure has the role.
fn contains(class: &FieldClass, role: Roles) -> bool {
    match class {
        FieldClass::Int(int) | FieldClass::VarInt(int) => int.roles.contains(role),
        FieldClass::Struct(class) => class
            .members
            .iter()
            .any(|member| contains(&member.class, role)),
        _ => false,
    }
}
