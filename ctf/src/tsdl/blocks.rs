//! The blocks of TSDL: the whole trace from its syntax tree.

use std::collections::HashMap;

use super::ast::*;
use super::build::{Budget, Builder, Found, Roots, no_field};
use super::lexer::{Res, error, short};
use super::sema::{Limits, Sema};
use super::types::{ClockUse, TyKind, TyRef};
use super::values;
use crate::schema::{
    ByteOrder, ClockClass, ClockIndex, ClockOrigin, CtfVersion, EnvValue, EventClass, FieldClass, Name,
    Names, Roles, Scope, StreamClass, TraceClass, Uuid,
};

/// Frequency of clocks that give none.
const DEFAULT_FREQUENCY: u64 = 1_000_000_000;

/// Evaluates the tree.
pub(super) fn evaluate<'a>(ast: &'a Ast<'a>, limits: Limits) -> Res<TraceClass> {
    let trace = find_trace(ast)?;
    let byte_order = trace_byte_order(trace)?;
    let mut sema = Sema::new(ast, byte_order, limits);
    let mut clocks = clocks(ast, &mut sema.clock_names)?;
    let mut header = TraceHeader::default();
    let mut streams = Vec::new();
    let mut events = Vec::new();
    for item in &ast.items {
        match item {
            Item::Decl(declaration) => sema.declaration(declaration)?,
            Item::Block(block) => match block.kind {
                BlockKind::Trace => header = sema.scoped(|sema| trace_block(sema, block))?,
                BlockKind::Env => environment(&mut sema, block)?,
                BlockKind::Stream => streams.push(sema.scoped(|sema| stream_block(sema, block))?),
                BlockKind::Event => events.push(sema.scoped(|sema| event_block(sema, block))?),
                BlockKind::Callsite | BlockKind::Clock => {}
            },
        }
    }
    let streams = with_events(streams, events)?;
    let mut assembly = Assembly {
        header: header.packet_header,
        implicit_clock: implicit_clock(&clocks),
        used_implicit_clock: false,
        budget: Budget::new(limits.text),
        names: Names::default(),
        sema: &mut sema,
    };
    let (packet_header, stream_classes) = assembly.assemble(&streams, &clocks)?;
    if assembly.used_implicit_clock && clocks.is_empty() {
        clocks.push(default_clock());
    }
    if let Some((path, _)) = sema.open_locations.iter().find(|(_, resolved)| !resolved) {
        return error(path.first.at, no_field(path));
    }
    let environment = std::mem::take(&mut sema.environment);
    if is_lttng(&environment) {
        // Old versions forgot to say that this clock is absolute.
        for clock in clocks.iter_mut().filter(|clock| clock.id == "monotonic") {
            clock.origin = ClockOrigin::UnixEpoch;
        }
    }
    Ok(TraceClass {
        version: CtfVersion::V1_8,
        namespace: None,
        name: None,
        uid: None,
        uuid: header.uuid,
        byte_order,
        environment,
        packet_header,
        clocks,
        streams: stream_classes,
    })
}

fn is_lttng(environment: &[(String, EnvValue)]) -> bool {
    environment.iter().any(|(key, value)| {
        key == "tracer_name" && matches!(value, EnvValue::Str(name) if name.starts_with("lttng"))
    })
}

/// The one `trace` block.
fn find_trace<'a>(ast: &'a Ast<'a>) -> Res<&'a Block<'a>> {
    let mut found = None;
    for item in &ast.items {
        if let Item::Block(block) = item
            && block.kind == BlockKind::Trace
            && found.replace(block).is_some()
        {
            return error(block.at, "there is a `trace` block already");
        }
    }
    match found {
        Some(block) => Ok(block),
        None => error(
            0,
            "no `trace` block: the metadata needs one with `major`, `minor` and `byte_order`",
        ),
    }
}

/// The byte order comes first: types before the `trace` block need it.
fn trace_byte_order(trace: &Block<'_>) -> Res<ByteOrder> {
    for entry in &trace.entries {
        if let Entry::Attr(attr) = entry
            && attr.key.is(&["byte_order"])
        {
            return values::byte_order(attr, None);
        }
    }
    error(
        trace.at,
        "the `trace` block has no `byte_order`: it must be `le` or `be`",
    )
}

