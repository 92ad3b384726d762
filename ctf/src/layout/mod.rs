//! Layouts: a schema compiled for decoding, once, when a trace is opened.
//!
//! Each scope becomes a [`Tree`] of nodes with resolved registers. Each event class gets a
//! [`SkipProgram`] over its body, which for most classes is a single addition. A [`FieldRef`]
//! locates a single field.

mod build;
mod compile;
mod field_ref;
pub mod header;
pub mod node;
mod op;
mod order;
pub mod shape;
pub mod skip;
mod slots;
pub mod tree;

pub use field_ref::FieldRef;

use std::borrow::Cow;
use std::sync::Arc;

use crate::schema::{EventClass, FieldClass, Name, Roles, Scope, StreamClass, TraceClass};
use build::TreeBuilder;
use compile::SkipBuilder;
use header::FastHeader;
use node::NodeKind;
use shape::Shape;
use skip::SkipProgram;
use slots::SlotMap;
use tree::{Part, Tree};

/// The compiled form of a trace's metadata.
#[derive(Clone, Debug)]
pub struct TraceLayout {
    /// The schema from which the layout was compiled.
    pub class: Arc<TraceClass>,
    /// Packet header.
    pub packet_header: Tree,
    /// Skips the packet header, if the program detects faults that walking does not.
    pub(crate) header_check: Option<SkipProgram>,
    /// Whether a byte may contain bits of both byte orders.
    mixed: bool,
    /// Data stream classes, in the order of the schema.
    pub streams: Vec<StreamLayout>,
    /// Number of registers that decoding needs.
    pub slots: usize,
    /// Number of nodes; ids are less than this.
    pub nodes: u32,
}

/// The compiled form of a data stream class.
#[derive(Clone, Debug)]
pub struct StreamLayout {
    /// Id of the data stream class.
    pub id: u64,
    /// Index of the clock class.
    pub clock: Option<usize>,
    /// Packet context.
    pub packet_context: Tree,
    /// Skips the packet context, if the program detects faults that walking does not.
    pub(crate) context_check: Option<SkipProgram>,
    /// Event record header.
    pub event_header: Tree,
    /// Skips the event record header, if the program detects faults that walking does not.
    pub(crate) header_check: Option<SkipProgram>,
    /// The header, if it can be read without walking and no other field refers to its fields.
    pub fast_header: Option<FastHeader>,
    /// Like `fast_header`, for each possible offset of an event record modulo the largest alignment
    /// of a header field, if the positions of fields depend on that offset; else empty.
    headers_by_offset: Box<[FastHeader]>,
    /// Common context.
    pub common_context: Tree,
    /// Event classes, in the order of the schema.
    pub events: Vec<EventLayout>,
    /// Alignment in bits of an event record's start.
    pub event_align: u32,
    /// Some timestamps in event record headers are full clock values, at which the clock may go
    /// back. Shorter timestamps can only advance it.
    pub has_full_timestamps: bool,
    ids: EventIds,
    place: BodyPlace,
    mixed: bool,
}

/// The compiled form of an event class.
#[derive(Clone, Debug)]
pub struct EventLayout {
    /// Id of the event class.
    pub id: u64,
    /// Name of the event class.
    pub name: Name,
    /// Specific context.
    pub specific_context: Tree,
    /// Payload.
    pub payload: Tree,
    /// Skips all parts after the header.
    pub body: SkipProgram,
}

/// Known positions of bodies, as `(modulus, residue)` in bits.
#[derive(Clone, Copy, Debug)]
struct BodyPlace {
    known: (u64, u64),
    /// The same if event records begin at byte boundaries; `None` if there is no fast header, or if
    /// its forms end at different bits of a byte.
    fast: Option<(u64, u64)>,
    /// The next event record begins at a byte boundary, wherever the body ends.
    ends_in_byte: bool,
}

impl BodyPlace {
    fn new(event_align: u32, known: (u64, u64), header: Option<&FastHeader>) -> Self {
        let residue = |header: &FastHeader| {
            let bits = u64::from(header.compact.bits) % 8;
            let other = header.extended.map(|(_, form)| u64::from(form.bits) % 8);
            other.is_none_or(|other| other == bits).then_some((8, bits))
        };
        let is_known = known.0 >= 8;
        BodyPlace {
            known,
            fast: header.and_then(|header| {
                if is_known {
                    Some(known)
                } else {
                    residue(header)
                }
            }),
            ends_in_byte: event_align >= 8,
        }
    }

    fn shape(self, body: &SkipProgram) -> Option<Shape> {
        let (_, residue) = self.fast?;
        body.shape(residue % 8, self.ends_in_byte)
    }
}

