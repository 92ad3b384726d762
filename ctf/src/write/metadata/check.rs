//! Checks that the reader's front end parses the text to the same schema, before the text is
//! returned.

use super::super::error::WriteError;
use crate::error::MetadataError;
use crate::schema::{CtfVersion, EventClass, FieldClass, StreamClass, TraceClass};
use crate::{ctf2, tsdl};

fn parse(text: &str, version: CtfVersion) -> Result<TraceClass, MetadataError> {
    match version {
        CtfVersion::V1_8 => tsdl::parse(text.as_bytes()),
        CtfVersion::V2_0 => ctf2::parse(text.as_bytes()),
    }
}

/// Checks the text of a whole trace class.
pub(super) fn all(text: &str, class: &TraceClass) -> Result<(), WriteError> {
    let read = read(text, class.version, "this schema")?;
    match difference(class, &read) {
        None => Ok(()),
        Some(what) => Err(WriteError::inexpressible(class.version, what)),
    }
}

/// Checks the text of an event class after the text of a trace class without event classes.
pub(super) fn event(
    base_text: &str,
    text: &str,
    base: &TraceClass,
    stream: usize,
    class: &EventClass,
) -> Result<(), WriteError> {
    let what = format!("event `{}`", class.name);
    let read = read(&[base_text, text].concat(), base.version, &what)?;
    let events = read
        .streams
        .get(stream)
        .map(|stream| stream.events.as_slice());
    let Some([read]) = events else {
        return Err(WriteError::inexpressible(base.version, what));
    };
    match event_difference(class, read) {
        None => Ok(()),
        Some(part) => Err(WriteError::inexpressible(
            base.version,
            format!("{what}: {part}"),
        )),
    }
}

fn read(text: &str, version: CtfVersion, what: &str) -> Result<TraceClass, WriteError> {
    parse(text, version).map_err(|error| {
        let line = error.source_line.trim();
        let place = if line.is_empty() {
            String::new()
        } else {
            format!(" (in `{line}`)")
        };
        WriteError::inexpressible(version, format!("{what}: {}{place}", error.message))
    })
}

/// Describes the first difference of two trace classes.
fn difference(class: &TraceClass, read: &TraceClass) -> Option<String> {
    let differs = [
        (class.namespace != read.namespace, "the trace's namespace"),
        (class.name != read.name, "the trace's name"),
        (class.uid != read.uid, "the trace's uid"),
        (class.uuid != read.uuid, "the trace's UUID"),
        (
            class.byte_order != read.byte_order,
            "the trace's byte order",
        ),
        (
            class.streams.len() != read.streams.len(),
            "the number of stream classes",
        ),
        (
            class.clocks.len() != read.clocks.len(),
            "the number of clock classes",
        ),
    ];
    if let Some((_, what)) = differs.iter().find(|(differs, _)| *differs) {
        return Some((*what).to_owned());
    }
    if class.environment != read.environment {
        let mut entries = class.environment.iter().zip(&read.environment);
        let name = entries
            .find(|(ours, theirs)| ours != theirs)
            .map_or("", |(ours, _)| &ours.0);
        return Some(format!("the environment's entry `{name}`"));
    }
    let clocks = class.clocks.iter().zip(&read.clocks);
    if let Some((clock, _)) = clocks.into_iter().find(|(ours, theirs)| ours != theirs) {
        return Some(format!("clock class `{}`", clock.id));
    }
    field_difference(
        "the packet header",
        &class.packet_header,
        &read.packet_header,
    )
    .or_else(|| {
        let mut streams = class.streams.iter().zip(&read.streams);
        streams.find_map(|(ours, theirs)| stream_difference(ours, theirs))
    })
}

fn stream_difference(class: &StreamClass, read: &StreamClass) -> Option<String> {
    let of_stream = |what: String| format!("stream class {}: {what}", class.id);
    let found = field_difference(
        "the packet context",
        &class.packet_context,
        &read.packet_context,
    )
    .or_else(|| field_difference("the event header", &class.event_header, &read.event_header))
    .or_else(|| {
        field_difference(
            "the common context",
            &class.common_context,
            &read.common_context,
        )
    });
    if let Some(what) = found {
        return Some(of_stream(what));
    }
    if class.default_clock != read.default_clock {
        return Some(of_stream("its clock".into()));
    }
    if (
        class.id,
        &class.namespace,
        &class.name,
        &class.uid,
        class.events.len(),
    ) != (
        read.id,
        &read.namespace,
        &read.name,
        &read.uid,
        read.events.len(),
    ) {
        return Some(of_stream(
            "its names, its id or the number of its event classes".into(),
        ));
    }
    let mut events = class.events.iter().zip(&read.events);
    events.find_map(|(ours, theirs)| {
        event_difference(ours, theirs)
            .map(|what| of_stream(format!("event `{}`: {what}", ours.name)))
    })
}

fn event_difference(class: &EventClass, read: &EventClass) -> Option<String> {
    let differs = [
        (class.id != read.id, "its id"),
        (class.name != read.name, "its name"),
        (class.namespace != read.namespace, "its namespace"),
        (class.uid != read.uid, "its uid"),
        (class.log_level != read.log_level, "its log level"),
        (class.model_emf_uri != read.model_emf_uri, "its model's URI"),
    ];
    if let Some((_, what)) = differs.iter().find(|(differs, _)| *differs) {
        return Some((*what).to_owned());
    }
    field_difference(
        "the specific context",
        &class.specific_context,
        &read.specific_context,
    )
    .or_else(|| field_difference("the payload", &class.payload, &read.payload))
}

/// Names the first member of a scope that was read differently.
fn field_difference(
    scope: &str,
    class: &Option<FieldClass>,
    read: &Option<FieldClass>,
) -> Option<String> {
    if class == read {
        return None;
    }
    let members = |class: &Option<FieldClass>| match class {
        Some(FieldClass::Struct(class)) => class.members.clone(),
        _ => Vec::new(),
    };
    let (ours, theirs) = (members(class), members(read));
    let same = ours
        .iter()
        .zip(&theirs)
        .take_while(|(one, other)| one == other)
        .count();
    Some(match ours.get(same) {
        Some(member) => format!("{scope}'s field `{}`", member.name),
        None => scope.to_owned(),
    })
}
