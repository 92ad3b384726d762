//! Deliberate damage to traces, one fault at a time, with the expected behaviour of a reader.
//!
//! In: the directory of a sound trace. Out: the same directory with one fault, the position of
//! the fault, the data that it may hide, and the data that must stay readable.

use crate::bits;
use crate::directory;
use crate::index;
use crate::reference::{DecodeErrorKind, Event, Mark, Packet, Reader, Stream};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use tracebraid_ctf::schema::{FieldClass, Roles, TraceClass};

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Damage {
    /// A stream file ends within an event record of its last packet.
    TruncatedStream,
    /// A packet's content length exceeds the packet's length.
    ContentBeyondPacket,
    /// A packet's total length is 0.
    ZeroPacketLength,
    /// An event record's id belongs to no class.
    UnknownEventClass,
    /// No null character between a string and the end of the packet's content.
    UnterminatedString,
    /// A length of 2^60, or the largest that its field can hold.
    HugeLength,
    /// A full timestamp is earlier than the one before it.
    ClockBackwards,
    /// A packet's magic number is wrong.
    BadMagic,
    /// A packet's UUID differs from the trace's.
    WrongUuid,
    /// A stream file is empty.
    EmptyStream,
    /// An index file has arbitrary content.
    GarbageIndex,
    /// An index file belongs to another stream.
    ForeignIndex,
}

/// All kinds.
pub const ALL: [Damage; 12] = [
    Damage::TruncatedStream,
    Damage::ContentBeyondPacket,
    Damage::ZeroPacketLength,
    Damage::UnknownEventClass,
    Damage::UnterminatedString,
    Damage::HugeLength,
    Damage::ClockBackwards,
    Damage::BadMagic,
    Damage::WrongUuid,
    Damage::EmptyStream,
    Damage::GarbageIndex,
    Damage::ForeignIndex,
];

/// The position of the damage, and the limits of a correct reader's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The kind of damage.
    pub damage: Damage,
    /// The damaged stream file or index file.
    pub file: PathBuf,
    /// Offset of the damaged packet in its file, in bytes; 0 for an index.
    pub packet_offset: u64,
    /// Offset in its file of the damaged event record, or else of the packet, in bytes.
    pub byte_offset: u64,
    /// Event records that every reader can still read.
    pub events_at_least: u64,
    /// Event records that a reader can read at most, if it resumes after the damage.
    pub events_at_most: u64,
    /// True if no data is lost, so that a reader may report no damage.
    pub is_harmless: bool,
}

/// Damages the trace in `directory` (a single, sound trace) at a suitable position.
///
/// `None`, without changes, if the damage is impossible in this trace: no strings, no magic number,
/// only one stream, ...
///
/// # Errors
/// If the trace cannot be read or its files cannot be written.
pub fn damage(directory: &Path, damage: Damage) -> Result<Option<Expected>> {
    let trace = Sound::read(directory)?;
    Ok(match damage {
        Damage::EmptyStream => trace.empty_stream()?,
        Damage::GarbageIndex => trace.garbage_index()?,
        Damage::ForeignIndex => trace.foreign_index()?,
        damage => trace.damage_a_packet(damage)?,
    })
}

/// A stream file of the sound trace.
struct File {
    path: PathBuf,
    data: Vec<u8>,
    stream: Stream,
}

/// The sound trace.
struct Sound {
    class: TraceClass,
    files: Vec<File>,
    events: u64,
}

/// The damage to one packet.
struct Fault {
    /// The file's new content.
    data: Vec<u8>,
    /// Byte offset of the fault.
    byte_offset: u64,
    /// Minimum and maximum number of readable event records of the packet.
    readable: (u64, u64),
    /// True if the following packets can be found without an index.
    next_is_found: bool,
}

impl Sound {
    fn read(directory: &Path) -> Result<Self> {
        let class = directory::trace_class(directory)?;
        let reader = Reader::new(&class);
        let mut files = Vec::new();
        for path in directory::stream_files(directory)? {
            let data = fs::read(&path)?;
            let stream = reader.stream(&data);
            if let Some(error) = stream.first_error() {
                return Err(error.clone())
                    .with_context(|| format!("{} is not sound", path.display()));
            }
            files.push(File { path, data, stream });
        }
        let events = files
            .iter()
            .map(|file| file.stream.event_count() as u64)
            .sum();
        Ok(Sound {
            class,
            files,
            events,
        })
    }

