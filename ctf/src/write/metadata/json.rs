//! The fragments of CTF 2.

use super::super::error::WriteError;
use super::json_fields::{Object, field_class, refuse, string};
use super::locate::FieldScopes;
use crate::schema::{ClockClass, ClockOrigin, EnvValue, EventClass, FieldClass, Scope, TraceClass};

/// Namespace of the attributes that exist in CTF 1.8 but not in CTF 2.
const ATTRIBUTES: &str = "lttng.org,2009";

/// A fragment of a JSON text sequence.
fn fragment(object: Object) -> String {
    format!("\u{1e}{}\n", object.end())
}

/// All fragments except the event classes.
pub(super) fn base(class: &TraceClass) -> Result<String, WriteError> {
    let mut text = preamble(class);
    text.push_str(&trace(class)?);
    for item in &class.clocks {
        text.push_str(&clock(item)?);
    }
    for index in 0..class.streams.len() {
        text.push_str(&stream(class, index)?);
    }
    Ok(text)
}

fn preamble(class: &TraceClass) -> String {
    let mut object = Object::of("preamble");
    object.put("version", "2");
    if let Some(uuid) = &class.uuid {
        let bytes: Vec<String> = uuid.iter().map(u8::to_string).collect();
        object.put("uuid", format!("[{}]", bytes.join(",")));
    }
    fragment(object)
}

fn trace(class: &TraceClass) -> Result<String, WriteError> {
    let mut object = Object::of("trace-class");
    object.put_text("namespace", class.namespace.as_deref());
    object.put_text("name", class.name.as_deref());
    object.put_text("uid", class.uid.as_deref());
    if !class.environment.is_empty() {
        let mut environment = Object::default();
        for (name, value) in &class.environment {
            match value {
                EnvValue::Int(value) => environment.put(name, value.to_string()),
                EnvValue::Str(value) => environment.put(name, string(value)),
            }
        }
        object.put("environment", environment.end());
    }
    let place = FieldScopes {
        class,
        stream: None,
        event: None,
    };
    scope(
        &mut object,
        place,
        "packet-header-field-class",
        Scope::PacketHeader,
        &class.packet_header,
    )?;
    Ok(fragment(object))
}

fn scope(
    object: &mut Object,
    place: FieldScopes<'_>,
    key: &str,
    scope: Scope,
    class: &Option<FieldClass>,
) -> Result<(), WriteError> {
    if let Some(class) = class {
        object.put(key, field_class(place, scope, class)?);
    }
    Ok(())
}

fn clock(clock: &ClockClass) -> Result<String, WriteError> {
    if clock.uuid.is_some() {
        return refuse(format!("a UUID of clock class `{}`", clock.id));
    }
    let mut object = Object::of("clock-class");
    object.put_text("id", Some(&clock.id));
    object.put_text("namespace", clock.namespace.as_deref());
    object.put_text("name", clock.name.as_deref());
    object.put_text("uid", clock.uid.as_deref());
    object.put_text("description", clock.description.as_deref());
    object.put("frequency", clock.frequency.to_string());
    object.put_number("precision", clock.precision);
    object.put_number("accuracy", clock.accuracy);
    match &clock.origin {
        ClockOrigin::UnixEpoch => object.put_text("origin", Some("unix-epoch")),
        ClockOrigin::Unknown => {}
        ClockOrigin::Custom {
            namespace,
            name,
            uid,
        } => {
            let mut origin = Object::default();
            origin.put_text("namespace", namespace.as_deref());
            origin.put_text("name", Some(name));
            origin.put_text("uid", Some(uid));
            object.put("origin", origin.end());
        }
    }
    if clock.offset_seconds != 0 || clock.offset_cycles != 0 {
        let mut offset = Object::default();
        offset.put("seconds", clock.offset_seconds.to_string());
        offset.put("cycles", clock.offset_cycles.to_string());
        object.put("offset-from-origin", offset.end());
    }
    Ok(fragment(object))
}

fn stream(class: &TraceClass, index: usize) -> Result<String, WriteError> {
    let Some(stream) = class.streams.get(index) else {
        return Ok(String::new());
    };
    let mut object = Object::of("data-stream-class");
    object.put("id", stream.id.to_string());
    object.put_text("namespace", stream.namespace.as_deref());
    object.put_text("name", stream.name.as_deref());
    object.put_text("uid", stream.uid.as_deref());
    if let Some(clock) = stream.default_clock {
        match class.clocks.get(clock) {
            Some(clock) => object.put_text("default-clock-class-id", Some(&clock.id)),
            None => {
                return refuse(format!(
                    "the clock of stream class {}, which does not exist",
                    stream.id
                ));
            }
        }
    }
    let place = FieldScopes {
        class,
        stream: Some(index),
        event: None,
    };
    let scopes = [
        (
            "packet-context-field-class",
            Scope::PacketContext,
            &stream.packet_context,
        ),
        (
            "event-record-header-field-class",
            Scope::EventHeader,
            &stream.event_header,
        ),
        (
            "event-record-common-context-field-class",
            Scope::CommonContext,
            &stream.common_context,
        ),
    ];
    for (key, kind, root) in scopes {
        scope(&mut object, place, key, kind, root)?;
    }
    Ok(fragment(object))
}

/// An event class of the stream class with this index.
pub(super) fn event(
    class: &TraceClass,
    index: usize,
    event: &EventClass,
) -> Result<String, WriteError> {
    let mut object = Object::of("event-record-class");
    object.put("id", event.id.to_string());
    let stream = class.streams.get(index).map_or(0, |stream| stream.id);
    object.put("data-stream-class-id", stream.to_string());
    object.put_text("namespace", event.namespace.as_deref());
    object.put_text(
        "name",
        Some(event.name.as_str()).filter(|name| !name.is_empty()),
    );
    object.put_text("uid", event.uid.as_deref());
    if event.log_level.is_some() || event.model_emf_uri.is_some() {
        let mut attributes = Object::default();
        attributes.put_number("log-level", event.log_level);
        attributes.put_text("emf-uri", event.model_emf_uri.as_deref());
        let mut namespace = Object::default();
        namespace.put(ATTRIBUTES, attributes.end());
        object.put("attributes", namespace.end());
    }
    let place = FieldScopes {
        class,
        stream: Some(index),
        event: Some(event),
    };
    let context = &event.specific_context;
    scope(
        &mut object,
        place,
        "specific-context-field-class",
        Scope::SpecificContext,
        context,
    )?;
    scope(
        &mut object,
        place,
        "payload-field-class",
        Scope::Payload,
        &event.payload,
    )?;
    Ok(fragment(object))
}
