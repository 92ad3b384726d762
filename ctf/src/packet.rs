//! The head of a packet: its header and its context.

use crate::bits::{Cursor, DecodeError};
use crate::layout::node::{Node, NodeId};
use crate::layout::skip::{self, SkipProgram};
use crate::layout::{StreamLayout, TraceLayout};
use crate::schema::{CtfVersion, IntClass, Roles, Uuid};
use crate::walk::{Visitor, walk};

/// The magic number of data packets.
pub const MAGIC: u64 = 0xC1FC_1FC1;

/// Decoded header and context of a packet.
#[derive(Clone, Debug, Default)]
pub struct PacketHead {
    /// Index of the data stream class.
    pub stream_class: usize,
    /// Id of the data stream within its class.
    pub stream_id: Option<u64>,
    /// Magic number of the packet.
    pub magic: Option<u64>,
    /// UUID of the trace.
    pub uuid: Option<Uuid>,
    /// The UUID differs from that of the metadata: the packet may belong to another trace.
    pub is_foreign: bool,
    /// Length of the whole packet in bits.
    pub total_bits: Option<u64>,
    /// Length of the content in bits.
    pub content_bits: Option<u64>,
    /// Clock value at the beginning, in cycles.
    pub begin: Option<u64>,
    /// Clock value at the end, in cycles.
    pub end: Option<u64>,
    /// Running count of discarded event records.
    pub discarded: Option<u64>,
    /// Width of the `discarded` counter in bits.
    pub discarded_width: u8,
    /// Sequence number of the packet.
    pub sequence: Option<u64>,
    /// Width of the `sequence` counter in bits.
    pub sequence_width: u8,
    /// Position after the head, in bits.
    pub end_of_head: u64,
    /// Other integers of the context, by node.
    pub values: Vec<(NodeId, u64)>,
}

/// The reason why a packet's head was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// A field could not be decoded.
    Decode(DecodeError),
    /// The magic number is wrong.
    Magic(u64),
    /// The UUID is not that of the metadata, and the packet's size is not plausible either.
    Uuid,
    /// The metadata defines no data stream class with this id.
    UnknownStreamClass(u64),
}

impl std::fmt::Display for HeadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeadError::Decode(error) => {
                write!(f, "the packet's header or context is damaged: {error}")
            }
            HeadError::Magic(magic) if *magic == u64::from((MAGIC as u32).swap_bytes()) => {
                write!(
                    f,
                    "not a packet: its magic number is {magic:#x}, which is {MAGIC:#x} in the other byte order: \
                     the byte order of the stream seems to differ from that in the metadata"
                )
            }
            HeadError::Magic(magic) => {
                write!(
                    f,
                    "not a packet: its magic number is {magic:#x}, which should be {MAGIC:#x}"
                )
            }
            HeadError::Uuid => write!(
                f,
                "the packet belongs to another trace: its UUID is not that of the metadata, and its size is wrong too"
            ),
            HeadError::UnknownStreamClass(id) => {
                write!(f, "the metadata has no data stream class with id {id}")
            }
        }
    }
}

#[derive(Default)]
struct HeadVisitor {
    head: PacketHead,
    class_id: Option<u64>,
    uuid_bytes: Vec<u8>,
    in_uuid: bool,
    context: bool,
    clock: u64,
}

/// Largest number of context integers that are stored: arrays would multiply the size of the head.
const MOST_VALUES: usize = 1024;

impl HeadVisitor {
    fn number(&mut self, node: &Node, raw: u64, width: u32) {
        let (head, roles) = (&mut self.head, node.roles);
        let clock_width = width;
        let width = width.min(64) as u8;
        if self.in_uuid {
            if self.uuid_bytes.len() < 16 {
                self.uuid_bytes.push(raw as u8);
            }
            return;
        }
        if roles.is_empty() {
            if self.context && head.values.len() < MOST_VALUES {
                head.values.push((node.id, raw));
            }
            return;
        }
        if roles.contains(Roles::PACKET_MAGIC) {
            head.magic = Some(raw);
        }
        if roles.contains(Roles::STREAM_CLASS_ID) {
            self.class_id = Some(raw);
        }
        if roles.contains(Roles::STREAM_ID) {
            head.stream_id = Some(raw);
        }
        if roles.contains(Roles::PACKET_TOTAL_LENGTH) {
            head.total_bits = Some(raw);
        }
        if roles.contains(Roles::PACKET_CONTENT_LENGTH) {
            head.content_bits = Some(raw);
        }
        if roles.contains(Roles::PACKET_SEQUENCE_NUMBER) {
            (head.sequence, head.sequence_width) = (Some(raw), width);
        }
        if roles.contains(Roles::DISCARDED_EVENTS) {
            (head.discarded, head.discarded_width) = (Some(raw), width);
        }
        if roles.contains(Roles::PACKET_END_TIMESTAMP) {
            head.end = Some(raw);
        }
        if roles.contains(Roles::CLOCK_TIMESTAMP) {
            self.clock = advance(self.clock, raw, clock_width);
            head.begin = Some(self.clock);
        }
    }
}

/// Number of significant bits of a variable-length integer of this number of bytes.
pub(crate) fn variable_width(bytes: u64) -> u32 {
    bytes.saturating_mul(7).min(64) as u32
}