    /// Tries the packets, beginning in the middle of the streams, until the damage is possible.
    fn damage_a_packet(&self, damage: Damage) -> Result<Option<Expected>> {
        for file in &self.files {
            let count = file.stream.packets.len();
            let order = (0..count).map(|index| (index + count / 2) % count);
            for index in order {
                let Some(fault) = self.fault(damage, file, index) else {
                    continue;
                };
                fs::write(&file.path, &fault.data)?;
                return Ok(Some(self.expected(damage, file, index, &fault)));
            }
        }
        Ok(None)
    }

    fn expected(&self, damage: Damage, file: &File, index: usize, fault: &Fault) -> Expected {
        let events_of = |packets: &[Packet]| {
            packets
                .iter()
                .map(|packet| packet.events.len() as u64)
                .sum::<u64>()
        };
        let packets = &file.stream.packets;
        let in_packet = packets[index].events.len() as u64;
        let after = events_of(&packets[index + 1..]);
        let elsewhere = self.events - in_packet - after;
        let found = if fault.next_is_found { after } else { 0 };
        Expected {
            damage,
            file: file.path.clone(),
            packet_offset: packets[index].offset,
            byte_offset: fault.byte_offset,
            events_at_least: elsewhere + found + fault.readable.0,
            events_at_most: elsewhere + after + fault.readable.1,
            is_harmless: false,
        }
    }

    fn fault(&self, damage: Damage, file: &File, index: usize) -> Option<Fault> {
        let packet = &file.stream.packets[index];
        match damage {
            Damage::TruncatedStream => truncate(file, index),
            Damage::ContentBeyondPacket => {
                let mark = mark_of(&packet.head.marks, Roles::PACKET_CONTENT_LENGTH)?;
                mark_of(&packet.head.marks, Roles::PACKET_TOTAL_LENGTH)?;
                head_fault(file, packet, mark, packet.head.total_length + 64, true)
            }
            Damage::ZeroPacketLength => {
                let mark = mark_of(&packet.head.marks, Roles::PACKET_TOTAL_LENGTH)?;
                head_fault(file, packet, mark, 0, false)
            }
            Damage::BadMagic => {
                let mark = mark_of(&packet.head.marks, Roles::PACKET_MAGIC)?;
                head_fault(file, packet, mark, mark.value ^ 0xff, true)
            }
            Damage::WrongUuid => self.wrong_uuid(file, packet),
            Damage::UnknownEventClass => self.event_fault(file, index, |event, data, start| {
                let stream = &self.class.streams[packet.head.stream_class];
                let mark = event
                    .marks
                    .iter()
                    .rev()
                    .find(|mark| mark.roles.contains(Roles::EVENT_CLASS_ID))?;
                let last = stream.events.iter().map(|class| class.id).max()?;
                set(data, start, mark, last.checked_add(1)?)?;
                Some(DecodeErrorKind::UnknownEventClass(last + 1))
            }),
            Damage::UnterminatedString => self.event_fault(file, index, |event, data, start| {
                let class = &self.class.streams[packet.head.stream_class].events[event.class];
                if !ends_with_string(class.payload.as_ref()?) {
                    return None;
                }
                let from = start + (event.end / 8) as usize - 1;
                let to = start + packet.head.content_length.div_ceil(8) as usize;
                data.get_mut(from..to)?.fill(b'A');
                Some(DecodeErrorKind::UnterminatedString)
            }),
            Damage::HugeLength => self.event_fault(file, index, |event, data, start| {
                let mark = event
                    .lengths
                    .iter()
                    .find(|mark| mark.length >= 16 && mark.fixed)?;
                let huge = (1u64 << 60).min(bits::mask(mark.length) as u64);
                set(data, start, mark, huge)?;
                Some(DecodeErrorKind::OutOfContent)
            }),
            Damage::ClockBackwards => clock_backwards(file, packet),
            Damage::EmptyStream | Damage::GarbageIndex | Damage::ForeignIndex => None,
        }
    }

