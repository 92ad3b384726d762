//! Assembles the blocks of streams and events to classes.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::ast::Path;
use super::blocks::{Event, Stream};
use super::build::{Budget, Builder, Found, Roots};
use super::error::{Res, error};
use super::sema::Limits;
use super::types::{ClockUse, TyRef};
use crate::schema::{
    ClockClass, ClockIndex, EventClass, FieldClass, Names, Roles, Scope, StreamClass,
};

/// The default clock of timestamps without a clock mapping; `None` if there are several clocks.
fn implicit_clock(clocks: &[ClockClass]) -> Option<ClockIndex> {
    if clocks.len() <= 1 { Some(0) } else { None }
}

/// The classes of the `event` blocks, as far as they do not depend on the stream.
pub(super) struct Events<'a> {
    classes: Vec<EventClass>,
    /// Further properties of each event.
    notes: Vec<Note<'a>>,
    budget: Budget,
    names: Names,
}

/// Properties of an event besides its class.
struct Note<'a> {
    at: u32,
    /// Whether the event has an id, and whether it has an id or a name.
    has_id: bool,
    is_declared: bool,
    has_scopes: bool,
    /// Some field may take bits.
    has_bits: bool,
    /// With the byte offset of its value.
    stream_id: Option<(u64, u32)>,
    clock: ClockUse,
    /// Context and fields, if they refer to fields of the stream. They are built together with the
    /// stream.
    waiting: Option<Box<[Option<TyRef<'a>>; 2]>>,
}

impl<'a> Events<'a> {
    pub(super) fn new(limits: Limits) -> Self {
        Events {
            classes: Vec::new(),
            notes: Vec::new(),
            budget: Budget::new(limits.text),
            names: Names::default(),
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: Event<'a>) -> Res<()> {
        let types = [event.context, event.fields];
        let facts = || types.iter().flatten().map(|ty| &ty.facts);
        let mut note = Note {
            at: event.at,
            has_id: event.id.is_some(),
            is_declared: event.name.is_some() || event.id.is_some(),
            has_scopes: facts().next().is_some(),
            has_bits: facts().any(|facts| facts.has_bits),
            stream_id: event.stream_id,
            clock: facts().fold(ClockUse::None, |clock, facts| clock.merge(facts.clock)),
            waiting: None,
        };
        let mut class = EventClass {
            id: event.id.unwrap_or(0),
            name: event.name.unwrap_or_default(),
            namespace: None,
            uid: None,
            log_level: event.log_level,
            model_emf_uri: event.model_emf_uri,
            specific_context: None,
            payload: None,
        };
        if facts().any(|facts| facts.refers || facts.unknown_clock.is_some()) {
            note.waiting = Some(Box::new(types));
        } else {
            self.build(&mut class, event.at, &types, &mut Roots::default(), &mut [])?;
        }
        self.classes.push(class);
        self.notes.push(note);
        Ok(())
    }

    /// Builds the classes of an event's scopes.
    fn build(
        &mut self,
        class: &mut EventClass,
        at: u32,
        [context, fields]: &[Option<TyRef<'a>>; 2],
        roots: &mut Roots<'a>,
        open_locations: &mut [(Rc<Path<'a>>, bool)],
    ) -> Res<()> {
        roots.set(Scope::SpecificContext, context.clone());
        roots.set(Scope::Payload, fields.clone());
        let mut build = |scope| {
            let (budget, names) = (&mut self.budget, &mut self.names);
            Builder::new(scope, roots, open_locations, None, budget, names).root(at)
        };
        class.specific_context = build(Scope::SpecificContext)?;
        class.payload = build(Scope::Payload)?;
        Ok(())
    }
}

/// Builds the classes of all scopes.
pub(super) struct Assembly<'s, 'a> {
    clocks: &'s [ClockClass],
    pub(super) used_implicit_clock: bool,
    events: Events<'a>,
    open_locations: &'s mut [(Rc<Path<'a>>, bool)],
}

impl<'s, 'a> Assembly<'s, 'a> {
    /// An assembly of these clocks and events; `open_locations` is
    /// [`super::sema::Sema::open_locations`].
    pub(super) fn new(
        clocks: &'s [ClockClass],
        events: Events<'a>,
        open_locations: &'s mut [(Rc<Path<'a>>, bool)],
    ) -> Self {
        Assembly {
            clocks,
            used_implicit_clock: false,
            events,
            open_locations,
        }
    }

