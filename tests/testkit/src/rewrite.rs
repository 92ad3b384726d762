//! Traces written by the writer: generated ones, and copies of recorded traces.
//!
//! In: a generated trace, or a directory with traces. Out: the same events in a session written by
//! `tracebraid_ctf::write`.

use crate::generate::{Generated, GeneratedEvent};
use crate::value::Value;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::{Encoding, FieldClass, IntClass, Roles, TraceClass};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_ctf::walk::Visitor;
use tracebraid_ctf::write::WriteError;
use tracebraid_ctf::write::fields::Fields;
use tracebraid_ctf::write::trace::{Options, Session, TraceWriter};

/// Writes the values of a field, in order.
fn give(fields: &mut Fields<'_>, class: &FieldClass, value: &Value, at_once: bool) {
    match (class, value) {
        (_, Value::Int(value)) => {
            fields.int(*value);
        }
        (_, Value::UInt(value) | Value::Bits(value)) => {
            fields.uint(*value);
        }
        (_, Value::Bool(value)) => {
            fields.uint(u64::from(*value));
        }
        (_, Value::Wide(bytes)) => {
            fields.wide(bytes);
        }
        (_, Value::Float { length: 64, bits }) if !f64::from_bits(*bits as u64).is_nan() => {
            fields.float(f64::from_bits(*bits as u64));
        }
        (_, Value::Float { length: 32, bits }) if !f32::from_bits(*bits as u32).is_nan() => {
            fields.float(f64::from(f32::from_bits(*bits as u32)));
        }
        (_, Value::Float { bits, .. }) => {
            fields.float_bits(*bits);
        }
        (_, Value::Str(text)) => {
            fields.string(text);
        }
        (_, Value::Blob(bytes)) => {
            fields.bytes(bytes);
        }
        (
            FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. },
            Value::Array(values),
        ) => {
            let bytes = || {
                values
                    .iter()
                    .map(|value| value.as_integer().unwrap() as u8)
                    .collect::<Vec<_>>()
            };
            match &**element {
                FieldClass::Int(int) if int.encoding.is_some() => {
                    // Without the trailing null characters.
                    let bytes = bytes();
                    let end = bytes
                        .iter()
                        .position(|&byte| byte == 0)
                        .unwrap_or(bytes.len());
                    fields.bytes(&bytes[..end]);
                }
                FieldClass::Int(int)
                    if at_once
                        && int.length == 8
                        && int.align == 8
                        && !int.signed
                        && !int.reversed_bits =>
                {
                    fields.bytes(&bytes());
                }
                element => values
                    .iter()
                    .for_each(|value| give(fields, element, value, at_once)),
            }
        }
        (FieldClass::Struct(class), Value::Struct(values)) => {
            let members = class.members.iter().zip(values);
            members.for_each(|(member, value)| give(fields, &member.class, value, at_once));
        }
        (FieldClass::Variant(class), Value::Variant { option, value }) => {
            give(fields, &class.options[*option].class, value, at_once);
        }
        (_, Value::Optional(None)) => {}
        (FieldClass::Optional(class), Value::Optional(Some(value))) => {
            give(fields, &class.element, value, at_once);
        }
        (class, value) => panic!("{value:?} is not a value of {class:?}"),
    }
}

/// The classes and values of an event's body, in the order of decoding.
pub fn body<'a>(
    class: &'a TraceClass,
    stream: usize,
    event: &'a GeneratedEvent,
) -> Vec<(&'a FieldClass, &'a Value)> {
    let schema = &class.streams[stream];
    let event_class = &schema.events[event.class];
    let values = &event.values;
    [
        (&schema.common_context, &values.common_context),
        (&event_class.specific_context, &values.specific_context),
        (&event_class.payload, &values.payload),
    ]
    .into_iter()
    .filter_map(|(class, value)| Some((class.as_ref()?, value.as_ref()?)))
    .collect()
}

/// The integers without a role in a stream's packet heads.
fn context(class: &TraceClass, stream: usize) -> Vec<(String, i64)> {
    let scopes = [&class.packet_header, &class.streams[stream].packet_context];
    let mut values = BTreeMap::new();
    for scope in scopes.into_iter().flatten().flat_map(FieldClass::all) {
        for (name, part) in scope.parts() {
            if let (Some(name), FieldClass::Int(int)) = (name, part)
                && int.roles == Roles::NONE
            {
                values.insert(name.to_string(), i64::from(int.length > 1));
            }
        }
    }
    values.into_iter().collect()
}

