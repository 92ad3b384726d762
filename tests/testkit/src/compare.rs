//! Comparison of generated traces with the results of the reference reader.

use crate::generate::{Generated, GeneratedEvent, GeneratedPacket, GeneratedStream};
use crate::reference::{Event, Packet, Reader, Stream};
use std::fmt::Debug;
use tracebraid_ctf::schema::TraceClass;

/// Decodes every stream of `generated` with the reference reader according to `class`, and compares
/// the result with the generated values.
///
/// # Errors
/// The first difference, in words.
pub fn check(generated: &Generated, class: &TraceClass) -> Result<(), String> {
    let reader = Reader::new(class);
    for stream in &generated.streams {
        let read = reader.stream(&stream.data);
        check_stream(stream, &read)
            .map_err(|difference| format!("{}: {difference}", stream.file_name))?;
    }
    Ok(())
}

/// Compares a decoded stream with the generated values.
///
/// # Errors
/// The first difference, in words.
pub fn check_stream(written: &GeneratedStream, read: &Stream) -> Result<(), String> {
    for (index, (written, read)) in written.packets.iter().zip(&read.packets).enumerate() {
        check_packet(written, read)
            .map_err(|difference| format!("packet {index}: {difference}"))?;
    }
    if let Some((offset, error)) = &read.error {
        return Err(format!("packet at byte {offset}: {error}"));
    }
    same(
        "number of packets",
        &written.packets.len(),
        &read.packets.len(),
    )
}

fn same<T: PartialEq + Debug>(what: &str, written: &T, read: &T) -> Result<(), String> {
    if written == read {
        Ok(())
    } else {
        Err(format!("{what}: wrote {written:?}, read {read:?}"))
    }
}

fn check_packet(written: &GeneratedPacket, read: &Packet) -> Result<(), String> {
    let head = &read.head;
    same("offset", &written.offset, &read.offset)?;
    same("header", &written.header, &head.header)?;
    same("context", &written.context, &head.context)?;
    same("total length", &written.total_length, &head.total_length)?;
    same(
        "content length",
        &written.content_length,
        &head.content_length,
    )?;
    same("begin", &written.begin, &head.begin)?;
    same("end", &written.end, &head.end)?;
    same(
        "sequence number",
        &written.sequence_number,
        &head.sequence_number,
    )?;
    same(
        "discarded events",
        &written.discarded_events,
        &head.discarded_events,
    )?;
    for (index, (written, read)) in written.events.iter().zip(&read.events).enumerate() {
        check_event(written, read).map_err(|difference| format!("event {index}: {difference}"))?;
    }
    if let Some(error) = &read.error {
        return Err(format!("after {} events: {error}", read.events.len()));
    }
    same(
        "number of events",
        &written.events.len(),
        &read.events.len(),
    )
}

fn check_event(written: &GeneratedEvent, read: &Event) -> Result<(), String> {
    same("class", &written.class, &read.class)?;
    same("start", &written.start, &read.start)?;
    let values = &written.values;
    same("header", &values.header, &read.header)?;
    same(
        "common context",
        &values.common_context,
        &read.common_context,
    )?;
    same(
        "specific context",
        &values.specific_context,
        &read.specific_context,
    )?;
    same("payload", &values.payload, &read.payload)?;
    same("end", &written.end, &read.end)?;
    same("time", &written.time, &read.time)
}
