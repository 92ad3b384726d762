//! Layouts: a schema compiled for decoding, once, when a trace is opened.
//!
//! Each field class becomes a [`Node`] with its registers resolved; each event class gets a
//! [`SkipProgram`] over its body, which for most classes is one addition; a [`FieldRef`] is the
//! way to one field.

pub mod header;
pub mod node;
mod order;
pub mod shape;
pub mod skip;
mod slots;

use std::sync::Arc;

use crate::bits::{Cursor, DecodeError, FixedRead};
use crate::schema::{EventClass, FieldClass, Name, Roles, Scope, StreamClass, TraceClass};
use header::FastHeader;
use node::{Node, NodeBuilder, NodeKind};
use skip::{SkipBuilder, SkipProgram};
use slots::SlotMap;

/// The compiled form of a trace's metadata.
#[derive(Clone, Debug)]
pub struct TraceLayout {
    /// What it was made from.
    pub class: Arc<TraceClass>,
    /// Packet header.
    pub packet_header: Option<Node>,
    /// Over the packet header, if that finds faults which walking over it does not.
    pub(crate) header_check: Option<SkipProgram>,
    /// Whether a byte might have bits of both byte orders.
    mixed: bool,
    /// Data stream classes, in the order of the schema.
    pub streams: Vec<StreamLayout>,
    /// Registers that decoding needs.
    pub slots: usize,
    /// Number of nodes: ids are less than this.
    pub nodes: u32,
}

/// The compiled form of a data stream class.
#[derive(Clone, Debug)]
pub struct StreamLayout {
    /// Its id.
    pub id: u64,
    /// Index of the clock class.
    pub clock: Option<usize>,
    /// Packet context.
    pub packet_context: Option<Node>,
    /// Over the packet context, if that finds faults which walking over it does not.
    pub(crate) context_check: Option<SkipProgram>,
    /// Event record header.
    pub event_header: Option<Node>,
    /// Over the event record header, if that finds faults which walking over it does not.
    pub(crate) header_check: Option<SkipProgram>,
    /// The header, where it can be read without walking and nothing else needs its fields.
    pub fast_header: Option<FastHeader>,
    /// Common context.
    pub common_context: Option<Node>,
    /// Event classes, in the order of the schema.
    pub events: Vec<EventLayout>,
    /// Alignment in bits of an event record's start.
    pub event_align: u32,
    ids: EventIds,
    /// What is known of the position behind the header: it is the second modulo the first.
    behind_header: (u64, u64),
    mixed: bool,
}

/// The compiled form of an event class.
#[derive(Clone, Debug)]
pub struct EventLayout {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: Name,
    /// Specific context.
    pub specific_context: Option<Node>,
    /// Payload.
    pub payload: Option<Node>,
    /// Over all that follows the header.
    pub body: SkipProgram,
}

/// Event classes by id.
#[derive(Clone, Debug, Default)]
struct EventIds {
    /// Class index + 1 by id, for small ids; 0 for none.
    small: Vec<u32>,
    large: std::collections::HashMap<u64, u32>,
}

const SMALL_ID: u64 = 1 << 16;

impl EventIds {
    fn new(events: &[EventLayout]) -> Self {
        let mut ids = EventIds::default();
        for (index, event) in events.iter().enumerate() {
            if event.id < SMALL_ID {
                let at = event.id as usize;
                if ids.small.len() <= at {
                    ids.small.resize(at + 1, 0);
                }
                ids.small[at] = index as u32 + 1;
            } else {
                ids.large.insert(event.id, index as u32);
            }
        }
        ids
    }

    #[inline(always)]
    fn get(&self, id: u64) -> Option<usize> {
        match self.small.get(id as usize) {
            Some(&index) if index > 0 => Some(index as usize - 1),
            _ => self.large.get(&id).map(|&index| index as usize),
        }
    }
}