    /// Returns the class of the packet header and the classes of the streams.
    pub(super) fn assemble(
        &mut self,
        header: Option<TyRef<'a>>,
        mut streams: Vec<Stream<'a>>,
    ) -> Res<(Option<FieldClass>, Vec<StreamClass>)> {
        let events = self.by_stream(&mut streams)?;
        let mut roots = Roots::default();
        roots.set(Scope::PacketHeader, header);
        let (packet_header, found) = self.build(Scope::PacketHeader, 0, &roots)?;
        if let [_, second, ..] = streams.as_slice()
            && !found.roles.contains(Roles::STREAM_CLASS_ID)
        {
            return error(
                second.at,
                "the trace has more than one stream, and its packet header has no unsigned integer `stream_id` to \
                 distinguish them",
            );
        }
        let mut classes = Vec::with_capacity(streams.len());
        for (stream, (events, notes)) in streams.iter().zip(events) {
            classes.push(self.stream(stream, events, &notes, roots.clone())?);
        }
        Ok((packet_header, classes))
    }

    /// Assigns each event to its stream.
    fn by_stream(
        &mut self,
        streams: &mut Vec<Stream<'a>>,
    ) -> Res<Vec<(Vec<EventClass>, Vec<Note<'a>>)>> {
        let mut by_id = HashMap::new();
        for (index, stream) in streams.iter().enumerate() {
            if by_id.insert(stream.id, index).is_some() {
                return error(
                    stream.at,
                    format!("there is a stream of id {} already", stream.id),
                );
            }
        }
        let classes = std::mem::take(&mut self.events.classes);
        let notes = std::mem::take(&mut self.events.notes);
        if streams.is_empty()
            && let Some(note) = notes.first()
        {
            by_id.insert(0, 0);
            streams.push(Stream::empty(note.at));
        }
        let only = streams.len() == 1;
        let mut indices = Vec::with_capacity(notes.len());
        let mut ids = HashSet::with_capacity(notes.len());
        for (class, note) in classes.iter().zip(&notes) {
            let index = stream_of(note, &by_id, only)?;
            if !ids.insert((index, class.id)) {
                let hint = if note.has_id { "" } else { ": give it an `id`" };
                let stream = streams.get(index).map_or(0, |stream| stream.id);
                return error(
                    note.at,
                    format!(
                        "stream {stream} has an event of id {} already{hint}",
                        class.id
                    ),
                );
            }
            indices.push(index);
        }
        if only {
            return Ok(vec![(classes, notes)]);
        }
        let mut sorted: Vec<_> = streams.iter().map(|_| (Vec::new(), Vec::new())).collect();
        for ((index, class), note) in indices.into_iter().zip(classes).zip(notes) {
            if let Some((classes, notes)) = sorted.get_mut(index) {
                classes.push(class);
                notes.push(note);
            }
        }
        Ok(sorted)
    }

    fn build(
        &mut self,
        scope: Scope,
        at: u32,
        roots: &Roots<'a>,
    ) -> Res<(Option<FieldClass>, Found)> {
        let mut builder = Builder::new(
            scope,
            roots,
            self.open_locations,
            implicit_clock(self.clocks),
            &mut self.events.budget,
            &mut self.events.names,
        );
        let class = builder.root(at)?;
        let found = builder.found;
        self.used_implicit_clock |= found.implicit_clock;
        Ok((class, found))
    }