/// Event classes by id.
#[derive(Clone, Debug, Default)]
struct EventIds {
    /// Class index + 1 by id, for small ids; 0 if the id is unused.
    small: Vec<u32>,
    large: std::collections::HashMap<u64, u32>,
}

/// Ids below this are small, as are ids below four times the number of classes.
const SMALL_ID: u64 = 1 << 16;

impl EventIds {
    fn new(events: &[EventLayout]) -> Self {
        let mut ids = EventIds::default();
        let small = SMALL_ID.max(4 * events.len() as u64);
        for (index, event) in events.iter().enumerate() {
            if event.id < small {
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

/// Position of a packet's start: a multiple of all alignments.
const PACKET_START: (u64, u64) = (1 << 32, 0);
/// A position of which nothing is known.
const BIT: (u64, u64) = (1, 0);

/// The scopes of a data stream class, and those of an event record class.
const OF_STREAM: [Scope; 3] = [
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::CommonContext,
];
const OF_EVENT: [Scope; 2] = [Scope::SpecificContext, Scope::Payload];

impl TraceLayout {
    /// Compiles a trace class.
    pub fn new(class: Arc<TraceClass>) -> Self {
        let mut slots = SlotMap::default();
        let of_streams = class.streams.iter().flat_map(StreamClass::scopes);
        class
            .packet_header
            .iter()
            .chain(of_streams)
            .for_each(|class| slots.gather(class, &[Scope::PacketHeader]));
        let mut layout = TraceLayout {
            packet_header: Tree::default(),
            header_check: None,
            mixed: order::is_mixed(&class),
            streams: Vec::new(),
            slots: slots.end(),
            nodes: 0,
            class: class.clone(),
        };
        layout.packet_header = layout.tree(Scope::PacketHeader, &slots, &[], &class.packet_header);
        layout.header_check = layout.check(&layout.packet_header, PACKET_START);
        layout.streams = class
            .streams
            .iter()
            .map(|stream| layout.stream(&slots, stream))
            .collect();
        layout
    }

    /// The bytes of `magic` in the byte order of the packet header, if packets begin with a magic
    /// number.
    pub(crate) fn leading_magic(&self, magic: u32) -> Option<[u8; 4]> {
        let first = self.packet_header.root()?.parts().next()?;
        match &first.kind {
            NodeKind::Int(read, _)
                if first.roles.contains(Roles::PACKET_MAGIC) && read.length == 32 =>
            {
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

    /// Builds the nodes of a scope. Values of its fields are stored in slots of `own`; other values
    /// that it needs are in `outer`.
    fn tree(
        &mut self,
        scope: Scope,
        own: &SlotMap,
        outer: &[&SlotMap],
        class: &Option<FieldClass>,
    ) -> Tree {
        match class {
            Some(class) => TreeBuilder::new(scope, own, outer, &mut self.nodes).build(class),
            None => Tree::default(),
        }
    }

    /// The skip program over a scope, if it must run before the scope is walked over.
    fn check(&self, scope: &Tree, start: (u64, u64)) -> Option<SkipProgram> {
        let mut skip = SkipBuilder::at(start, self.mixed);
        skip.skip(scope.root()?);
        skip.finish().if_it_checks()
    }

    fn stream(&mut self, outer: &SlotMap, class: &StreamClass) -> StreamLayout {
        let mut own = SlotMap::behind(outer);
        class
            .scopes()
            .for_each(|class| own.gather(class, &OF_STREAM));
        self.slots = self.slots.max(own.end());
        let packet_context = self.tree(Scope::PacketContext, &own, &[outer], &class.packet_context);
        let event_header = self.tree(Scope::EventHeader, &own, &[outer], &class.event_header);
        let common_context = self.tree(Scope::CommonContext, &own, &[outer], &class.common_context);
        let header = event_header.root();
        let event_align = header.map_or(1, |root| root.align);
        let context_check = self.check(&packet_context, BIT);
        let header_check = self.check(&event_header, (u64::from(event_align), 0));
        let mut start = SkipBuilder::new(event_align, self.mixed);
        header.into_iter().for_each(|root| start.skip(root));
        let start = start.position();
        // The check of the byte order in the body depends on the last bits of the header.
        let is_usable = |fast: &FastHeader| header_check.is_none() || fast.is_whole();
        let header = header.filter(|_| !header_is_referred_to(class));
        let fast_header = header.and_then(header::recognise).filter(is_usable);
        let mut headers_by_offset = match fast_header {
            None => header.map(header::by_offset).unwrap_or_default(),
            Some(_) => Box::default(),
        };
        if !headers_by_offset.iter().all(is_usable) {
            headers_by_offset = Box::default();
        }
        let common = common_context.root();
        // The bit of a byte at which the header ends is the same for all offsets.
        let any_header = fast_header.as_ref().or(headers_by_offset.first());
        let place = BodyPlace::new(event_align, start, any_header);
        let events: Vec<_> = class
            .events
            .iter()
            .map(|event| self.event([&own, outer], event, common, place))
            .collect();
        let has_full_timestamps = event_header
            .all()
            .any(|part| part.node().is_full_timestamp());
        StreamLayout {
            id: class.id,
            clock: class.default_clock,
            packet_context,
            context_check,
            header_check,
            mixed: self.mixed,
            fast_header,
            headers_by_offset,
            event_header,
            common_context,
            ids: EventIds::new(&events),
            events,
            event_align,
            has_full_timestamps,
            place,
        }
    }

    fn event(
        &mut self,
        outer: [&SlotMap; 2],
        class: &EventClass,
        common_context: Option<Part<'_>>,
        place: BodyPlace,
    ) -> EventLayout {
        let [of_stream, _] = outer;
        let mut own = SlotMap::behind(of_stream);
        let classes = [&class.specific_context, &class.payload];
        classes
            .into_iter()
            .flatten()
            .for_each(|class| own.gather(class, &OF_EVENT));
        self.slots = self.slots.max(own.end());
        let specific_context = self.tree(
            Scope::SpecificContext,
            &own,
            &outer,
            &class.specific_context,
        );
        let payload = self.tree(Scope::Payload, &own, &outer, &class.payload);
        let roots = [common_context, specific_context.root(), payload.root()];
        let program = |start| {
            let mut body = SkipBuilder::at(start, self.mixed);
            roots.into_iter().flatten().for_each(|root| body.skip(root));
            body.finish()
        };
        let mut body = program(place.known);
        // Shapes of bodies of constant size, of which there may be very many, are made on demand.
        if body.constant().is_none() {
            let shape = match place.fast {
                Some(start) if start != place.known => place.shape(&program(start)),
                _ => place.shape(&body),
            };
            body.keep_shape(shape);
        }
        EventLayout {
            id: class.id,
            name: class.name.clone(),
            body,
            specific_context,
            payload,
        }
    }
}

/// True if any field after the event header takes its length or selector from the header.
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
            packet_context: Tree::default(),
            context_check: None,
            event_header: Tree::default(),
            header_check: None,
            mixed: false,
            fast_header: None,
            headers_by_offset: Box::default(),
            common_context: Tree::default(),
            events: Vec::new(),
            event_align: 1,
            has_full_timestamps: false,
            ids: EventIds::default(),
            place: BodyPlace::new(1, BIT, None),
        }
    }

    /// Index in [`StreamLayout::events`] of the class with this id.
    #[inline(always)]
    pub fn event_by_id(&self, id: u64) -> Option<usize> {
        self.ids.get(id)
    }

    /// The shape of the body of an event class of this stream class, if it has one.
    pub(crate) fn shape<'e>(&self, event: &'e EventLayout) -> Option<Cow<'e, Shape>> {
        match event.body.constant() {
            Some(_) => self.place.shape(&event.body).map(Cow::Owned),
            None => event.body.kept_shape().map(Cow::Borrowed),
        }
    }

    /// The shape of an event class if its body begins `remainder` bits past a multiple of `modulus`
    /// bits; `start` is `(modulus, remainder)`.
    pub(crate) fn shape_from(&self, event: &EventLayout, start: (u64, u64)) -> Option<Shape> {
        let mut body = SkipBuilder::at(start, self.mixed);
        self.bodies(event)
            .filter_map(Tree::root)
            .for_each(|root| body.skip(root));
        body.finish().shape(start.1 % 8, self.place.ends_in_byte)
    }

    /// The header of event records at each multiple of their alignment below a common modulus. A
    /// single element if the header is the same at all offsets; empty if the header must be walked
    /// over.
    pub(crate) fn fast_headers(&self) -> &[FastHeader] {
        match &self.fast_header {
            Some(everywhere) => std::slice::from_ref(everywhere),
            None => &self.headers_by_offset,
        }
    }

    /// The largest alignment of a field of the header or of any body, in bits.
    pub(crate) fn field_align(&self) -> u32 {
        let trees = self.events.iter().flat_map(|event| self.bodies(event));
        trees
            .chain([&self.event_header])
            .flat_map(Tree::all)
            .map(|part| part.align)
            .max()
            .unwrap_or(1)
    }

    /// The scopes after the header.
    fn bodies<'e>(&'e self, event: &'e EventLayout) -> impl Iterator<Item = &'e Tree> {
        [
            &self.common_context,
            &event.specific_context,
            &event.payload,
        ]
        .into_iter()
    }

    /// The member of the packet context with this name.
    pub fn packet_context_member(&self, name: &str) -> Option<node::NodeId> {
        let mut members = self.packet_context.root()?.parts();
        members
            .find(|member| member.name == *name)
            .map(|member| member.id)
    }
}
