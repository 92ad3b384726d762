//! The metadata of CTF 1.8: a schema as TSDL.

use super::tsdl_fields::{Fields, quoted};
use std::fmt::Write;
use tracebraid_ctf::schema::{
    ByteOrder, ClockClass, ClockOrigin, EnvValue, FieldClass, Roles, Scope, StreamClass,
    TraceClass, Uuid,
};

/// The TSDL text that describes `class`.
pub(super) fn emit(class: &TraceClass) -> String {
    let mut text = String::from("/* CTF 1.8 */\n\n");
    let mut fields = Fields::new(class);
    trace(&mut text, &mut fields, class);
    environment(&mut text, class);
    for item in &class.clocks {
        clock(&mut text, item);
    }
    // Aliases must precede their use, and follow the clocks that they are mapped to.
    let mut rest = String::new();
    for index in 0..class.streams.len() {
        stream(&mut rest, &mut fields, class, index);
    }
    text.push_str(&fields.take_aliases());
    text.push_str(&rest);
    text
}

/// The canonical form of a UUID.
fn uuid_text(uuid: &Uuid) -> String {
    let mut text = String::new();
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn trace(text: &mut String, fields: &mut Fields<'_>, class: &TraceClass) {
    text.push_str("trace {\n\tmajor = 1;\n\tminor = 8;\n");
    if let Some(uuid) = &class.uuid {
        let _ = writeln!(text, "\tuuid = \"{}\";", uuid_text(uuid));
    }
    let order = match class.byte_order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    };
    let _ = writeln!(text, "\tbyte_order = {order};");
    if let Some(header) = &class.packet_header {
        fields.set_place(None, None);
        let _ = writeln!(
            text,
            "\tpacket.header := {};",
            fields.root(Scope::PacketHeader, header)
        );
    }
    text.push_str("};\n\n");
    text.push_str(&fields.take_aliases());
}

fn environment(text: &mut String, class: &TraceClass) {
    if class.environment.is_empty() {
        return;
    }
    text.push_str("env {\n");
    for (name, value) in &class.environment {
        let value = match value {
            EnvValue::Int(value) => value.to_string(),
            EnvValue::Str(value) => quoted(value),
        };
        let _ = writeln!(text, "\t{name} = {value};");
    }
    text.push_str("};\n\n");
}

fn clock(text: &mut String, clock: &ClockClass) {
    let _ = writeln!(text, "clock {{\n\tname = {};", clock.id);
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
        text.push_str("\tabsolute = true; // since the Epoch\n");
    }
    text.push_str("};\n\n");
}

fn stream(text: &mut String, fields: &mut Fields<'_>, class: &TraceClass, index: usize) {
    let stream = &class.streams[index];
    // Ids may be omitted if no field in the streams refers to them.
    let has_id = stream.id != 0 || has_role(class.packet_header.as_ref(), Roles::STREAM_CLASS_ID);
    text.push_str("stream {\n");
    if has_id {
        let _ = writeln!(text, "\tid = {:#x};", stream.id);
    }
    fields.set_place(Some(index), None);
    let scopes = [
        (
            "packet.context",
            Scope::PacketContext,
            &stream.packet_context,
        ),
        ("event.header", Scope::EventHeader, &stream.event_header),
        (
            "event.context",
            Scope::CommonContext,
            &stream.common_context,
        ),
    ];
    for (name, scope, root) in scopes {
        if let Some(root) = root {
            let _ = writeln!(text, "\t{name} := {};", fields.root(scope, root));
        }
    }
    text.push_str("};\n\n");
    for event in 0..stream.events.len() {
        event_class(text, fields, stream, index, event, has_id);
    }
}

fn event_class(
    text: &mut String,
    fields: &mut Fields<'_>,
    stream: &StreamClass,
    stream_index: usize,
    index: usize,
    has_stream_id: bool,
) {
    let event = &stream.events[index];
    text.push_str("event {\n");
    if !event.name.is_empty() {
        let _ = writeln!(text, "\tname = {};", quoted(&event.name));
    }
    if event.id != 0 || has_role(stream.event_header.as_ref(), Roles::EVENT_CLASS_ID) {
        let _ = writeln!(text, "\tid = {};", event.id);
    }
    if has_stream_id {
        let _ = writeln!(text, "\tstream_id = {};", stream.id);
    }
    if let Some(level) = event.log_level {
        let _ = writeln!(text, "\tloglevel = {level};");
    }
    if let Some(uri) = &event.model_emf_uri {
        let _ = writeln!(text, "\tmodel.emf.uri = {};", quoted(uri));
    }
    fields.set_place(Some(stream_index), Some(index));
    if let Some(context) = &event.specific_context {
        let _ = writeln!(
            text,
            "\tcontext := {};",
            fields.root(Scope::SpecificContext, context)
        );
    }
    if let Some(payload) = &event.payload {
        let _ = writeln!(
            text,
            "\tfields := {};",
            fields.root(Scope::Payload, payload)
        );
    }
    text.push_str("};\n\n");
}

/// True if an integer with the role is anywhere in the class.
fn has_role(class: Option<&FieldClass>, role: Roles) -> bool {
    match class {
        Some(FieldClass::Int(int)) => int.roles.contains(role),
        Some(FieldClass::Struct(class)) => class
            .members
            .iter()
            .any(|member| has_role(Some(&member.class), role)),
        Some(FieldClass::Variant(class)) => class
            .options
            .iter()
            .any(|option| has_role(Some(&option.class), role)),
        _ => false,
    }
}
