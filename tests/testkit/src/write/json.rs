//! The metadata of CTF 2: a schema to a JSON text sequence.

use serde_json::{Map, Value as Json, json};
use tracebraid_ctf::schema::{
    ByteOrder, ClockClass, ClockOrigin, DisplayBase, Encoding, EnvValue, EventClass, FieldClass,
    FieldLocation, IntClass, IntRange, Mapping, Roles, Scope, StreamClass, StructClass, TraceClass,
    VariantClass,
};

/// The JSON text sequence that describes `class`.
pub(super) fn emit(class: &TraceClass) -> String {
    let context = Context { class };
    let mut fragments = vec![preamble(class), context.trace()];
    fragments.extend(class.clocks.iter().map(clock));
    for (index, stream) in class.streams.iter().enumerate() {
        fragments.push(context.stream(index, stream));
        fragments.extend(
            stream
                .events
                .iter()
                .enumerate()
                .map(|(event, _)| context.event(index, event)),
        );
    }
    fragments
        .iter()
        .map(|fragment| format!("\u{1e}{fragment}\n"))
        .collect()
}

/// Adds the entry if there is a value.
fn put(object: &mut Map<String, Json>, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        object.insert(key.into(), value.into());
    }
}

fn object(kind: &str) -> Map<String, Json> {
    Map::from_iter([("type".to_string(), kind.into())])
}

fn preamble(class: &TraceClass) -> Json {
    let mut fragment = object("preamble");
    fragment.insert("version".into(), 2.into());
    put(&mut fragment, "uuid", class.uuid.map(|uuid| uuid.to_vec()));
    fragment.into()
}

fn clock(clock: &ClockClass) -> Json {
    let mut fragment = object("clock-class");
    fragment.insert("id".into(), clock.id.as_str().into());
    put(&mut fragment, "name", clock.name.clone());
    put(&mut fragment, "namespace", clock.namespace.clone());
    put(&mut fragment, "uid", clock.uid.clone());
    put(&mut fragment, "description", clock.description.clone());
    fragment.insert("frequency".into(), clock.frequency.into());
    put(&mut fragment, "precision", clock.precision);
    put(&mut fragment, "accuracy", clock.accuracy);
    match &clock.origin {
        ClockOrigin::UnixEpoch => put(&mut fragment, "origin", Some("unix-epoch")),
        ClockOrigin::Unknown => {}
        ClockOrigin::Custom { namespace, name, uid } => {
            let mut origin = Map::new();
            put(&mut origin, "namespace", namespace.clone());
            put(&mut origin, "name", Some(name.as_str()));
            put(&mut origin, "uid", Some(uid.as_str()));
            fragment.insert("origin".into(), origin.into());
        }
    }
    if clock.offset_seconds != 0 || clock.offset_cycles != 0 {
        let offset = json!({"seconds": clock.offset_seconds, "cycles": clock.offset_cycles});
        fragment.insert("offset-from-origin".into(), offset);
    }
    fragment.into()
}

fn byte_order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
    }
}

fn ranges(ranges: &[IntRange]) -> Json {
    let bound = |bound: i128| match (i64::try_from(bound), u64::try_from(bound)) {
        (Ok(bound), _) => Json::from(bound),
        (_, Ok(bound)) => Json::from(bound),
        _ => Json::Null,
    };
    ranges
        .iter()
        .map(|range| json!([bound(range.lower), bound(range.upper)]))
        .collect()
}

fn mappings(mappings: &[Mapping]) -> Json {
    Json::Object(
        mappings
            .iter()
            .map(|mapping| (mapping.label.clone(), ranges(&mapping.ranges)))
            .collect(),
    )
}

fn encoding(encoding: Encoding) -> Option<&'static str> {
    match encoding {
        Encoding::Utf8 => None,
        Encoding::Utf16Be => Some("utf-16be"),
        Encoding::Utf16Le => Some("utf-16le"),
        Encoding::Utf32Be => Some("utf-32be"),
        Encoding::Utf32Le => Some("utf-32le"),
    }
}