/// What is known of the position at a packet's start: it is a multiple of all alignments.
const PACKET_START: (u64, u64) = (1 << 32, 0);
/// Nothing is known of the position.
const BIT: (u64, u64) = (1, 0);

/// The scopes whose fields one event record shares with the others of its packet or stream.
const SHARED: [Scope; 4] = [
    Scope::PacketHeader,
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::CommonContext,
];

impl TraceLayout {
    /// Compiles.
    pub fn new(class: Arc<TraceClass>) -> Self {
        let mut shared = SlotMap::default();
        for stream in &class.streams {
            let own = [
                &stream.packet_context,
                &stream.event_header,
                &stream.common_context,
            ];
            own.into_iter()
                .flatten()
                .for_each(|class| shared.gather(class, &SHARED));
            for event in &stream.events {
                let own = [&event.specific_context, &event.payload];
                own.into_iter()
                    .flatten()
                    .for_each(|class| shared.gather(class, &SHARED));
            }
        }
        class
            .packet_header
            .iter()
            .for_each(|class| shared.gather(class, &SHARED));
        let mut layout = TraceLayout {
            packet_header: None,
            header_check: None,
            mixed: order::is_mixed(&class),
            streams: Vec::new(),
            slots: shared.end(),
            nodes: 0,
            class: class.clone(),
        };
        layout.packet_header = layout.shared_node(Scope::PacketHeader, &shared, class.packet_header.as_ref());
        layout.header_check = layout.check(layout.packet_header.as_ref(), PACKET_START);
        layout.streams = class
            .streams
            .iter()
            .map(|stream| layout.stream(&shared, stream))
            .collect();
        layout
    }

    /// The bytes of `magic` as packets begin with them, if they do.
    pub(crate) fn leading_magic(&self, magic: u32) -> Option<[u8; 4]> {
        let NodeKind::Struct(members) = &self.packet_header.as_ref()?.kind else {
            return None;
        };
        let first = members.first()?;
        match &first.kind {
            NodeKind::Int(read, _) if first.roles.contains(Roles::PACKET_MAGIC) && read.length == 32 => {
                Some(if read.big {
                    magic.to_be_bytes()
                } else {
                    magic.to_le_bytes()
                })
            }
            _ => None,
        }
    }

    /// Registers for decoding with this layout, all zero.
    pub fn registers(&self) -> Vec<u64> {
        vec![0; self.slots.min(slots::MOST_SLOTS) + skip::SPECIAL_SLOTS]
    }

    fn shared_node(&mut self, scope: Scope, shared: &SlotMap, class: Option<&FieldClass>) -> Option<Node> {
        let builder = NodeBuilder {
            scope,
            slots: shared,
            shared,
            next: &mut self.nodes,
            path: Vec::new(),
        };
        class.map(|class| builder.root(class))
    }

    /// The skip program over a part, if it is needed before walking over it.
    fn check(&self, node: Option<&Node>, start: (u64, u64)) -> Option<SkipProgram> {
        let mut skip = SkipBuilder::at(start, self.mixed);
        skip.skip(node?);
        skip.finish().if_it_checks()
    }

    fn stream(&mut self, shared: &SlotMap, class: &StreamClass) -> StreamLayout {
        let packet_context = self.shared_node(Scope::PacketContext, shared, class.packet_context.as_ref());
        let event_header = self.shared_node(Scope::EventHeader, shared, class.event_header.as_ref());
        let common_context = self.shared_node(Scope::CommonContext, shared, class.common_context.as_ref());
        let event_align = event_header.as_ref().map_or(1, |node| node.align);
        let context_check = self.check(packet_context.as_ref(), BIT);
        let header_check = self.check(event_header.as_ref(), (u64::from(event_align), 0));
        let mut start = SkipBuilder::new(event_align, self.mixed);
        event_header.iter().for_each(|node| start.skip(node));
        let start = start.position();
        let common = common_context.as_ref();
        let events: Vec<_> = class
            .events
            .iter()
            .map(|event| self.event(shared, event, common, start))
            .collect();
        let fast_header = event_header.as_ref().and_then(header::recognise);
        StreamLayout {
            id: class.id,
            clock: class.default_clock,
            packet_context,
            context_check,
            header_check,
            mixed: self.mixed,
            fast_header: fast_header.filter(|_| !header_is_referred_to(class)),
            event_header,
            common_context,
            ids: EventIds::new(&events),
            events,
            event_align,
            behind_header: start,
        }
    }