    fn stream(
        &mut self,
        stream: &Stream<'a>,
        mut events: Vec<EventClass>,
        notes: &[Note<'a>],
        mut roots: Roots<'a>,
    ) -> Res<StreamClass> {
        roots.set(Scope::PacketContext, stream.packet_context.clone());
        roots.set(Scope::EventHeader, stream.event_header.clone());
        roots.set(Scope::CommonContext, stream.event_context.clone());
        let (packet_context, context_found) =
            self.build(Scope::PacketContext, stream.at, &roots)?;
        let (event_header, header_found) = self.build(Scope::EventHeader, stream.at, &roots)?;
        let (common_context, _) = self.build(Scope::CommonContext, stream.at, &roots)?;
        if let [_, second, ..] = notes
            && !header_found.roles.contains(Roles::EVENT_CLASS_ID)
        {
            return error(
                second.at,
                format!(
                    "stream {} has more than one event, and its event header has no unsigned integer `id` to \
                     distinguish them",
                    stream.id
                ),
            );
        }
        let clock = self.waiting_events(stream, &mut events, notes, &mut roots)?;
        let default_clock = match clock {
            ClockUse::One(index) => Some(index),
            _ if context_found.implicit_clock || header_found.implicit_clock => {
                implicit_clock(self.clocks)
            }
            _ => None,
        };
        events.shrink_to_fit();
        Ok(StreamClass {
            id: stream.id,
            namespace: None,
            name: None,
            uid: None,
            default_clock,
            packet_context,
            event_header,
            common_context,
            events,
        })
    }

    /// Builds those events that refer to fields of the stream, and checks all events. Returns the
    /// clock to which the fields of the stream and its events are mapped.
    fn waiting_events(
        &mut self,
        stream: &Stream<'a>,
        events: &mut [EventClass],
        notes: &[Note<'a>],
        roots: &mut Roots<'a>,
    ) -> Res<ClockUse> {
        let own = [
            &stream.packet_context,
            &stream.event_header,
            &stream.event_context,
        ];
        let mut clock = own
            .into_iter()
            .flatten()
            .fold(ClockUse::None, |clock, ty| clock.merge(ty.facts.clock));
        self.check_clock(clock, stream.at)?;
        for (class, note) in events.iter_mut().zip(notes) {
            clock = clock.merge(note.clock);
            self.check_clock(clock, note.at)?;
            check_not_empty(stream, note)?;
            if let Some(types) = &note.waiting {
                self.events
                    .build(class, note.at, types, roots, self.open_locations)?;
            }
        }
        Ok(clock)
    }

    /// Checks that all mapped fields of a stream are mapped to the same clock.
    fn check_clock(&self, clock: ClockUse, at: u32) -> Res<()> {
        let ClockUse::Two(first, second) = clock else {
            return Ok(());
        };
        let name = |index: ClockIndex| {
            self.clocks
                .get(index)
                .map_or("?", |clock| clock.id.as_str())
        };
        error(
            at,
            format!(
                "fields of one stream are mapped to two clocks, `{}` and `{}`: only one is allowed",
                name(first),
                name(second)
            ),
        )
    }
}

/// Index of the stream of an event; `only`: there is a single stream.
fn stream_of(note: &Note<'_>, by_id: &HashMap<u64, usize>, only: bool) -> Res<usize> {
    match note.stream_id {
        Some((id, at)) => match by_id.get(&id) {
            Some(&index) => Ok(index),
            None => error(at, format!("there is no stream of id {id}")),
        },
        None if only => Ok(0),
        None => error(
            note.at,
            "this event has no `stream_id`, and the trace has more than one stream",
        ),
    }
}

/// Checks that records of an event have at least one bit. An event that only has a name is a
/// declaration and is never recorded.
fn check_not_empty(stream: &Stream<'_>, note: &Note<'_>) -> Res<()> {
    let of_stream = || {
        [&stream.event_header, &stream.event_context]
            .into_iter()
            .flatten()
    };
    let is_declaration = note.is_declared && !note.has_scopes && of_stream().next().is_none();
    if is_declaration || note.has_bits || of_stream().any(|ty| ty.facts.has_bits) {
        return Ok(());
    }
    error(
        note.at,
        "a record of this event would take no bits at all: it needs a field",
    )
}
