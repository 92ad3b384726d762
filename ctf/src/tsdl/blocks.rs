//! Evaluates the blocks of TSDL.

use super::ast::*;
use super::error::{Res, error, short};
use super::sema::Sema;
use super::types::{TyKind, TyRef};
use super::values;
use crate::schema::{ByteOrder, ClockClass, ClockOrigin, EnvValue, Name, Uuid};

/// Frequency of clocks without a `freq` attribute, in Hz.
const DEFAULT_FREQUENCY: u64 = 1_000_000_000;

/// The byte order, which is needed before any type is evaluated.
pub(super) fn trace_byte_order(trace: &TopLevel<'_>) -> Res<ByteOrder> {
    let mut attrs = trace.parts.iter().filter_map(Part::attr);
    match attrs.find(|attr| attr.key.is(&["byte_order"])) {
        Some(attr) => values::byte_order(attr, None),
        None => error(
            trace.at,
            "the `trace` block has no `byte_order`: it must be `le` or `be`",
        ),
    }
}

/// Evaluates the types in a block in order, and passes each attribute to `each`.
fn entries<'a>(
    sema: &mut Sema<'a>,
    item: &mut TopLevel<'a>,
    mut each: impl FnMut(&mut Sema<'a>, &Attr<'a>) -> Res<()>,
) -> Res<()> {
    for part in item.parts.drain(..) {
        match part {
            Part::Attr(attr) => each(sema, &attr)?,
            part => sema.part(part)?,
        }
    }
    Ok(())
}

/// The struct that `:=` assigns.
fn root<'a>(sema: &mut Sema<'a>, attr: &Attr<'a>) -> Res<TyRef<'a>> {
    match &attr.value {
        AttrValue::Type(at) => {
            let ty = sema.pending_type(false)?;
            match ty.kind {
                TyKind::Struct(_) => Ok(ty),
                _ => error(*at, format!("`{}` must be a struct", attr.key.text())),
            }
        }
        AttrValue::Value(value) => error(
            value.at,
            format!(
                "`{}` is a type: use `:=` and a struct, not `=`",
                attr.key.text()
            ),
        ),
    }
}

/// Unknown attributes are accepted, whatever the type of their value.
fn unknown<'a>(sema: &mut Sema<'a>, attr: &Attr<'a>) -> Res<()> {
    match &attr.value {
        AttrValue::Type(_) => sema.pending_type(true).map(drop),
        AttrValue::Value(_) => Ok(()),
    }
}

/// Contents of the `trace` block.
#[derive(Default)]
pub(super) struct Trace<'a> {
    pub(super) uuid: Option<Uuid>,
    pub(super) packet_header: Option<TyRef<'a>>,
}

/// Evaluates the `trace` block.
pub(super) fn trace<'a>(sema: &mut Sema<'a>, item: &mut TopLevel<'a>) -> Res<Trace<'a>> {
    let mut trace = Trace::default();
    let (mut major, mut minor) = (false, false);
    entries(sema, item, |sema, attr| {
        match attr.key.text().as_ref() {
            "major" => major = version(attr, 1)?,
            "minor" => minor = version(attr, 8)?,
            "byte_order" => {}
            "uuid" => trace.uuid = Some(values::uuid(attr)?),
            "packet.header" => trace.packet_header = Some(root(sema, attr)?),
            _ => unknown(sema, attr)?,
        }
        Ok(())
    })?;
    for (given, name, value) in [(major, "major", 1), (minor, "minor", 8)] {
        if !given {
            return error(
                item.at,
                format!("the `trace` block has no `{name}`: it must be {value}"),
            );
        }
    }
    Ok(trace)
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

/// Evaluates an `env` block.
pub(super) fn environment(sema: &mut Sema<'_>, item: &TopLevel<'_>) -> Res<()> {
    for attr in item.parts.iter().filter_map(Part::attr) {
        let key = attr.key.text().into_owned();
        if sema.environment.len() < 256 && sema.environment.iter().any(|(name, _)| *name == key) {
            return error(
                attr.key.first.at,
                format!("the environment has an entry `{}` already", short(&key)),
            );
        }
        let value = match values::plain(attr)?.kind {
            ValueKind::Int(_) => EnvValue::Int(i128::from(values::signed(attr)?)),
            _ => EnvValue::Str(values::name(attr)?.into_owned()),
        };
        sema.environment.push((key, value));
    }
    Ok(())
}

/// Evaluates a `clock` block.
pub(super) fn clock(item: &TopLevel<'_>) -> Res<ClockClass> {
    let mut clock = ClockClass {
        name: None,
        id: String::new(),
        ..default_clock()
    };
    for attr in item.parts.iter().filter_map(Part::attr) {
        match attr.key.text().as_ref() {
            "name" => clock.name = Some(values::name(attr)?.into_owned()),
            "uuid" => {
                let uuid = values::uuid(attr)?;
                clock.uid = Some(values::uuid_text(&uuid));
                clock.uuid = Some(uuid);
            }
            "description" => clock.description = Some(values::string(attr)?.into_owned()),
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
        None => return error(item.at, "this `clock` block has no `name`"),
    }
    Ok(clock)
}

/// The clock of timestamps in a trace without a `clock` block: it counts nanoseconds.
pub(super) fn default_clock() -> ClockClass {
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

/// Contents of a `stream` block.
pub(super) struct Stream<'a> {
    pub(super) at: u32,
    pub(super) id: u64,
    pub(super) packet_context: Option<TyRef<'a>>,
    pub(super) event_header: Option<TyRef<'a>>,
    pub(super) event_context: Option<TyRef<'a>>,
}

impl Stream<'_> {
    /// The stream of a trace without a `stream` block.
    pub(super) fn empty(at: u32) -> Self {
        Stream {
            at,
            id: 0,
            packet_context: None,
            event_header: None,
            event_context: None,
        }
    }
}

/// Evaluates a `stream` block.
pub(super) fn stream<'a>(sema: &mut Sema<'a>, item: &mut TopLevel<'a>) -> Res<Stream<'a>> {
    let mut stream = Stream::empty(item.at);
    entries(sema, item, |sema, attr| {
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

/// Contents of an `event` block.
#[derive(Default)]
pub(super) struct Event<'a> {
    pub(super) at: u32,
    pub(super) id: Option<u64>,
    /// With the byte offset of its value.
    pub(super) stream_id: Option<(u64, u32)>,
    pub(super) name: Option<Name>,
    pub(super) log_level: Option<i64>,
    pub(super) model_emf_uri: Option<Name>,
    pub(super) context: Option<TyRef<'a>>,
    pub(super) fields: Option<TyRef<'a>>,
}

/// Evaluates an `event` block.
pub(super) fn event<'a>(sema: &mut Sema<'a>, item: &mut TopLevel<'a>) -> Res<Event<'a>> {
    let mut event = Event {
        at: item.at,
        ..Event::default()
    };
    entries(sema, item, |sema, attr| {
        match attr.key.text().as_ref() {
            "id" => event.id = Some(values::unsigned(attr)?),
            "stream_id" => {
                event.stream_id = Some((values::unsigned(attr)?, values::plain(attr)?.at))
            }
            "name" => event.name = Some(values::name(attr)?.as_ref().into()),
            "loglevel" => event.log_level = Some(values::signed(attr)?),
            "model.emf.uri" => event.model_emf_uri = Some(values::string(attr)?.as_ref().into()),
            "context" => event.context = Some(root(sema, attr)?),
            "fields" => event.fields = Some(root(sema, attr)?),
            _ => unknown(sema, attr)?,
        }
        Ok(())
    })?;
    Ok(event)
}