impl Visitor for HeadVisitor {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        self.number(node, raw, class.length);
    }
    fn variable_integer(&mut self, node: &Node, _: &IntClass, raw: u64, bytes: u64) {
        // Counters of variable length do not wrap below 64 bits.
        let is_clock = node.roles.contains(Roles::CLOCK_TIMESTAMP);
        self.number(node, raw, if is_clock { variable_width(bytes) } else { 64 });
    }
    fn blob(&mut self, node: &Node, bytes: &[u8]) {
        if node.roles.contains(Roles::METADATA_UUID) {
            self.head.uuid = bytes.try_into().ok();
        }
    }
    fn begin_array(&mut self, node: &Node, _: u64) {
        self.in_uuid = node.roles.contains(Roles::METADATA_UUID);
    }
    fn end_array(&mut self, _: &Node) {
        if std::mem::take(&mut self.in_uuid) {
            self.head.uuid = self.uuid_bytes.as_slice().try_into().ok();
        }
    }
}

/// The new value of the clock after a field of `width` bits updates its low bits. The clock never
/// goes back, so a smaller low part means that it wrapped once (CTF 1.8 section 8, CTF2-SPEC-2.0
/// clock value update procedure).
#[inline(always)]
pub fn advance(clock: u64, low: u64, width: u32) -> u64 {
    if width >= 64 {
        return low;
    }
    let mask = (1u64 << width) - 1;
    let high = clock & !mask;
    let value = high | low & mask;
    if value < clock {
        value.wrapping_add(mask + 1)
    } else {
        value
    }
}

impl PacketHead {
    /// Decodes and checks a packet's head. `clock` is the stream's clock value before the packet,
    /// for truncated timestamps; 0 for the first packet. A UUID other than that of the metadata is
    /// not an error: see [`PacketHead::is_foreign`].
    ///
    /// # Errors
    /// If the data is not a packet of this trace, or is truncated.
    pub fn decode(
        layout: &TraceLayout,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
        clock: u64,
    ) -> Result<PacketHead, HeadError> {
        Self::decode_as(layout, cursor, slots, clock, true)
    }

    /// Like [`PacketHead::decode`], with any magic number.
    pub(crate) fn decode_any(
        layout: &TraceLayout,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
    ) -> Result<PacketHead, HeadError> {
        Self::decode_as(layout, cursor, slots, 0, false)
    }

    fn decode_as(
        layout: &TraceLayout,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
        clock: u64,
        check_magic: bool,
    ) -> Result<PacketHead, HeadError> {
        let mut visitor = HeadVisitor {
            clock,
            ..HeadVisitor::default()
        };
        skip::start_packet(slots);
        if let Some(header) = layout.packet_header.root() {
            check(layout.header_check.as_ref(), cursor, slots)?;
            let result = walk(header, cursor, slots, &mut visitor);
            // A wrong magic number explains all other faults.
            if let Some(magic) = visitor
                .head
                .magic
                .filter(|&magic| check_magic && magic != MAGIC)
            {
                return Err(HeadError::Magic(magic));
            }
            result.map_err(HeadError::Decode)?;
        }
        let expected = layout
            .class
            .uuid
            .filter(|_| layout.class.version == CtfVersion::V1_8 || visitor.head.uuid.is_some());
        visitor.head.is_foreign = expected
            .zip(visitor.head.uuid)
            .is_some_and(|(expected, found)| expected != found);
        let class = stream_class(layout, visitor.class_id)?;
        visitor.head.stream_class = class;
        if let Some(context) = layout
            .streams
            .get(class)
            .and_then(|stream| stream.packet_context.root())
        {
            visitor.context = true;
            check(
                layout
                    .streams
                    .get(class)
                    .and_then(|stream| stream.context_check.as_ref()),
                cursor,
                slots,
            )?;
            walk(context, cursor, slots, &mut visitor).map_err(HeadError::Decode)?;
        }
        visitor.head.end_of_head = cursor.pos;
        Ok(visitor.head)
    }

    /// The integer of the context with this name, at the top level.
    pub fn value(&self, stream: &StreamLayout, name: &str) -> Option<u64> {
        let node = stream.packet_context_member(name)?;
        self.values
            .iter()
            .find(|(id, _)| *id == node)
            .map(|(_, value)| *value)
    }
}

/// Rejects a head that would take too long to walk over, and faults that only a skip program
/// detects.
fn check(
    program: Option<&SkipProgram>,
    cursor: &Cursor<'_>,
    slots: &mut [u64],
) -> Result<(), HeadError> {
    match program.map(|program| program.run(&mut cursor.clone(), slots)) {
        Some(Err(error @ (DecodeError::EmptyElements { .. } | DecodeError::ByteOrder { .. }))) => {
            Err(HeadError::Decode(error))
        }
        // Other faults are found again by walking, in the order of the fields.
        _ => Ok(()),
    }
}

fn stream_class(layout: &TraceLayout, id: Option<u64>) -> Result<usize, HeadError> {
    match id {
        // Packets without a class id belong to the only data stream class, whatever its id.
        None if layout.streams.len() == 1 => Ok(0),
        id => {
            let id = id.unwrap_or(0);
            layout
                .streams
                .iter()
                .position(|stream| stream.id == id)
                .ok_or(HeadError::UnknownStreamClass(id))
        }
    }
}