    fn event(
        &mut self,
        shared: &SlotMap,
        class: &EventClass,
        common_context: Option<&Node>,
        start: (u64, u64),
    ) -> EventLayout {
        let mut slots = SlotMap::behind(shared);
        let own = [&class.specific_context, &class.payload];
        own.into_iter()
            .flatten()
            .for_each(|class| slots.gather(class, &[Scope::SpecificContext, Scope::Payload]));
        self.slots = self.slots.max(slots.end());
        let mut part = |scope, class: &Option<FieldClass>| {
            let builder = NodeBuilder {
                scope,
                slots: &slots,
                shared,
                next: &mut self.nodes,
                path: Vec::new(),
            };
            class.as_ref().map(|class| builder.root(class))
        };
        let specific_context = part(Scope::SpecificContext, &class.specific_context);
        let payload = part(Scope::Payload, &class.payload);
        let mut body = SkipBuilder::at(start, self.mixed);
        [common_context, specific_context.as_ref(), payload.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|part| body.skip(part));
        EventLayout {
            id: class.id,
            name: class.name.clone(),
            specific_context,
            payload,
            body: body.finish(),
        }
    }
}

/// True if anything behind the event header takes a length or a selector from it.
fn header_is_referred_to(class: &StreamClass) -> bool {
    let mut used = SlotMap::default();
    let contexts = class
        .events
        .iter()
        .flat_map(|event| [&event.specific_context, &event.payload]);
    std::iter::once(&class.common_context)
        .chain(contexts)
        .flatten()
        .for_each(|class| used.gather(class, &[Scope::EventHeader]));
    used.end() > 0
}

impl StreamLayout {
    /// A layout without fields and event classes.
    pub(crate) fn empty() -> Self {
        StreamLayout {
            id: 0,
            clock: None,
            packet_context: None,
            context_check: None,
            event_header: None,
            header_check: None,
            mixed: false,
            fast_header: None,
            common_context: None,
            events: Vec::new(),
            event_align: 1,
            ids: EventIds::default(),
            behind_header: (1, 0),
        }
    }

    /// Index in [`StreamLayout::events`] of the class with that id.
    #[inline(always)]
    pub fn event_by_id(&self, id: u64) -> Option<usize> {
        self.ids.get(id)
    }

    /// The packet context's member of that name.
    pub fn packet_context_member(&self, name: &str) -> Option<node::NodeId> {
        let NodeKind::Struct(members) = &self.packet_context.as_ref()?.kind else {
            return None;
        };
        members
            .iter()
            .find(|member| &*member.name == name)
            .map(|member| member.id)
    }

