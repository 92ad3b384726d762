//! Converts the fragments of the metadata stream, in the order of the text, to a trace class.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::attributes;
use super::fault::{Fault, Result};
use super::field_class::Aliases;
use super::json::{JsonContent, Value};
use super::location::Roots;
use super::object::{Object, int_of, items_of, properties_of, shown, string_of, uint_of};
use super::raw::{RawClass, RawKind};
use super::resolve::{Budget, resolve_scope};
use super::roles::RoleContext;
use crate::schema::{
    ByteOrder, ClockClass, ClockOrigin, CtfVersion, EnvValue, EventClass, Scope, StreamClass,
    TraceClass, Uuid,
};

/// State after the fragments read so far.
pub(super) struct Builder {
    has_preamble: bool,
    has_trace_class: bool,
    trace: TraceClass,
    aliases: Aliases,
    packet_header: Option<Arc<RawClass>>,
    streams: HashMap<u64, StreamState>,
    clock_ids: HashMap<String, usize>,
    clock_identities: HashMap<Identity, usize>,
    budget: Budget,
}

/// Namespace, name and UID of a clock class.
type Identity = (Option<String>, String, String);

/// Properties of a data stream class that later fragments need.
struct StreamState {
    index: usize,
    packet_context: Option<Arc<RawClass>>,
    event_header: Option<Arc<RawClass>>,
    common_context: Option<Arc<RawClass>>,
    event_ids: HashSet<u64>,
}