/// The attributes of a block that declares no types.
fn attributes<'a>(block: &'a Block<'a>) -> Res<Vec<&'a Attr<'a>>> {
    let mut attrs = Vec::with_capacity(block.entries.len());
    for entry in &block.entries {
        match entry {
            Entry::Attr(attr) => attrs.push(attr),
            Entry::Decl(_) => {
                return error(
                    block.at,
                    format!("types cannot be declared in the `{}` block", block.kind.keyword()),
                );
            }
        }
    }
    Ok(attrs)
}

/// Evaluates the declarations of a block in order, and hands each attribute to `each`.
fn entries<'a>(
    sema: &mut Sema<'a>,
    block: &'a Block<'a>,
    mut each: impl FnMut(&mut Sema<'a>, &'a Attr<'a>) -> Res<()>,
) -> Res<()> {
    values::check_duplicates(block.entries.iter().filter_map(Entry::attr))?;
    for entry in &block.entries {
        match entry {
            Entry::Decl(declaration) => sema.declaration(declaration)?,
            Entry::Attr(attr) => each(sema, attr)?,
        }
    }
    Ok(())
}

/// The struct that `:=` sets.
fn root<'a>(sema: &mut Sema<'a>, attr: &'a Attr<'a>) -> Res<TyRef<'a>> {
    match &attr.value {
        AttrValue::Type(spec) => {
            let ty = sema.type_of(spec, false)?;
            match ty.kind {
                TyKind::Struct(_) => Ok(ty),
                _ => error(spec.at, format!("`{}` must be a struct", attr.key.text())),
            }
        }
        AttrValue::Value(value) => error(
            value.at,
            format!("`{}` is a type: use `:=` and a struct, not `=`", attr.key.text()),
        ),
    }
}

/// Attributes that this front end does not know are no error, whatever their types say.
fn unknown<'a>(sema: &mut Sema<'a>, attr: &'a Attr<'a>) -> Res<()> {
    match &attr.value {
        AttrValue::Type(spec) => sema.type_of(spec, true).map(drop),
        AttrValue::Value(_) => Ok(()),
    }
}

/// What the `trace` block says.
#[derive(Default)]
struct TraceHeader<'a> {
    uuid: Option<Uuid>,
    packet_header: Option<TyRef<'a>>,
}

fn trace_block<'a>(sema: &mut Sema<'a>, block: &'a Block<'a>) -> Res<TraceHeader<'a>> {
    let mut header = TraceHeader::default();
    let (mut major, mut minor) = (false, false);
    entries(sema, block, |sema, attr| {
        match attr.key.text().as_ref() {
            "major" => major = version(attr, 1)?,
            "minor" => minor = version(attr, 8)?,
            "byte_order" => {}
            "uuid" => header.uuid = Some(values::uuid(attr)?),
            "packet.header" => header.packet_header = Some(root(sema, attr)?),
            _ => unknown(sema, attr)?,
        }
        Ok(())
    })?;
    for (given, name, value) in [(major, "major", 1), (minor, "minor", 8)] {
        if !given {
            return error(
                block.at,
                format!("the `trace` block has no `{name}`: it must be {value}"),
            );
        }
    }
    Ok(header)
}

fn version(attr: &Attr<'_>, expected: u64) -> Res<bool> {
    let found = values::unsigned(attr)?;
    if found != expected {
        return error(
            values::plain(attr)?.at,
            format!(
                "unsupported version: `{}` must be {expected}, not {found}",
                attr.key.text()
            ),
        );
    }
    Ok(true)
}

fn environment<'a>(sema: &mut Sema<'a>, block: &'a Block<'a>) -> Res<()> {
    let attrs = attributes(block)?;
    values::check_duplicates(attrs.iter().copied())?;
    for attr in attrs {
        let key = attr.key.text().into_owned();
        if sema.environment.len() < 256 && sema.environment.iter().any(|(name, _)| *name == key) {
            return error(
                attr.key.first.at,
                format!("the environment has an entry `{}` already", short(&key)),
            );
        }
        let value = match values::plain(attr)?.kind {
            ValueKind::Int(_) => EnvValue::Int(i128::from(values::signed(attr)?)),
            _ => EnvValue::Str(values::name(attr)?),
        };
        sema.environment.push((key, value));
    }
    Ok(())
}

