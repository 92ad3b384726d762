//! The head of a packet: header and context of fixed-length integers, laid out once.

use super::bits::{fits_signed, put};
use super::error::WriteError;
use crate::bits::FixedRead;
use crate::layout::TraceLayout;
use crate::layout::node::{Length, Node, NodeKind};
use crate::layout::tree::Tree;
use crate::packet::MAGIC;
use crate::schema::{Name, Roles, Uuid};

/// Content of a field of the head.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HeadField {
    Magic,
    StreamClass,
    Stream,
    Total,
    Content,
    Sequence,
    Discarded,
    End,
    Begin,
    /// A value that the caller sets by name.
    Value(Name),
}

/// Roles in order of precedence.
const ROLES: [(Roles, HeadField); 9] = [
    (Roles::PACKET_MAGIC, HeadField::Magic),
    (Roles::STREAM_CLASS_ID, HeadField::StreamClass),
    (Roles::STREAM_ID, HeadField::Stream),
    (Roles::PACKET_TOTAL_LENGTH, HeadField::Total),
    (Roles::PACKET_CONTENT_LENGTH, HeadField::Content),
    (Roles::PACKET_SEQUENCE_NUMBER, HeadField::Sequence),
    (Roles::DISCARDED_EVENTS, HeadField::Discarded),
    (Roles::PACKET_END_TIMESTAMP, HeadField::End),
    (Roles::CLOCK_TIMESTAMP, HeadField::Begin),
];

/// Largest size of a head in bits, larger than that of any tracer.
const MOST_BITS: u64 = 1 << 19;

/// An integer of the head.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) what: HeadField,
    /// Position in bits from the packet's start.
    at: u64,
    pub(super) how: FixedRead,
}

/// The head of all packets of a stream class.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    /// Bytes of the head, with all values that are the same in all packets.
    pub(super) bytes: Vec<u8>,
    /// Size of the head in bits.
    pub(super) bits: u64,
    pub(super) spots: Vec<Spot>,
    /// Byte order of the last field.
    pub(super) big: bool,
}

impl Head {
    /// Lays out the head of the only stream class of a layout.
    pub(super) fn new(layout: &TraceLayout) -> Result<Head, WriteError> {
        let mut head = Head::default();
        head.scope(&layout.packet_header, layout.class.uuid)?;
        if let Some(stream) = layout.streams.first() {
            head.scope(&stream.packet_context, layout.class.uuid)?;
            head.set_all(&HeadField::StreamClass, stream.id)?;
            head.check(stream.clock.is_some())?;
        }
        head.set_all(&HeadField::Magic, MAGIC)?;
        Ok(head)
    }

    fn scope(&mut self, tree: &Tree, uuid: Option<Uuid>) -> Result<(), WriteError> {
        let mut all = tree.all();
        while let Some(part) = all.next() {
            let node = part.node();
            self.bits = self.bits.next_multiple_of(u64::from(node.align.max(1)));
            match &node.kind {
                NodeKind::Struct(_) => {}
                NodeKind::Int(how, _) => self.integer(node, *how)?,
                NodeKind::Array(Length::Static(16)) | NodeKind::Blob(Length::Static(16))
                    if node.roles.contains(Roles::METADATA_UUID)
                        && self.bits.is_multiple_of(8)
                        && self.bits <= MOST_BITS =>
                {
                    self.grow(128);
                    let start = (self.bits / 8) as usize;
                    if let Some(place) = self.bytes.get_mut(start..start + 16) {
                        place.copy_from_slice(&uuid.unwrap_or_default());
                    }
                    self.bits += 128;
                    // The element of the array.
                    for _ in part.inside() {
                        all.next();
                    }
                }
                _ => {
                    let what = format!(
                        "field `{}` of packet heads, which is not a fixed-length integer",
                        node.name
                    );
                    return Err(WriteError::unsupported(what));
                }
            }
        }
        Ok(())
    }

    fn grow(&mut self, bits: u64) {
        let bytes = (self.bits + bits).div_ceil(8) as usize;
        self.bytes.resize(bytes.max(self.bytes.len()), 0);
    }