type Handler = fn(&mut Builder, Object<'_>) -> Result<()>;

const TYPES: &[(&str, (&str, Handler))] = &[
    (
        "clock-class",
        ("clock class fragment", Builder::clock_class),
    ),
    (
        "data-stream-class",
        ("data stream class fragment", Builder::stream_class),
    ),
    (
        "event-record-class",
        ("event record class fragment", Builder::event_class),
    ),
    (
        "field-class-alias",
        ("field class alias fragment", Builder::alias),
    ),
    ("preamble", ("preamble fragment", Builder::preamble)),
    (
        "trace-class",
        ("trace class fragment", Builder::trace_class),
    ),
];

const COMMON: &[&str] = &["type", "attributes", "extensions"];
const IDENTITY: &[&str] = &["namespace", "name", "uid"];

impl Builder {
    /// An empty builder for a text of this length, in bytes.
    pub(super) fn new(text_len: usize) -> Self {
        Builder {
            has_preamble: false,
            has_trace_class: false,
            trace: TraceClass {
                version: CtfVersion::V2_0,
                namespace: None,
                name: None,
                uid: None,
                uuid: None,
                byte_order: ByteOrder::Little,
                environment: Vec::new(),
                packet_header: None,
                clocks: Vec::new(),
                streams: Vec::new(),
            },
            aliases: Aliases::default(),
            packet_header: None,
            streams: HashMap::new(),
            clock_ids: HashMap::new(),
            clock_identities: HashMap::new(),
            budget: Budget::new(text_len),
        }
    }

    /// Processes the next fragment.
    pub(super) fn fragment(&mut self, value: &Value) -> Result<()> {
        let object = Object::of(value, "fragment")?;
        object.need("type")?;
        let Some((noun, handler)) = object.one_of("type", TYPES)? else {
            return Err(Fault::new(
                value.at,
                "missing property `type` of a fragment",
            ));
        };
        let is_preamble = object
            .get("type")
            .is_some_and(|kind| string_of(kind, "type") == Ok("preamble"));
        match (self.has_preamble, is_preamble) {
            (false, false) => {
                return Err(Fault::new(
                    value.at,
                    "the first fragment must be the preamble",
                ));
            }
            (true, true) => {
                let message = "duplicate preamble: only the first fragment may be a preamble";
                return Err(Fault::new(value.at, message));
            }
            _ => {}
        }
        handler(self, object.called(noun))
    }

    /// The trace class, after the last fragment; `end` is the length of the text.
    pub(super) fn finish(self, end: usize) -> Result<TraceClass> {
        if !self.has_preamble {
            return Err(Fault::new(
                end,
                "missing preamble: the metadata has no fragments",
            ));
        }
        if self.trace.streams.is_empty() {
            return Err(Fault::new(
                end,
                "missing data stream class: expecting at least one such fragment",
            ));
        }
        Ok(self.trace)
    }

    fn preamble(&mut self, object: Object<'_>) -> Result<()> {
        object.only(&[COMMON, &["version", "uuid"]])?;
        let version = object.need("version")?;
        if uint_of(version, "version", 0, u64::MAX)? != 2 {
            return Err(Fault::new(version.at, "unexpected `version`: expecting 2"));
        }
        self.trace.uuid = object.get("uuid").map(uuid_of).transpose()?;
        self.has_preamble = true;
        Ok(())
    }

    fn alias(&mut self, object: Object<'_>) -> Result<()> {
        object.only(&[COMMON, &["name", "field-class"]])?;
        let name = object.need("name")?;
        let class = self.aliases.read(object.need("field-class")?)?;
        self.aliases.define(name, class)
    }

    fn trace_class(&mut self, object: Object<'_>) -> Result<()> {
        object.only(&[
            COMMON,
            IDENTITY,
            &["environment", "packet-header-field-class"],
        ])?;
        if self.has_trace_class {
            return Err(Fault::new(object.at, "duplicate trace class fragment"));
        }
        if !self.trace.streams.is_empty() {
            let message = "a trace class fragment may not follow a data stream class fragment";
            return Err(Fault::new(object.at, message));
        }
        self.trace.namespace = object.string("namespace")?;
        self.trace.name = object.string("name")?;
        self.trace.uid = object.string("uid")?;
        if let Some(environment) = object.get("environment") {
            self.trace.environment = environment_of(environment)?;
        }
        self.packet_header = self.scope_class(object, "packet-header-field-class")?;
        let mut roots: Roots<'_> = [None; 6];
        set_root(&mut roots, Scope::PacketHeader, &self.packet_header);
        let context = self.context(Scope::PacketHeader, false);
        self.trace.packet_header = resolve_scope(roots, context, &mut self.budget)?;
        self.has_trace_class = true;
        Ok(())
    }

    fn clock_class(&mut self, object: Object<'_>) -> Result<()> {
        let own = [
            "id",
            "frequency",
            "origin",
            "offset-from-origin",
            "precision",
            "accuracy",
            "description",
        ];
        object.only(&[COMMON, IDENTITY, &own])?;
        let id_value = object.need("id")?;
        let id = string_of(id_value, "id")?;
        if self.clock_ids.contains_key(id) {
            let message = format!("duplicate clock class with the `id` `{}`", shown(id));
            return Err(Fault::new(id_value.at, message));
        }
        let frequency = object.need_uint("frequency", 1, u64::MAX)?;
        let (offset_seconds, offset_cycles) = match object.get("offset-from-origin") {
            Some(offset) => clock_offset(offset, frequency)?,
            None => (0, 0),
        };
        let clock = ClockClass {
            id: id.to_owned(),
            name: object.string("name")?,
            namespace: object.string("namespace")?,
            uid: object.string("uid")?,
            uuid: None,
            description: object.string("description")?,
            frequency,
            precision: object.uint("precision", 0, u64::MAX)?,
            accuracy: object.uint("accuracy", 0, u64::MAX)?,
            offset_seconds,
            offset_cycles,
            origin: object
                .get("origin")
                .map_or(Ok(ClockOrigin::Unknown), clock_origin)?,
        };
        let index = self.trace.clocks.len();
        if let (Some(name), Some(uid)) = (clock.name.clone(), clock.uid.clone()) {
            let identity = (clock.namespace.clone(), name, uid);
            let first = *self.clock_identities.entry(identity).or_insert(index);
            if let Some(other) = self
                .trace
                .clocks
                .get(first)
                .filter(|other| contradicts(&clock, other))
            {
                let message = format!(
                    "this clock class has the same identity (namespace, name, uid) as `{}`, but not the \
                     same frequency, origin, precision, or accuracy",
                    shown(&other.id)
                );
                return Err(Fault::new(object.at, message));
            }
        }
        self.clock_ids.insert(clock.id.clone(), index);
        self.trace.clocks.push(clock);
        Ok(())
    }

    fn stream_class(&mut self, object: Object<'_>) -> Result<()> {
        let own = [
            "id",
            "default-clock-class-id",
            "packet-context-field-class",
            "event-record-header-field-class",
            "event-record-common-context-field-class",
        ];
        object.only(&[COMMON, IDENTITY, &own])?;
        let id = object.uint("id", 0, u64::MAX)?.unwrap_or(0);
        if self.streams.contains_key(&id) {
            let at = object.place("id");
            return Err(Fault::new(
                at,
                format!("duplicate data stream class with the `id` {id}"),
            ));
        }
        let default_clock = object
            .get("default-clock-class-id")
            .map(|value| self.clock(value))
            .transpose()?;
        let state = StreamState {
            index: self.trace.streams.len(),
            packet_context: self.scope_class(object, "packet-context-field-class")?,
            event_header: self.scope_class(object, "event-record-header-field-class")?,
            common_context: self.scope_class(object, "event-record-common-context-field-class")?,
            event_ids: HashSet::new(),
        };
        let mut roots: Roots<'_> = [None; 6];
        set_root(&mut roots, Scope::PacketHeader, &self.packet_header);
        let mut next = |scope, class| {
            set_root(&mut roots, scope, class);
            let context = RoleContext {
                scope,
                has_uuid: self.trace.uuid.is_some(),
                has_clock: default_clock.is_some(),
            };
            resolve_scope(roots, context, &mut self.budget)
        };
        let stream = StreamClass {
            id,
            namespace: object.string("namespace")?,
            name: object.string("name")?,
            uid: object.string("uid")?,
            default_clock,
            packet_context: next(Scope::PacketContext, &state.packet_context)?,
            event_header: next(Scope::EventHeader, &state.event_header)?,
            common_context: next(Scope::CommonContext, &state.common_context)?,
            events: Vec::new(),
        };
        self.trace.streams.push(stream);
        self.streams.insert(id, state);
        Ok(())
    }

    fn event_class(&mut self, object: Object<'_>) -> Result<()> {
        let own = [
            "id",
            "data-stream-class-id",
            "specific-context-field-class",
            "payload-field-class",
        ];
        object.only(&[COMMON, IDENTITY, &own])?;
        let stream_id = object
            .uint("data-stream-class-id", 0, u64::MAX)?
            .unwrap_or(0);
        let id = object.uint("id", 0, u64::MAX)?.unwrap_or(0);
        let specific = self.scope_class(object, "specific-context-field-class")?;
        let payload = self.scope_class(object, "payload-field-class")?;
        let has_uuid = self.trace.uuid.is_some();
        let parent = self.streams.get_mut(&stream_id);
        let Some(state) = parent else {
            let at = object.place("data-stream-class-id");
            let message =
                format!("no data stream class with the `id` {stream_id} is defined before its use");
            return Err(Fault::new(at, message));
        };
        if !state.event_ids.insert(id) {
            let at = object.place("id");
            let message = format!(
                "duplicate event record class with the `id` {id} in data stream class {stream_id}"
            );
            return Err(Fault::new(at, message));
        }
        let Some(stream) = self.trace.streams.get_mut(state.index) else {
            return Ok(());
        };
        let mut roots: Roots<'_> = [None; 6];
        set_root(&mut roots, Scope::PacketHeader, &self.packet_header);
        set_root(&mut roots, Scope::PacketContext, &state.packet_context);
        set_root(&mut roots, Scope::EventHeader, &state.event_header);
        set_root(&mut roots, Scope::CommonContext, &state.common_context);
        let mut next = |scope, class| {
            set_root(&mut roots, scope, class);
            let context = RoleContext {
                scope,
                has_uuid,
                has_clock: stream.default_clock.is_some(),
            };
            resolve_scope(roots, context, &mut self.budget)
        };
        let specific_context = next(Scope::SpecificContext, &specific)?;
        let payload_class = next(Scope::Payload, &payload)?;
        let parts = [
            &state.event_header,
            &state.common_context,
            &specific,
            &payload,
        ];
        let is_empty =
            |part: &&Option<Arc<RawClass>>| part.as_ref().is_none_or(|class| class.is_empty);
        if parts.iter().all(is_empty) {
            let message =
                "an event record of this class would be empty: expecting one or more bits";
            return Err(Fault::new(object.at, message));
        }
        stream.events.push(EventClass {
            id,
            name: object.name("name")?.unwrap_or_default(),
            namespace: object.name("namespace")?,
            uid: object.name("uid")?,
            log_level: attributes::log_level(object.get("attributes")),
            model_emf_uri: attributes::emf_uri(object.get("attributes")),
            specific_context,
            payload: payload_class,
        });
        Ok(())
    }

    fn context(&self, scope: Scope, has_clock: bool) -> RoleContext {
        RoleContext {
            scope,
            has_uuid: self.trace.uuid.is_some(),
            has_clock,
        }
    }

    fn clock(&self, value: &Value) -> Result<usize> {
        let id = string_of(value, "default-clock-class-id")?;
        self.clock_ids.get(id).copied().ok_or_else(|| {
            let message = format!(
                "no clock class with the `id` `{}` is defined before its use",
                shown(id)
            );
            Fault::new(value.at, message)
        })
    }

    /// Reads the root field class of a scope: a structure.
    fn scope_class(&self, object: Object<'_>, key: &str) -> Result<Option<Arc<RawClass>>> {
        let Some(value) = object.get(key) else {
            return Ok(None);
        };
        let class = self.aliases.read(value)?;
        if !matches!(class.kind, RawKind::Struct { .. }) {
            let message = format!("`{key}` is {}: expecting a structure", class.noun());
            return Err(Fault::new(value.at, message));
        }
        Ok(Some(class))
    }
}

fn set_root<'a>(roots: &mut Roots<'a>, scope: Scope, class: &'a Option<Arc<RawClass>>) {
    if let Some(slot) = roots.get_mut(scope as usize) {
        *slot = class.as_deref();
    }
}