fn clocks<'a>(ast: &'a Ast<'a>, names: &mut HashMap<String, ClockIndex>) -> Res<Vec<ClockClass>> {
    let mut clocks = Vec::new();
    for item in &ast.items {
        if let Item::Block(block) = item
            && block.kind == BlockKind::Clock
        {
            let clock = clock_block(block)?;
            if names.insert(clock.id.clone(), clocks.len()).is_some() {
                return error(
                    block.at,
                    format!("there is a clock `{}` already", short(&clock.id)),
                );
            }
            clocks.push(clock);
        }
    }
    Ok(clocks)
}

fn clock_block<'a>(block: &'a Block<'a>) -> Res<ClockClass> {
    let attrs = attributes(block)?;
    values::check_duplicates(attrs.iter().copied())?;
    let mut clock = ClockClass {
        name: None,
        id: String::new(),
        ..default_clock()
    };
    for attr in attrs {
        match attr.key.text().as_ref() {
            "name" => clock.name = Some(values::name(attr)?),
            "uuid" => {
                let uuid = values::uuid(attr)?;
                clock.uid = Some(values::uuid_text(&uuid));
                clock.uuid = Some(uuid);
            }
            "description" => clock.description = Some(values::string(attr)?),
            "freq" => {
                clock.frequency = values::unsigned(attr)?;
                if clock.frequency == 0 {
                    return error(
                        values::plain(attr)?.at,
                        "the frequency of a clock is at least 1 Hz, not 0",
                    );
                }
            }
            "precision" => clock.precision = Some(values::unsigned(attr)?),
            "offset_s" => clock.offset_seconds = values::signed(attr)?,
            "offset" => clock.offset_cycles = values::signed(attr)?,
            "absolute" => {
                clock.origin = if values::boolean(attr)? {
                    ClockOrigin::UnixEpoch
                } else {
                    ClockOrigin::Unknown
                };
            }
            _ => {}
        }
    }
    match &clock.name {
        Some(name) => clock.id = name.clone(),
        None => return error(block.at, "this `clock` block has no `name`"),
    }
    Ok(clock)
}

/// The clock of timestamps in a trace that describes none: it counts nanoseconds.
fn default_clock() -> ClockClass {
    ClockClass {
        id: "default".to_owned(),
        name: Some("default".to_owned()),
        namespace: None,
        uid: None,
        uuid: None,
        description: None,
        frequency: DEFAULT_FREQUENCY,
        precision: None,
        accuracy: None,
        offset_seconds: 0,
        offset_cycles: 0,
        origin: ClockOrigin::Unknown,
    }
}

/// The clock of timestamps that are mapped to none, where there is no choice.
fn implicit_clock(clocks: &[ClockClass]) -> Option<ClockIndex> {
    if clocks.len() <= 1 { Some(0) } else { None }
}

/// A `stream` block, and the events that belong to it.
struct Stream<'a> {
    at: u32,
    id: u64,
    packet_context: Option<TyRef<'a>>,
    event_header: Option<TyRef<'a>>,
    event_context: Option<TyRef<'a>>,
    events: Vec<Event<'a>>,
}

impl Stream<'_> {
    fn empty(at: u32) -> Self {
        Stream {
            at,
            id: 0,
            packet_context: None,
            event_header: None,
            event_context: None,
            events: Vec::new(),
        }
    }
}

fn stream_block<'a>(sema: &mut Sema<'a>, block: &'a Block<'a>) -> Res<Stream<'a>> {
    let mut stream = Stream::empty(block.at);
    entries(sema, block, |sema, attr| {
        match attr.key.text().as_ref() {
            "id" => stream.id = values::unsigned(attr)?,
            "packet.context" => stream.packet_context = Some(root(sema, attr)?),
            "event.header" => stream.event_header = Some(root(sema, attr)?),
            "event.context" => stream.event_context = Some(root(sema, attr)?),
            _ => unknown(sema, attr)?,
        }
        Ok(())
    })?;
    Ok(stream)
}