fn roles(roles: Roles) -> Option<Json> {
    let names = [
        (Roles::PACKET_MAGIC, "packet-magic-number"),
        (Roles::METADATA_UUID, "metadata-stream-uuid"),
        (Roles::STREAM_CLASS_ID, "data-stream-class-id"),
        (Roles::STREAM_ID, "data-stream-id"),
        (Roles::PACKET_TOTAL_LENGTH, "packet-total-length"),
        (Roles::PACKET_CONTENT_LENGTH, "packet-content-length"),
        (Roles::PACKET_SEQUENCE_NUMBER, "packet-sequence-number"),
        (Roles::DISCARDED_EVENTS, "discarded-event-record-counter-snapshot"),
        (Roles::PACKET_END_TIMESTAMP, "packet-end-default-clock-timestamp"),
        (Roles::CLOCK_TIMESTAMP, "default-clock-timestamp"),
        (Roles::EVENT_CLASS_ID, "event-record-class-id"),
    ];
    let list: Vec<Json> = names
        .iter()
        .filter(|(role, _)| roles.contains(*role))
        .map(|(_, name)| (*name).into())
        .collect();
    (!list.is_empty()).then_some(Json::Array(list))
}

/// Properties of everything that is a number of bits.
fn bit_array(kind: &str, length: u32, align: u32, order: ByteOrder, reversed: bool) -> Map<String, Json> {
    let mut fields = object(kind);
    fields.insert("length".into(), length.into());
    fields.insert("byte-order".into(), byte_order(order).into());
    put(&mut fields, "alignment", (align != 1).then_some(align));
    let bit_order = match order {
        ByteOrder::Little => "last-to-first",
        ByteOrder::Big => "first-to-last",
    };
    put(&mut fields, "bit-order", reversed.then_some(bit_order));
    fields
}

fn int_bits(kind: &str, class: &IntClass) -> Map<String, Json> {
    bit_array(
        kind,
        class.length,
        class.align,
        class.byte_order,
        class.reversed_bits,
    )
}

/// Properties of everything that is an integer.
fn with_integer(mut fields: Map<String, Json>, class: &IntClass) -> Map<String, Json> {
    let base = match class.base {
        DisplayBase::Binary => Some(2),
        DisplayBase::Octal => Some(8),
        DisplayBase::Decimal => None,
        DisplayBase::Hexadecimal => Some(16),
    };
    put(&mut fields, "preferred-display-base", base);
    put(&mut fields, "roles", roles(class.roles));
    put(
        &mut fields,
        "mappings",
        (!class.mappings.is_empty()).then(|| mappings(&class.mappings)),
    );
    fields
}

/// Where a field class is: the data stream class and the event record class that the scopes'
/// root classes come from.
#[derive(Clone, Copy)]
struct Place {
    stream: Option<usize>,
    event: Option<usize>,
}

struct Context<'a> {
    class: &'a TraceClass,
}

