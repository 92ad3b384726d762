//! Metadata: a schema to TSDL (CTF 1.8) or to a JSON text sequence (CTF 2), all of it at once or
//! event class by event class while a trace grows.
//!
//! Whatever is made is read again by the reader's front end before it is given out, and must give
//! the very schema that it was made from. So text is never wrong; where the format cannot say what
//! the schema says, there is an error instead.

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

/// The metadata of a trace that may get more event classes.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Without event classes.
    base: TraceClass,
    base_text: String,
    /// Stream classes (by index) and ids of the event classes that there are.
    events: HashSet<(usize, u64)>,
}

impl Metadata {
    /// Starts with `class`, of which it gives the text, event classes included. The version is the
    /// class's own.
    ///
    /// # Errors
    /// When the version of the format cannot express the class.
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

    /// The text of one more event class of the stream class at that index, to be appended.
    ///
    /// # Errors
    /// When there is no such stream class, when it has an event class of that id already, or when
    /// the version of the format cannot express the class.
    pub fn add_event(&mut self, stream: usize, event: &EventClass) -> Result<String, WriteError> {
        let text = self.event(stream, event)?;
        self.note(stream, event);
        Ok(text)
    }

    /// The same text, of an event class that is not added yet.
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

    /// The event class has been added.
    pub(super) fn note(&mut self, stream: usize, event: &EventClass) {
        self.events.insert((stream, event.id));
    }

    /// The class without its event classes.
    pub(super) fn base(&self) -> &TraceClass {
        &self.base
    }
}

/// All of the text that describes `class`, in the language of its version, not in packets.
///
/// # Errors
/// When the version of the format cannot express the class.
pub fn text(class: &TraceClass) -> Result<String, WriteError> {
    Metadata::new(class).map(|(_, text)| text)
}

/// All but the event classes.
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