/// An `event` block.
struct Event<'a> {
    at: u32,
    id: Option<u64>,
    /// With the place of its value.
    stream_id: Option<(u64, u32)>,
    name: Option<Name>,
    log_level: Option<i64>,
    model_emf_uri: Option<Name>,
    context: Option<TyRef<'a>>,
    fields: Option<TyRef<'a>>,
}

fn event_block<'a>(sema: &mut Sema<'a>, block: &'a Block<'a>) -> Res<Event<'a>> {
    let mut event = Event {
        at: block.at,
        id: None,
        stream_id: None,
        name: None,
        log_level: None,
        model_emf_uri: None,
        context: None,
        fields: None,
    };
    entries(sema, block, |sema, attr| {
        match attr.key.text().as_ref() {
            "id" => event.id = Some(values::unsigned(attr)?),
            "stream_id" => event.stream_id = Some((values::unsigned(attr)?, values::plain(attr)?.at)),
            "name" => event.name = Some(values::name(attr)?.into()),
            "loglevel" => event.log_level = Some(values::signed(attr)?),
            "model.emf.uri" => event.model_emf_uri = Some(values::string(attr)?.into()),
            "context" => event.context = Some(root(sema, attr)?),
            "fields" => event.fields = Some(root(sema, attr)?),
            _ => unknown(sema, attr)?,
        }
        Ok(())
    })?;
    Ok(event)
}

/// Gives each event to its stream.
fn with_events<'a>(mut streams: Vec<Stream<'a>>, events: Vec<Event<'a>>) -> Res<Vec<Stream<'a>>> {
    let mut by_id = HashMap::new();
    for (index, stream) in streams.iter().enumerate() {
        if by_id.insert(stream.id, index).is_some() {
            return error(
                stream.at,
                format!("there is a stream of id {} already", stream.id),
            );
        }
    }
    if streams.is_empty()
        && let Some(event) = events.first()
    {
        by_id.insert(0, 0);
        streams.push(Stream::empty(event.at));
    }
    let only = streams.len() == 1;
    let mut ids = std::collections::HashSet::with_capacity(events.len());
    for event in events {
        let index = match event.stream_id {
            Some((id, at)) => match by_id.get(&id) {
                Some(&index) => index,
                None => return error(at, format!("there is no stream of id {id}")),
            },
            None if only => 0,
            None => {
                return error(
                    event.at,
                    "this event has no `stream_id`, and the trace has more than one stream",
                );
            }
        };
        let id = event.id.unwrap_or(0);
        let Some(stream) = streams.get_mut(index) else {
            continue;
        };
        if !ids.insert((index, id)) {
            let hint = if event.id.is_none() {
                ": give it an `id`"
            } else {
                ""
            };
            return error(
                event.at,
                format!("stream {} has an event of id {id} already{hint}", stream.id),
            );
        }
        stream.events.push(event);
    }
    Ok(streams)
}

/// Builds the classes of all scopes.
struct Assembly<'s, 'a> {
    header: Option<TyRef<'a>>,
    implicit_clock: Option<ClockIndex>,
    used_implicit_clock: bool,
    budget: Budget,
    names: Names,
    sema: &'s mut Sema<'a>,
}