impl Context<'_> {
    fn trace(&self) -> Json {
        let class = self.class;
        let mut fragment = object("trace-class");
        put(&mut fragment, "namespace", class.namespace.clone());
        put(&mut fragment, "name", class.name.clone());
        put(&mut fragment, "uid", class.uid.clone());
        if !class.environment.is_empty() {
            let entry = |(key, value): &(String, EnvValue)| {
                let value = match value {
                    EnvValue::Int(value) => i64::try_from(*value).map_or(Json::Null, Json::from),
                    EnvValue::Str(text) => Json::from(text.as_str()),
                };
                (key.clone(), value)
            };
            fragment.insert(
                "environment".into(),
                Json::Object(class.environment.iter().map(entry).collect()),
            );
        }
        let place = Place {
            stream: None,
            event: None,
        };
        put(
            &mut fragment,
            "packet-header-field-class",
            self.scope(&class.packet_header, place),
        );
        fragment.into()
    }

    fn stream(&self, index: usize, stream: &StreamClass) -> Json {
        let mut fragment = object("data-stream-class");
        put(&mut fragment, "id", (stream.id != 0).then_some(stream.id));
        put(&mut fragment, "namespace", stream.namespace.clone());
        put(&mut fragment, "name", stream.name.clone());
        put(&mut fragment, "uid", stream.uid.clone());
        let clock = stream
            .default_clock
            .and_then(|clock| self.class.clocks.get(clock));
        put(
            &mut fragment,
            "default-clock-class-id",
            clock.map(|clock| clock.id.as_str()),
        );
        let place = Place {
            stream: Some(index),
            event: None,
        };
        put(
            &mut fragment,
            "packet-context-field-class",
            self.scope(&stream.packet_context, place),
        );
        put(
            &mut fragment,
            "event-record-header-field-class",
            self.scope(&stream.event_header, place),
        );
        let common_context = self.scope(&stream.common_context, place);
        put(
            &mut fragment,
            "event-record-common-context-field-class",
            common_context,
        );
        fragment.into()
    }

    fn event(&self, stream: usize, index: usize) -> Json {
        let stream_id = self.class.streams[stream].id;
        let event: &EventClass = &self.class.streams[stream].events[index];
        let mut fragment = object("event-record-class");
        put(&mut fragment, "id", (event.id != 0).then_some(event.id));
        put(
            &mut fragment,
            "data-stream-class-id",
            (stream_id != 0).then_some(stream_id),
        );
        put(
            &mut fragment,
            "name",
            (!event.name.is_empty()).then_some(event.name.as_str()),
        );
        put(&mut fragment, "namespace", event.namespace.as_deref());
        put(&mut fragment, "uid", event.uid.as_deref());
        let place = Place {
            stream: Some(stream),
            event: Some(index),
        };
        put(
            &mut fragment,
            "specific-context-field-class",
            self.scope(&event.specific_context, place),
        );
        put(
            &mut fragment,
            "payload-field-class",
            self.scope(&event.payload, place),
        );
        fragment.into()
    }

    fn scope(&self, class: &Option<FieldClass>, place: Place) -> Option<Json> {
        class.as_ref().map(|class| self.field(class, place))
    }

    fn field(&self, class: &FieldClass, place: Place) -> Json {
        let fields = match class {
            FieldClass::Int(int) => {
                let sign = if int.signed { "signed" } else { "unsigned" };
                with_integer(int_bits(&format!("fixed-length-{sign}-integer"), int), int)
            }
            FieldClass::VarInt(int) => {
                let sign = if int.signed { "signed" } else { "unsigned" };
                with_integer(object(&format!("variable-length-{sign}-integer")), int)
            }
            FieldClass::Bool(int) => int_bits("fixed-length-boolean", int),
            FieldClass::BitArray(int) => int_bits("fixed-length-bit-array", int),
            FieldClass::BitMap(int) => {
                let mut fields = int_bits("fixed-length-bit-map", int);
                fields.insert("flags".into(), mappings(&int.mappings));
                fields
            }
            FieldClass::Float {
                length,
                align,
                byte_order,
                reversed_bits,
            } => bit_array(
                "fixed-length-floating-point-number",
                *length,
                *align,
                *byte_order,
                *reversed_bits,
            ),
            FieldClass::Str { encoding: of } => {
                let mut fields = object("null-terminated-string");
                put(&mut fields, "encoding", encoding(*of));
                fields
            }
            FieldClass::StaticStr { length, encoding: of } => {
                let mut fields = object("static-length-string");
                fields.insert("length".into(), (*length).into());
                put(&mut fields, "encoding", encoding(*of));
                fields
            }
            FieldClass::DynStr { length, encoding: of } => {
                let mut fields = object("dynamic-length-string");
                fields.insert("length-field-location".into(), self.location(length, place));
                put(&mut fields, "encoding", encoding(*of));
                fields
            }
            FieldClass::StaticBlob {
                length,
                media_type,
                roles: of,
            } => {
                let mut fields = object("static-length-blob");
                fields.insert("length".into(), (*length).into());
                put(&mut fields, "media-type", media_type.as_deref());
                put(&mut fields, "roles", roles(*of));
                fields
            }
            FieldClass::DynBlob { length, media_type } => {
                let mut fields = object("dynamic-length-blob");
                fields.insert("length-field-location".into(), self.location(length, place));
                put(&mut fields, "media-type", media_type.as_deref());
                fields
            }
            FieldClass::Array {
                element,
                length,
                min_align,
                ..
            } => {
                let mut fields = object("static-length-array");
                fields.insert("length".into(), (*length).into());
                fields.insert("element-field-class".into(), self.field(element, place));
                put(
                    &mut fields,
                    "minimum-alignment",
                    (*min_align != 1).then_some(*min_align),
                );
                fields
            }
            FieldClass::Sequence {
                element,
                length,
                min_align,
            } => {
                let mut fields = object("dynamic-length-array");
                fields.insert("length-field-location".into(), self.location(length, place));
                fields.insert("element-field-class".into(), self.field(element, place));
                put(
                    &mut fields,
                    "minimum-alignment",
                    (*min_align != 1).then_some(*min_align),
                );
                fields
            }
            FieldClass::Struct(class) => self.structure(class, place),
            FieldClass::Variant(class) => self.variant(class, place),
            FieldClass::Optional(class) => {
                let mut fields = object("optional");
                fields.insert(
                    "selector-field-location".into(),
                    self.location(&class.selector, place),
                );
                put(
                    &mut fields,
                    "selector-field-ranges",
                    class.ranges.as_deref().map(ranges),
                );
                fields.insert("field-class".into(), self.field(&class.element, place));
                fields
            }
        };
        fields.into()
    }

    fn structure(&self, class: &StructClass, place: Place) -> Map<String, Json> {
        let mut fields = object("structure");
        let member = |member: &tracebraid_ctf::schema::Member| json!({"name": member.name.as_str(), "field-class": self.field(&member.class, place)});
        if !class.members.is_empty() {
            fields.insert(
                "member-classes".into(),
                class.members.iter().map(member).collect(),
            );
        }
        put(
            &mut fields,
            "minimum-alignment",
            (class.min_align != 1).then_some(class.min_align),
        );
        fields
    }

    fn variant(&self, class: &VariantClass, place: Place) -> Map<String, Json> {
        let mut fields = object("variant");
        fields.insert(
            "selector-field-location".into(),
            self.location(&class.selector, place),
        );
        let option = |option: &tracebraid_ctf::schema::VariantOption| {
            let mut fields = Map::new();
            put(&mut fields, "name", option.name.as_deref());
            fields.insert("selector-field-ranges".into(), ranges(&option.ranges));
            fields.insert("field-class".into(), self.field(&option.class, place));
            Json::Object(fields)
        };
        fields.insert("options".into(), class.options.iter().map(option).collect());
        fields
    }

    /// An absolute location. All paths of one have the same names.
    fn location(&self, location: &FieldLocation, place: Place) -> Json {
        let origin = match location.scope {
            Scope::PacketHeader => "packet-header",
            Scope::PacketContext => "packet-context",
            Scope::EventHeader => "event-record-header",
            Scope::CommonContext => "event-record-common-context",
            Scope::SpecificContext => "event-record-specific-context",
            Scope::Payload => "event-record-payload",
        };
        let path = location.paths.first().map(Vec::as_slice).unwrap_or(&[]);
        let root = super::scope_root(self.class, location.scope, place.stream, place.event);
        let names = root
            .map(|root| super::member_names(root, path))
            .unwrap_or_default();
        json!({"origin": origin, "path": names})
    }
}