fn uuid_of(value: &Value) -> Result<Uuid> {
    let items = items_of(value, "uuid")?;
    let bytes = items
        .iter()
        .map(|item| uint_of(item, "uuid", 0, 255).map(|byte| byte as u8))
        .collect::<Result<Vec<u8>>>()?;
    Uuid::try_from(bytes).map_err(|_| {
        Fault::new(
            value.at,
            format!(
                "`uuid`: expecting an array of 16 integers, not of {}",
                items.len()
            ),
        )
    })
}

fn environment_of(value: &Value) -> Result<Vec<(String, EnvValue)>> {
    properties_of(value, "the environment")?
        .iter()
        .map(|property| {
            let entry = match &property.value.kind {
                JsonContent::Str(text) => EnvValue::Str(text.clone()),
                JsonContent::Int(_) | JsonContent::HugeInt => {
                    let (min, max) = (i128::from(i64::MIN), i128::from(u64::MAX));
                    EnvValue::Int(int_of(&property.value, &property.key, min, max)?)
                }
                _ => {
                    let message = format!(
                        "environment entry `{}`: expecting an integer or a string, not {}",
                        shown(&property.key),
                        property.value.kind_name()
                    );
                    return Err(Fault::new(property.value.at, message));
                }
            };
            Ok((property.key.clone(), entry))
        })
        .collect()
}