    /// Changes an event record of the packet so that the record and the rest of the packet become
    /// unreadable. `change` gets the event, the file's data, and the packet's first byte; it
    /// returns the intended error.
    fn event_fault(
        &self,
        file: &File,
        index: usize,
        change: impl Fn(&Event, &mut Vec<u8>, usize) -> Option<DecodeErrorKind>,
    ) -> Option<Fault> {
        let packet = &file.stream.packets[index];
        let start = packet.offset as usize;
        let count = packet.events.len();
        for number in (0..count).map(|number| (number + count / 2) % count) {
            let event = &packet.events[number];
            let mut data = file.data.clone();
            let Some(wanted) = change(event, &mut data, start) else {
                continue;
            };
            // The change may have had another effect than intended.
            let read = Reader::new(&self.class).stream(&data);
            let Some(damaged) = read.packets.get(index) else {
                continue;
            };
            let is_as_wanted = damaged
                .error
                .as_ref()
                .is_some_and(|error| error.kind == wanted);
            if is_as_wanted && damaged.events.len() == number {
                let byte_offset = packet.offset + event.start / 8;
                let readable = (number as u64, number as u64);
                return Some(Fault {
                    data,
                    byte_offset,
                    readable,
                    next_is_found: true,
                });
            }
        }
        None
    }

    fn wrong_uuid(&self, file: &File, packet: &Packet) -> Option<Fault> {
        let uuid = self.class.uuid?;
        let start = packet.offset as usize;
        // The UUID is in the header, which ends before the first event.
        let head = file.data.get(start..)?;
        let at = head
            .windows(16)
            .take(256)
            .position(|window| window == uuid)?;
        let mut data = file.data.clone();
        *data.get_mut(start + at + 15)? ^= 0xff;
        let is_wrong = Reader::new(&self.class)
            .packet(&data[start..])
            .is_err_and(|error| error.kind == DecodeErrorKind::WrongUuid);
        // The packet is readable nevertheless.
        let readable = (packet.events.len() as u64, packet.events.len() as u64);
        is_wrong.then_some(Fault {
            data,
            byte_offset: packet.offset,
            readable,
            next_is_found: true,
        })
    }

    fn empty_stream(&self) -> Result<Option<Expected>> {
        let Some(file) = self
            .files
            .iter()
            .max_by_key(|file| file.stream.event_count())
        else {
            return Ok(None);
        };
        fs::write(&file.path, [])?;
        let left = self.events - file.stream.event_count() as u64;
        Ok(Some(Expected {
            damage: Damage::EmptyStream,
            file: file.path.clone(),
            packet_offset: 0,
            byte_offset: 0,
            events_at_least: left,
            events_at_most: left,
            is_harmless: false,
        }))
    }

