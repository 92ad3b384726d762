//! The reference reader: a slow, recursive decoder that follows the schema field by field, with
//! nothing compiled, cached or skipped. The fast reader is tested against it.
//!
//! In: a [`TraceClass`] and the bytes of one data stream. Out: every packet and every event
//! record with all of its values, their positions, and the fields that have roles.

mod fields;
mod packet;
mod text;

pub use fields::Targets;
pub use packet::{Event, PacketHead, PacketReader};

use std::fmt;
use std::sync::Arc;
use tracebraid_ctf::schema::{ClockClass, IntClass, Roles, TraceClass};

/// Why the rest of a packet cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// A field ends after the packet's content.
    OutOfContent,
    /// A string has no terminator before the content's end.
    UnterminatedString,
    /// No event record class of the stream has this id.
    UnknownEventClass(u64),
    /// No stream class has this id.
    UnknownStreamClass(u64),
    /// No option of a variant is selected by this value.
    NoSuchOption(i128),
    /// A length or selector field was not decoded before it is needed.
    MissingDependency,
    /// A length is negative, or larger than any packet.
    BadLength(i128),
    /// A variable-length integer has more than 64 bits.
    IntegerTooLarge,
    /// The packet's magic number is wrong.
    BadMagic(u64),
    /// The packet's UUID differs from the trace's.
    WrongUuid,
    /// The packet's total length (in bits) is zero, not a number of bytes, or less than its
    /// content.
    BadPacketLength {
        /// Total length.
        total: u64,
        /// Content length.
        content: u64,
    },
    /// The content ends (in bits) before the packet's header and context do.
    ContentTooShort(u64),
    /// The file ends before the packet; holds the packet's total length in bits.
    Truncated(u64),
    /// Classes are nested too deeply.
    TooDeep,
    /// An event record has no size, so that their number would be infinite.
    EmptyEvent,
}

/// An error with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Bits from the packet's start.
    pub position: u64,
    /// The kind of error.
    pub kind: DecodeErrorKind,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at bit {} of the packet: {:?}", self.position, self.kind)
    }
}

impl std::error::Error for DecodeError {}

/// A decoded integer that has roles.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Its roles.
    pub roles: Roles,
    /// Position in bits from the packet's start.
    pub position: u64,
    /// Its value.
    pub value: u64,
    /// Its length in bits; of a variable-length integer, 7 for each of its bytes.
    pub length: u32,
    /// False for a variable-length integer, which cannot be changed in place.
    pub fixed: bool,
    /// Its class.
    pub class: Arc<IntClass>,
}

/// A packet with all of its event records.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Offset of the packet in its stream, in bytes.
    pub offset: u64,
    /// Header and context.
    pub head: PacketHead,
    /// Its event records.
    pub events: Vec<Event>,
    /// The error that ended the packet before its content's end.
    pub error: Option<DecodeError>,
}

/// A data stream, decoded as far as possible.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Its packets.
    pub packets: Vec<Packet>,
    /// The error that ended the stream early: byte offset of the packet that could not be started,
    /// and its error.
    pub error: Option<(u64, DecodeError)>,
}

impl Stream {
    /// Number of event records.
    pub fn event_count(&self) -> usize {
        self.packets.iter().map(|packet| packet.events.len()).sum()
    }

    /// The first error, of the stream or of one of its packets.
    pub fn first_error(&self) -> Option<&DecodeError> {
        let in_packets = self.packets.iter().find_map(|packet| packet.error.as_ref());
        in_packets.or(self.error.as_ref().map(|(_, error)| error))
    }
}

/// Decodes the streams of one trace.
#[derive(Debug)]
pub struct Reader<'a> {
    class: &'a TraceClass,
    targets: Targets,
}

impl<'a> Reader<'a> {
    /// A reader for the trace that `class` describes.
    pub fn new(class: &'a TraceClass) -> Self {
        Reader {
            class,
            targets: Targets::of(class),
        }
    }

    /// Starts to decode the packet at the start of `data`, which may extend beyond the packet.
    ///
    /// The stream's clock starts at 0 in each packet: truncated timestamps can only refer to the
    /// packet's own beginning.
    ///
    /// # Errors
    /// If header or context cannot be decoded, or their lengths are inconsistent.
    pub fn packet<'r>(&'r self, data: &'r [u8]) -> Result<PacketReader<'r>, DecodeError> {
        PacketReader::start(self.class, &self.targets, data)
    }

    /// Decodes a whole stream.
    ///
    /// An error within a packet of known length ends only that packet.
    pub fn stream(&self, data: &[u8]) -> Stream {
        let mut stream = Stream::default();
        let mut offset = 0usize;
        while let Some(rest) = data.get(offset..).filter(|rest| !rest.is_empty()) {
            let mut reader = match self.packet(rest) {
                Ok(reader) => reader,
                Err(error) => {
                    stream.error = Some((offset as u64, error));
                    break;
                }
            };
            let mut events = Vec::new();
            let mut error = None;
            while let Some(event) = reader.next_event() {
                match event {
                    Ok(event) => events.push(event),
                    Err(reason) => error = Some(reason),
                }
            }
            let head = reader.into_head();
            let length = (head.total_length / 8) as usize;
            stream.packets.push(Packet {
                offset: offset as u64,
                head,
                events,
                error,
            });
            offset = offset.saturating_add(length);
        }
        stream
    }
}

/// Time in nanoseconds from the clock's origin, rounded down.
pub fn nanoseconds_from_origin(clock: &ClockClass, cycles: u64) -> i128 {
    let frequency = i128::from(clock.frequency.max(1));
    let all_cycles = i128::from(clock.offset_cycles) + i128::from(cycles);
    i128::from(clock.offset_seconds) * 1_000_000_000
        + (all_cycles * 1_000_000_000).div_euclid(frequency)
}