/// Seconds and cycles.
fn clock_offset(value: &Value, frequency: u64) -> Result<(i64, i64)> {
    let object = Object::of(value, "clock offset")?;
    object.only(&[&["seconds", "cycles"]])?;
    let seconds = match object.get("seconds") {
        Some(seconds) => int_of(
            seconds,
            "seconds",
            i128::from(i64::MIN),
            i128::from(i64::MAX),
        )?,
        None => 0,
    };
    let cycles = object.uint("cycles", 0, u64::MAX)?.unwrap_or(0);
    let at = object.place("cycles");
    if cycles >= frequency {
        let message = format!("`cycles` {cycles}: expecting less than the frequency, {frequency}");
        return Err(Fault::new(at, message));
    }
    let cycles = i64::try_from(cycles).map_err(|_| {
        Fault::new(
            at,
            format!(
                "`cycles` {cycles} is too large: expecting at most {}",
                i64::MAX
            ),
        )
    })?;
    Ok((i64::try_from(seconds).unwrap_or_default(), cycles))
}

fn clock_origin(value: &Value) -> Result<ClockOrigin> {
    match &value.kind {
        JsonContent::Str(text) if text == "unix-epoch" => Ok(ClockOrigin::UnixEpoch),
        JsonContent::Str(text) => {
            let message = format!(
                "unexpected `origin` `{}`: expecting `unix-epoch` or a clock origin object",
                shown(text)
            );
            Err(Fault::new(value.at, message))
        }
        JsonContent::Object(_) => {
            let object = Object::of(value, "clock origin")?;
            object.only(&[IDENTITY])?;
            Ok(ClockOrigin::Custom {
                namespace: object.string("namespace")?,
                name: string_of(object.need("name")?, "name")?.to_owned(),
                uid: string_of(object.need("uid")?, "uid")?.to_owned(),
            })
        }
        _ => {
            let message = format!(
                "`origin`: expecting a string or an object, not {}",
                value.kind_name()
            );
            Err(Fault::new(value.at, message))
        }
    }
}

/// True if two clock classes of the same identity have contradictory properties.
fn contradicts(one: &ClockClass, other: &ClockClass) -> bool {
    fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
        one.zip(other).is_some_and(|(one, other)| one != other)
    }
    fn known(origin: &ClockOrigin) -> Option<&ClockOrigin> {
        Some(origin).filter(|origin| **origin != ClockOrigin::Unknown)
    }
    one.frequency != other.frequency
        || differ(one.precision.as_ref(), other.precision.as_ref())
        || differ(one.accuracy.as_ref(), other.accuracy.as_ref())
        || differ(known(&one.origin), known(&other.origin))
}