    fn index_damage(
        &self,
        damage: Damage,
        file: &File,
        content: &[u8],
    ) -> Result<Option<Expected>> {
        let path = directory::index_path(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(&path, content)?;
        Ok(Some(Expected {
            damage,
            file: path,
            packet_offset: 0,
            byte_offset: 0,
            events_at_least: self.events,
            events_at_most: self.events,
            is_harmless: true,
        }))
    }

    fn garbage_index(&self) -> Result<Option<Expected>> {
        let Some(file) = self.files.first() else {
            return Ok(None);
        };
        let mut rng = crate::rng::Rng::new(1);
        let garbage: Vec<u8> = (0..1000).map(|_| rng.next_u64() as u8).collect();
        self.index_damage(Damage::GarbageIndex, file, &garbage)
    }

    fn foreign_index(&self) -> Result<Option<Expected>> {
        let index_of = |file: &File| {
            let entries: Vec<_> = file
                .stream
                .packets
                .iter()
                .map(|packet| self.index_entry(packet))
                .collect();
            index::encode(&entries)
        };
        let Some(first) = self.files.first() else {
            return Ok(None);
        };
        let own = index_of(first);
        let Some(foreign) = self.files.iter().map(index_of).find(|index| *index != own) else {
            return Ok(None);
        };
        self.index_damage(Damage::ForeignIndex, first, &foreign)
    }

    fn index_entry(&self, packet: &Packet) -> index::IndexEntry {
        let head = &packet.head;
        index::IndexEntry {
            offset: packet.offset,
            total_length: head.total_length,
            content_length: head.content_length,
            begin: head.begin.unwrap_or(0),
            end: head.end.unwrap_or(0),
            discarded_events: head.discarded_events.unwrap_or(0),
            stream_class_id: self.class.streams[head.stream_class].id,
            stream_id: head.stream_id.unwrap_or(0),
            sequence_number: head.sequence_number.unwrap_or(0),
        }
    }
}

fn mark_of(marks: &[Mark], role: Roles) -> Option<&Mark> {
    marks
        .iter()
        .find(|mark| mark.roles.contains(role) && mark.fixed)
}

/// Overwrites the value at the mark; `None` if the new value does not fit.
fn set(data: &mut [u8], packet: usize, mark: &Mark, value: u64) -> Option<()> {
    if !mark.fixed || u128::from(value) & bits::mask(mark.length) != u128::from(value) {
        return None;
    }
    let raw = u128::from(value);
    let raw = if mark.class.reversed_bits {
        bits::reverse(raw, mark.length)
    } else {
        raw
    };
    bits::write(
        data.get_mut(packet..)?,
        mark.position,
        mark.length,
        mark.class.byte_order,
        raw,
    )
}

/// Changes a field of header or context. The packet's events may be lost.
fn head_fault(
    file: &File,
    packet: &Packet,
    mark: &Mark,
    value: u64,
    next_is_found: bool,
) -> Option<Fault> {
    let mut data = file.data.clone();
    set(&mut data, packet.offset as usize, mark, value)?;
    let readable = (0, packet.events.len() as u64);
    Some(Fault {
        data,
        byte_offset: packet.offset,
        readable,
        next_is_found,
    })
}

/// Cuts the file within an event record of its last packet.
fn truncate(file: &File, index: usize) -> Option<Fault> {
    let packet = &file.stream.packets[index];
    if index + 1 != file.stream.packets.len() {
        return None;
    }
    let number = packet.events.len() / 2;
    let event = packet.events.get(number)?;
    let cut = packet.offset + event.end / 8 - u64::from(event.end.is_multiple_of(8));
    // Without lengths, a packet ends with its file, so a shorter file only has a shorter packet.
    let has_length = mark_of(&packet.head.marks, Roles::PACKET_TOTAL_LENGTH).is_some();
    if !has_length || cut * 8 < packet.offset * 8 + event.start {
        return None;
    }
    let data = file.data.get(..cut as usize)?.to_vec();
    let readable = (number as u64, number as u64);
    Some(Fault {
        data,
        byte_offset: packet.offset + event.start / 8,
        readable,
        next_is_found: true,
    })
}

/// Decreases a timestamp of 64 bits: an event's if there is one, else the packet's.
fn clock_backwards(file: &File, packet: &Packet) -> Option<Fault> {
    let start = packet.offset as usize;
    let is_full = |mark: &&Mark| {
        mark.roles.contains(Roles::CLOCK_TIMESTAMP) && mark.length == 64 && mark.fixed
    };
    let count = packet.events.len() as u64;
    for (earlier, event) in packet.events.iter().zip(packet.events.iter().skip(1)) {
        let (Some(time), Some(mark)) = (earlier.time, event.marks.iter().find(is_full)) else {
            continue;
        };
        let mut data = file.data.clone();
        set(&mut data, start, mark, time.checked_sub(1)?)?;
        let byte_offset = packet.offset + event.start / 8;
        return Some(Fault {
            data,
            byte_offset,
            readable: (count, count),
            next_is_found: true,
        });
    }
    let previous = file
        .stream
        .packets
        .iter()
        .rev()
        .find(|other| other.offset < packet.offset)?;
    let last = previous.events.last().and_then(|event| event.time)?;
    let mark = packet.head.marks.iter().find(is_full)?;
    let mut data = file.data.clone();
    set(&mut data, start, mark, last.checked_sub(1)?)?;
    Some(Fault {
        data,
        byte_offset: packet.offset,
        readable: (count, count),
        next_is_found: true,
    })
}

/// True if the last field of the structure is always a string of bytes.
fn ends_with_string(class: &FieldClass) -> bool {
    use tracebraid_ctf::schema::Encoding;
    match class {
        FieldClass::Str { encoding } => *encoding == Encoding::Utf8,
        FieldClass::Struct(class) => class
            .members
            .last()
            .is_some_and(|member| ends_with_string(&member.class)),
        _ => false,
    }
}