/// Writes a generated trace into the directory `below` of a session, and finishes the session. Half
/// of its event classes are declared only after the start, and now and then the writer gets values
/// that it must reject.
///
/// # Errors
/// Those of the writer.
///
/// # Panics
/// If the writer accepts invalid values, or a value does not belong to its class.
pub fn write(
    generated: &Generated,
    session: Session,
    below: &str,
    options: Options,
) -> Result<(), WriteError> {
    let class = &generated.class;
    let mut now = class.clone();
    // Half of the event classes are declared later.
    for stream in &mut now.streams {
        stream.events.truncate(stream.events.len() / 2);
    }
    let mut trace = session.trace(below.as_ref(), &now, options)?;
    for (index, stream) in class.streams.iter().enumerate() {
        for event in stream.events.iter().skip(now.streams[index].events.len()) {
            trace.add_event(index, event)?;
        }
    }
    for stream in &generated.streams {
        let context = context(class, stream.class);
        let context: Vec<(&str, i64)> = context
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        let id = stream.id.unwrap_or(0);
        let mut writer = trace.stream(stream.class, &stream.file_name, id, &context)?;
        let events = stream.packets.iter().flat_map(|packet| &packet.events);
        for (number, event) in events.enumerate() {
            let plan = trace.events(stream.class)[event.class].clone();
            let time = event.time.unwrap_or(0);
            let values = body(class, stream.class, event);
            let mut record = |too_many: bool| {
                writer.record(&plan, time, |fields| {
                    for (class, value) in &values {
                        give(fields, class, value, number % 2 == 0);
                    }
                    if too_many {
                        fields.uint(1);
                    }
                })
            };
            if number % 5 == 0 {
                assert!(record(true).is_err(), "more values than fields");
            }
            record(false)?;
        }
        writer.discard(stream.class as u64 * 3);
        writer.finish()?;
    }
    drop(trace);
    session.finish().map(drop)
}

/// Copies all traces at or below a directory to the same relative paths in the session, and
/// finishes the session. The writer divides the events into its own packets.
///
/// # Errors
/// If a file cannot be read, is damaged, or cannot be written.
pub fn copy(from: &Path, session: Session, options: Options) -> Result<()> {
    let set = TraceSet::open(&[from])?;
    if let Some((path, reason)) = set.failed.first() {
        bail!("{}: {reason}", path.display());
    }
    for trace in &set.traces {
        let place = trace.paths.first().context("a trace without a directory")?;
        let below = place.strip_prefix(from)?;
        let mut writer = session.trace(below, &trace.layout.class, options)?;
        for (number, stream) in trace.streams.iter().enumerate() {
            copy_stream(trace, stream, &mut writer, number)?;
        }
    }
    session.finish()?;
    Ok(())
}

fn copy_stream(
    trace: &Trace,
    stream: &Stream,
    writer: &mut TraceWriter,
    number: usize,
) -> Result<()> {
    let layout = trace
        .layout
        .streams
        .get(stream.class)
        .context("a stream without a class")?;
    let context: Vec<(String, i64)> = context(&trace.layout.class, stream.class)
        .into_iter()
        .map(|(name, _)| {
            let value = stream.head.value(layout, &name).unwrap_or(0);
            (name, value as i64)
        })
        .collect();
    let context: Vec<(&str, i64)> = context
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let path = stream.files.first().map(|file| file.path.as_path());
    let name = path
        .and_then(Path::file_name)
        .context("a stream without a file")?;
    let id = stream.id.unwrap_or(number as u64);
    let mut out = writer.stream(stream.class, &name.to_string_lossy(), id, &context)?;
    let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 17);
    let mut discarded = 0;
    while reader.peek().is_some() {
        let now = reader
            .packet()
            .and_then(|packet| packet.discarded)
            .unwrap_or(discarded);
        out.discard(now.saturating_sub(discarded));
        discarded = now;
        let mut event = reader.event().context("an event record that was found")?;
        let plan = &writer.events(stream.class)[event.class_index];
        let time = event.clock;
        out.record(plan, time, |fields| {
            // The reader has verified the record.
            let _ = event.walk_body(&mut Giver { fields }, |_, _| {});
        })?;
        reader.advance();
    }
    if let Some(damage) = reader.take_damage().first() {
        bail!("{damage}");
    }
    out.finish()?;
    Ok(())
}

/// Passes the fields that the reader finds to the writer.
struct Giver<'f, 'p> {
    fields: &'f mut Fields<'p>,
}

impl Visitor for Giver<'_, '_> {
    fn integer(&mut self, _: &Node, class: &IntClass, raw: u64) {
        if class.signed {
            self.fields.int(raw as i64);
        } else {
            self.fields.uint(raw);
        }
    }
    fn wide_integer(&mut self, _: &Node, _: &IntClass, bytes: &[u8]) {
        self.fields.wide(bytes);
    }
    fn boolean(&mut self, _: &Node, value: bool) {
        self.fields.uint(u64::from(value));
    }
    fn bits(&mut self, _: &Node, _: &IntClass, raw: u64) {
        self.fields.uint(raw);
    }
    fn float(&mut self, _: &Node, _: u32, value: f64) {
        self.fields.float(value);
    }
    fn string(&mut self, _: &Node, _: Encoding, bytes: &[u8]) {
        self.fields.bytes(bytes);
    }
    fn blob(&mut self, _: &Node, bytes: &[u8]) {
        self.fields.bytes(bytes);
    }
}
