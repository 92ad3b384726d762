//! The blocks of TSDL.

use std::fmt::Write;

use super::super::error::WriteError;
use super::locate::FieldScopes;
use super::tsdl_fields::{is_identifier, quoted, root};
use crate::schema::{
    ByteOrder, ClockClass, ClockOrigin, CtfVersion, EnvValue, EventClass, FieldClass, Roles, Scope,
    TraceClass, Uuid,
};

fn refuse<T>(what: impl Into<String>) -> Result<T, WriteError> {
    Err(WriteError::inexpressible(CtfVersion::V1_8, what))
}

/// All blocks except the event classes.
pub(super) fn base(class: &TraceClass) -> Result<String, WriteError> {
    if class.namespace.is_some() || class.name.is_some() || class.uid.is_some() {
        return refuse("a namespace, name or uid of the trace class");
    }
    let mut text = String::from("/* CTF 1.8 */\n\n");
    trace(&mut text, class)?;
    environment(&mut text, class)?;
    for item in &class.clocks {
        clock(&mut text, item)?;
    }
    for index in 0..class.streams.len() {
        stream(&mut text, class, index)?;
    }
    Ok(text)
}

/// The canonical form of a UUID.
pub(super) fn uuid_text(uuid: &Uuid) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in uuid.iter().enumerate() {
        let dash = if matches!(index, 4 | 6 | 8 | 10) {
            "-"
        } else {
            ""
        };
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

fn trace(text: &mut String, class: &TraceClass) -> Result<(), WriteError> {
    text.push_str("trace {\n\tmajor = 1;\n\tminor = 8;\n");
    if let Some(uuid) = &class.uuid {
        let _ = writeln!(text, "\tuuid = \"{}\";", uuid_text(uuid));
    }
    let order = match class.byte_order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    };
    let _ = writeln!(text, "\tbyte_order = {order};");
    let place = FieldScopes {
        class,
        stream: None,
        event: None,
    };
    scope(
        text,
        place,
        "packet.header",
        Scope::PacketHeader,
        &class.packet_header,
    )?;
    text.push_str("};\n\n");
    Ok(())
}

/// Writes the root of a scope, if it has one.
fn scope(
    text: &mut String,
    place: FieldScopes<'_>,
    name: &str,
    scope: Scope,
    class: &Option<FieldClass>,
) -> Result<(), WriteError> {
    if let Some(class) = class {
        let _ = write!(text, "\t{name} := ");
        root(text, place, scope, class)?;
        text.push_str(";\n");
    }
    Ok(())
}

fn environment(text: &mut String, class: &TraceClass) -> Result<(), WriteError> {
    if class.environment.is_empty() {
        return Ok(());
    }
    text.push_str("env {\n");
    for (name, value) in &class.environment {
        if !is_identifier(name) {
            return refuse(format!(
                "the environment's entry `{name}`: it is not an identifier"
            ));
        }
        let value = match value {
            EnvValue::Int(value) => value.to_string(),
            EnvValue::Str(value) => quoted(value),
        };
        let _ = writeln!(text, "\t{name} = {value};");
    }
    text.push_str("};\n\n");
    Ok(())
}