impl<'a> Assembly<'_, 'a> {
    fn assemble(
        &mut self,
        streams: &[Stream<'a>],
        clocks: &[ClockClass],
    ) -> Res<(Option<FieldClass>, Vec<StreamClass>)> {
        let mut roots = Roots::default();
        roots.set(Scope::PacketHeader, self.header.clone());
        let (packet_header, found) = self.build(Scope::PacketHeader, 0, &roots)?;
        if let [_, second, ..] = streams
            && !found.roles.contains(Roles::STREAM_CLASS_ID)
        {
            return error(
                second.at,
                "the trace has more than one stream, and its packet header has no unsigned integer `stream_id` to \
                 tell them apart",
            );
        }
        let mut classes = Vec::with_capacity(streams.len());
        for stream in streams {
            classes.push(self.stream(stream, roots.clone(), clocks)?);
        }
        Ok((packet_header, classes))
    }

    fn build(&mut self, scope: Scope, at: u32, roots: &Roots<'a>) -> Res<(Option<FieldClass>, Found)> {
        let mut builder = Builder::new(
            scope,
            roots,
            &mut self.sema.open_locations,
            self.implicit_clock,
            &mut self.budget,
            &mut self.names,
        );
        let class = builder.root(at)?;
        let found = builder.found;
        self.used_implicit_clock |= found.implicit_clock;
        Ok((class, found))
    }

    fn stream(
        &mut self,
        stream: &Stream<'a>,
        mut roots: Roots<'a>,
        clocks: &[ClockClass],
    ) -> Res<StreamClass> {
        roots.set(Scope::PacketContext, stream.packet_context.clone());
        roots.set(Scope::EventHeader, stream.event_header.clone());
        roots.set(Scope::CommonContext, stream.event_context.clone());
        let (packet_context, context_found) = self.build(Scope::PacketContext, stream.at, &roots)?;
        let (event_header, header_found) = self.build(Scope::EventHeader, stream.at, &roots)?;
        let (common_context, _) = self.build(Scope::CommonContext, stream.at, &roots)?;
        if let [_, second, ..] = stream.events.as_slice()
            && !header_found.roles.contains(Roles::EVENT_CLASS_ID)
        {
            return error(
                second.at,
                format!(
                    "stream {} has more than one event, and its event header has no unsigned integer `id` to tell \
                     them apart",
                    stream.id
                ),
            );
        }
        let mut clock = [
            &stream.packet_context,
            &stream.event_header,
            &stream.event_context,
        ]
        .into_iter()
        .flatten()
        .fold(ClockUse::None, |clock, ty| clock.merge(ty.facts.clock));
        check_clock(clock, stream.at, clocks)?;
        let stream_has_bits = [&stream.event_header, &stream.event_context]
            .into_iter()
            .flatten()
            .any(|ty| ty.facts.has_bits);
        let stream_has_scopes = stream.event_header.is_some() || stream.event_context.is_some();
        let mut events = Vec::with_capacity(stream.events.len());
        for event in &stream.events {
            for ty in [&event.context, &event.fields].into_iter().flatten() {
                clock = clock.merge(ty.facts.clock);
            }
            check_clock(clock, event.at, clocks)?;
            if !stream_has_bits {
                check_not_empty(event, stream_has_scopes)?;
            }
            events.push(self.event(event, &mut roots)?);
        }
        let default_clock = match clock {
            ClockUse::One(index) => Some(index),
            _ if context_found.implicit_clock || header_found.implicit_clock => self.implicit_clock,
            _ => None,
        };
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

    fn event(&mut self, event: &Event<'a>, roots: &mut Roots<'a>) -> Res<EventClass> {
        roots.set(Scope::SpecificContext, event.context.clone());
        roots.set(Scope::Payload, event.fields.clone());
        let (specific_context, _) = self.build(Scope::SpecificContext, event.at, roots)?;
        let (payload, _) = self.build(Scope::Payload, event.at, roots)?;
        Ok(EventClass {
            id: event.id.unwrap_or(0),
            name: event.name.clone().unwrap_or_default(),
            namespace: None,
            uid: None,
            log_level: event.log_level,
            model_emf_uri: event.model_emf_uri.clone(),
            specific_context,
            payload,
        })
    }
}

/// All fields of a stream that are mapped to a clock are mapped to the same.
fn check_clock(clock: ClockUse, at: u32, clocks: &[ClockClass]) -> Res<()> {
    let ClockUse::Two(first, second) = clock else {
        return Ok(());
    };
    let name = |index: ClockIndex| clocks.get(index).map_or("?", |clock| clock.id.as_str());
    error(
        at,
        format!(
            "fields of one stream are mapped to two clocks, `{}` and `{}`: only one is allowed",
            name(first),
            name(second)
        ),
    )
}

/// Event records of no bits cannot be told from nothing. (One that only has a name is a
/// declaration; it is never recorded.)
fn check_not_empty(event: &Event<'_>, stream_has_scopes: bool) -> Res<()> {
    let mut scopes = [&event.context, &event.fields].into_iter().flatten().peekable();
    let declared = event.name.is_some() || event.id.is_some();
    if scopes.peek().is_none() && !stream_has_scopes && declared {
        return Ok(());
    }
    if scopes.any(|ty| ty.facts.has_bits) {
        return Ok(());
    }
    error(
        event.at,
        "a record of this event would take no bits at all: it needs a field",
    )
}