    /// The way to a field of an event class: `path` names members from the scope's root down
    /// through structs, and gives indices (decimal, below 256) of elements of arrays of fixed
    /// length. `None` if there is no such field, or it is not in one of the scopes behind the
    /// header, or the path leads through a variant, a sequence or an optional.
    pub fn field(&self, event: usize, scope: Scope, path: &[&str]) -> Option<FieldRef> {
        let event = self.events.get(event)?;
        let mut skip = SkipBuilder::at(self.behind_header, self.mixed);
        let parts = [
            (Scope::CommonContext, self.common_context.as_ref()),
            (Scope::SpecificContext, event.specific_context.as_ref()),
            (Scope::Payload, event.payload.as_ref()),
        ];
        for (at, part) in parts {
            let Some(mut node) = part else { continue };
            if at != scope {
                skip.skip(node);
                continue;
            }
            for step in path {
                if let NodeKind::Array(node::Length::Static(length), element) = &node.kind {
                    let index: u64 = step
                        .parse()
                        .ok()
                        .filter(|index| index < length && *index < MOST_INDEX)?;
                    skip.align(node.align);
                    (0..index).for_each(|_| skip.skip(element));
                    node = element;
                    continue;
                }
                let NodeKind::Struct(members) = &node.kind else {
                    return None;
                };
                skip.align(node.align);
                let target = members.iter().position(|member| &*member.name == *step)?;
                members[..target].iter().for_each(|member| skip.skip(member));
                node = &members[target];
            }
            skip.align(node.align);
            return Some(FieldRef {
                skip: skip.finish(),
                kind: node.kind.clone(),
            });
        }
        None
    }
}

/// Indices in paths are less than this: the way to an element grows with its index.
const MOST_INDEX: u64 = 256;

/// The way to one field of one event class, found once; used for many event records.
#[derive(Clone, Debug)]
pub struct FieldRef {
    skip: SkipProgram,
    kind: NodeKind,
}

impl FieldRef {
    /// What the field is.
    pub fn kind(&self) -> &NodeKind {
        &self.kind
    }

    /// Distance in bits from behind the header, if it does not depend on the data.
    pub fn offset(&self) -> Option<u64> {
        self.skip.constant()
    }

    /// Distance in bits from behind the header, if it does not depend on the data, and how to
    /// read there, if the field is a fixed-length integer.
    pub fn constant(&self) -> Option<(u64, FixedRead)> {
        match &self.kind {
            NodeKind::Int(read, _) | NodeKind::Bool(read) => Some((self.skip.constant()?, *read)),
            _ => None,
        }
    }

    /// The integer's raw value (signed ones sign-extended); `body` is behind the header.
    #[inline(always)]
    pub fn integer(&self, mut body: Cursor<'_>, slots: &mut [u64]) -> Result<u64, DecodeError> {
        self.skip.run_again(&mut body, slots)?;
        match &self.kind {
            NodeKind::Int(read, _)
            | NodeKind::Bool(read)
            | NodeKind::BitArray(read, _)
            | NodeKind::BitMap(read, _) => body.fixed(*read),
            NodeKind::VarInt(class) => body.leb128(class.signed),
            _ => Err(DecodeError::Length {
                at: body.pos,
                length: 0,
            }),
        }
    }

    /// The floating point number, rounded to `f64`; `body` is behind the header.
    pub fn float(&self, mut body: Cursor<'_>, slots: &mut [u64]) -> Result<f64, DecodeError> {
        self.skip.run_again(&mut body, slots)?;
        match &self.kind {
            NodeKind::Float(read) => Ok(crate::walk::float(body.fixed(*read)?, read.length)),
            _ => Err(DecodeError::Length {
                at: body.pos,
                length: 0,
            }),
        }
    }

    /// The string's or BLOB's bytes, up to the first null for strings; `body` is behind the header.
    pub fn bytes<'a>(&self, mut body: Cursor<'a>, slots: &mut [u64]) -> Result<&'a [u8], DecodeError> {
        self.skip.run_again(&mut body, slots)?;
        match &self.kind {
            NodeKind::Str(encoding) => body.terminated(encoding.unit_bytes()),
            NodeKind::SizedStr(length, encoding) => {
                let length = skip::count(*length, slots, &body, 8)?;
                Ok(crate::walk::until_null(
                    body.bytes(length)?,
                    encoding.unit_bytes(),
                ))
            }
            NodeKind::Blob(length) => {
                let length = skip::count(*length, slots, &body, 8)?;
                body.bytes(length)
            }
            _ => Err(DecodeError::Length {
                at: body.pos,
                length: 0,
            }),
        }
    }
}
