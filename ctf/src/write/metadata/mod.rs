//! Metadata: converts a schema to TSDL (CTF 1.8) or to a JSON text sequence (CTF 2), either
//! completely or one event class at a time while a trace grows.
//!
//! All text is parsed by the reader's front end before it is returned, and must result in the same
//! schema. So the text is never wrong; if the format cannot express the schema, an error is
//! returned.

mod check;
mod json;
mod json_fields;
mod locate;
mod packets;
mod tsdl;
mod tsdl_fields;

use std::collections::HashSet;

use super::error::WriteError;
use crate::schema::{CtfVersion, EventClass, TraceClass};

pub use packets::packet;

/// The metadata of a trace to which event classes may be added.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The trace class without event classes.
    base: TraceClass,
    base_text: String,
    /// Stream class (by index) and id of each existing event class.
    events: HashSet<(usize, u64)>,
}

impl Metadata {
    /// Starts with `class` and returns its text, including event classes. The version is that of
    /// the class.
    ///
    /// # Errors
    /// If the version of the format cannot express the class.
    pub fn new(class: &TraceClass) -> Result<(Metadata, String), WriteError> {
        let mut base = class.clone();
        let mut events = HashSet::new();
        for (index, stream) in base.streams.iter_mut().enumerate() {
            let ids = std::mem::take(&mut stream.events).into_iter();
            events.extend(ids.map(|event| (index, event.id)));
        }
        let base_text = base_text(&base)?;
        let mut text = base_text.clone();
        for (index, stream) in class.streams.iter().enumerate() {
            for event in &stream.events {
                text.push_str(&event_text(&base, index, event)?);
            }
        }
        check::all(&text, class)?;
        Ok((
            Metadata {
                base,
                base_text,
                events,
            },
            text,
        ))
    }

    /// Adds an event class to the stream class with this index. Returns its text, which must be
    /// appended.
    ///
    /// # Errors
    /// If there is no such stream class, if it has an event class with this id already, or if the
    /// version of the format cannot express the class.
    pub fn add_event(&mut self, stream: usize, event: &EventClass) -> Result<String, WriteError> {
        let text = self.event(stream, event)?;
        self.note(stream, event);
        Ok(text)
    }

    /// The same text, without adding the event class.
    pub(super) fn event(&self, stream: usize, event: &EventClass) -> Result<String, WriteError> {
        if stream >= self.base.streams.len() {
            return Err(WriteError::Misuse(format!(
                "there is no stream class at index {stream}"
            )));
        }
        if self.events.contains(&(stream, event.id)) {
            let message = format!(
                "stream class {stream} has an event class with id {} already",
                event.id
            );
            return Err(WriteError::Misuse(message));
        }
        let text = event_text(&self.base, stream, event)?;
        check::event(&self.base_text, &text, &self.base, stream, event)?;
        Ok(text)
    }

    /// Records that the event class has been added.
    pub(super) fn note(&mut self, stream: usize, event: &EventClass) {
        self.events.insert((stream, event.id));
    }

    /// The trace class without its event classes.
    pub(super) fn base(&self) -> &TraceClass {
        &self.base
    }
}

/// The complete text that describes `class`, in the language of its version, without packets.
///
/// # Errors
/// If the version of the format cannot express the class.
pub fn text(class: &TraceClass) -> Result<String, WriteError> {
    Metadata::new(class).map(|(_, text)| text)
}

/// The text without the event classes.
fn base_text(class: &TraceClass) -> Result<String, WriteError> {
    match class.version {
        CtfVersion::V1_8 => tsdl::base(class),
        CtfVersion::V2_0 => json::base(class),
    }
}

fn event_text(class: &TraceClass, stream: usize, event: &EventClass) -> Result<String, WriteError> {
    match class.version {
        CtfVersion::V1_8 => tsdl::event(class, stream, event),
        CtfVersion::V2_0 => json::event(class, stream, event),
    }
}