fn clock(text: &mut String, clock: &ClockClass) -> Result<(), WriteError> {
    if !is_identifier(&clock.id) {
        return refuse(format!(
            "a clock class named `{}`: it is not an identifier",
            clock.id
        ));
    }
    if clock.namespace.is_some() || clock.accuracy.is_some() {
        return refuse(format!(
            "a namespace or accuracy of clock class `{}`",
            clock.id
        ));
    }
    if matches!(clock.origin, ClockOrigin::Custom { .. }) {
        return refuse(format!("the origin of clock class `{}`", clock.id));
    }
    let _ = writeln!(text, "clock {{\n\tname = \"{}\";", clock.id);
    if let Some(uuid) = &clock.uuid {
        let _ = writeln!(text, "\tuuid = \"{}\";", uuid_text(uuid));
    }
    if let Some(description) = &clock.description {
        let _ = writeln!(text, "\tdescription = {};", quoted(description));
    }
    let _ = writeln!(text, "\tfreq = {};", clock.frequency);
    if let Some(precision) = clock.precision {
        let _ = writeln!(text, "\tprecision = {precision};");
    }
    if clock.offset_seconds != 0 {
        let _ = writeln!(text, "\toffset_s = {};", clock.offset_seconds);
    }
    if clock.offset_cycles != 0 {
        let _ = writeln!(text, "\toffset = {};", clock.offset_cycles);
    }
    if clock.origin == ClockOrigin::UnixEpoch {
        text.push_str("\tabsolute = TRUE;\n");
    }
    text.push_str("};\n\n");
    Ok(())
}

/// Ids are omitted if no field of the streams refers to them.
fn has_stream_ids(class: &TraceClass) -> bool {
    class.streams.iter().any(|stream| stream.id != 0)
        || has_role(&class.packet_header, Roles::STREAM_CLASS_ID)
}

fn has_role(class: &Option<FieldClass>, role: Roles) -> bool {
    let mut all = class.iter().flat_map(FieldClass::all);
    all.any(|class| matches!(class, FieldClass::Int(int) if int.roles.contains(role)))
}

fn stream(text: &mut String, class: &TraceClass, index: usize) -> Result<(), WriteError> {
    let Some(stream) = class.streams.get(index) else {
        return Ok(());
    };
    if stream.namespace.is_some() || stream.name.is_some() || stream.uid.is_some() {
        return refuse(format!(
            "a namespace, name or uid of stream class {}",
            stream.id
        ));
    }
    text.push_str("stream {\n");
    if has_stream_ids(class) {
        let _ = writeln!(text, "\tid = {};", stream.id);
    }
    let place = FieldScopes {
        class,
        stream: Some(index),
        event: None,
    };
    scope(
        text,
        place,
        "packet.context",
        Scope::PacketContext,
        &stream.packet_context,
    )?;
    scope(
        text,
        place,
        "event.header",
        Scope::EventHeader,
        &stream.event_header,
    )?;
    scope(
        text,
        place,
        "event.context",
        Scope::CommonContext,
        &stream.common_context,
    )?;
    text.push_str("};\n\n");
    Ok(())
}

/// An event class of the stream class with this index.
pub(super) fn event(
    class: &TraceClass,
    index: usize,
    event: &EventClass,
) -> Result<String, WriteError> {
    if event.namespace.is_some() || event.uid.is_some() {
        return refuse(format!("a namespace or uid of event `{}`", event.name));
    }
    let mut text = String::from("event {\n");
    if !event.name.is_empty() {
        let _ = writeln!(text, "\tname = {};", quoted(&event.name));
    }
    let stream = class.streams.get(index);
    if event.id != 0
        || stream.is_some_and(|stream| has_role(&stream.event_header, Roles::EVENT_CLASS_ID))
    {
        let _ = writeln!(text, "\tid = {};", event.id);
    }
    if let Some(stream) = stream.filter(|_| has_stream_ids(class)) {
        let _ = writeln!(text, "\tstream_id = {};", stream.id);
    }
    if let Some(level) = event.log_level {
        let _ = writeln!(text, "\tloglevel = {level};");
    }
    if let Some(uri) = &event.model_emf_uri {
        let _ = writeln!(text, "\tmodel.emf.uri = {};", quoted(uri));
    }
    let place = FieldScopes {
        class,
        stream: Some(index),
        event: Some(event),
    };
    scope(
        &mut text,
        place,
        "context",
        Scope::SpecificContext,
        &event.specific_context,
    )?;
    scope(&mut text, place, "fields", Scope::Payload, &event.payload)?;
    text.push_str("};\n\n");
    Ok(text)
}