    fn integer(&mut self, node: &Node, how: FixedRead) -> Result<(), WriteError> {
        if self.bits & 7 != 0 && how.big != self.big {
            let what = format!(
                "field `{}`, which shares a byte with a field of the other byte order",
                node.name
            );
            return Err(WriteError::unsupported(what));
        }
        if self.bits > MOST_BITS {
            return Err(WriteError::unsupported(format!(
                "heads of more than {} bytes",
                MOST_BITS / 8
            )));
        }
        let known = ROLES.iter().find(|(role, _)| node.roles.contains(*role));
        let what = known.map_or_else(
            || HeadField::Value(node.name.clone()),
            |(_, what)| what.clone(),
        );
        self.grow(u64::from(how.length));
        self.spots.push(Spot {
            what,
            at: self.bits,
            how,
        });
        self.bits += u64::from(how.length);
        self.big = how.big;
        Ok(())
    }

    /// Checks that the head contains all fields that this writer needs.
    fn check(&self, has_clock: bool) -> Result<(), WriteError> {
        let spot = |what| self.spots.iter().find(|spot| spot.what == what);
        for (what, name) in [
            (HeadField::Total, "size"),
            (HeadField::Content, "content size"),
        ] {
            if spot(what).is_none() {
                return Err(WriteError::unsupported(format!(
                    "packets without a field for their {name}"
                )));
            }
        }
        if has_clock && spot(HeadField::Begin).is_none() {
            return Err(WriteError::unsupported(
                "a clock, but packets without a begin timestamp",
            ));
        }
        let times = self
            .spots
            .iter()
            .filter(|spot| matches!(spot.what, HeadField::Begin | HeadField::End));
        if times.clone().any(|spot| spot.how.length < 64) {
            return Err(WriteError::unsupported(
                "packet timestamps of less than 64 bits",
            ));
        }
        Ok(())
    }

    /// Sets a value that is the same in all packets, in all fields that contain it.
    fn set_all(&mut self, what: &HeadField, value: u64) -> Result<(), WriteError> {
        for spot in self.spots.iter().filter(|spot| spot.what == *what) {
            if !super::bits::fits_unsigned(spot.how, value) {
                let what = format!(
                    "{value} in a field of packet heads of {} bits",
                    spot.how.length
                );
                return Err(WriteError::unsupported(what));
            }
            put(&mut self.bytes, spot.at, spot.how, value);
        }
        Ok(())
    }

    /// Sets the id of the stream within its class.
    pub(super) fn set_stream(&mut self, id: u64) -> Result<(), WriteError> {
        self.set_all(&HeadField::Stream, id)
    }

    /// Sets a value by name.
    pub(super) fn set_value(&mut self, name: &str, value: i64) -> Result<(), WriteError> {
        let is_it = |spot: &&Spot| matches!(&spot.what, HeadField::Value(known) if *known == *name);
        let Some(spot) = self.spots.iter().find(is_it) else {
            let message = format!("the packet context has no field `{name}` that can be set");
            return Err(WriteError::Misuse(message));
        };
        if !fits_signed(spot.how, value) {
            let message = format!("{value} does not fit field `{name}` of the packet context");
            return Err(WriteError::Misuse(message));
        }
        put(&mut self.bytes, spot.at, spot.how, value as u64);
        Ok(())
    }

    /// Names of the values that the caller must set.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.spots.iter().filter_map(|spot| match &spot.what {
            HeadField::Value(name) => Some(name),
            _ => None,
        })
    }

    /// Size in bits of the largest packet whose sizes fit the fields of the head.
    pub(super) fn most_bits(&self) -> u64 {
        let sizes = self
            .spots
            .iter()
            .filter(|spot| matches!(spot.what, HeadField::Total | HeadField::Content));
        let widths = sizes.map(|spot| u64::MAX >> (64 - u32::from(spot.how.length)));
        widths.min().unwrap_or(0)
    }

    /// Sets the fields that differ from packet to packet.
    pub(super) fn finish(&self, packet: &mut [u8], facts: &PacketFacts) {
        for spot in &self.spots {
            let value = match spot.what {
                HeadField::Total => facts.total,
                HeadField::Content => facts.content,
                HeadField::Sequence => facts.sequence,
                HeadField::Discarded => facts.discarded,
                HeadField::End => facts.end,
                HeadField::Begin => facts.begin,
                _ => continue,
            };
            put(packet, spot.at, spot.how, value);
        }
    }
}

/// Values of a packet's context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketFacts {
    /// Size of the packet in bits.
    pub(super) total: u64,
    /// Size of the content in bits.
    pub(super) content: u64,
    pub(super) sequence: u64,
    pub(super) discarded: u64,
    /// Clock value at the beginning, in cycles.
    pub(super) begin: u64,
    /// Clock value at the end, in cycles.
    pub(super) end: u64,
}
