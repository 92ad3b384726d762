//! Converts field locations to names.

use crate::schema::{EventClass, FieldClass, FieldLocation, Scope, TraceClass};

/// The scopes that are visible to a field: those of its trace, stream and event.
#[derive(Clone, Copy)]
pub(super) struct FieldScopes<'c> {
    pub(super) class: &'c TraceClass,
    /// Index of the stream class.
    pub(super) stream: Option<usize>,
    pub(super) event: Option<&'c EventClass>,
}

impl<'c> FieldScopes<'c> {
    /// The root class of a scope.
    pub(super) fn root(&self, scope: Scope) -> Option<&'c FieldClass> {
        let stream = || self.class.streams.get(self.stream?);
        match scope {
            Scope::PacketHeader => self.class.packet_header.as_ref(),
            Scope::PacketContext => stream()?.packet_context.as_ref(),
            Scope::EventHeader => stream()?.event_header.as_ref(),
            Scope::CommonContext => stream()?.common_context.as_ref(),
            Scope::SpecificContext => self.event?.specific_context.as_ref(),
            Scope::Payload => self.event?.payload.as_ref(),
        }
    }

    /// The class at the end of the first path of a location, and the names of the structure members
    /// on the path. Other steps have no names.
    pub(super) fn names(&self, location: &FieldLocation) -> Option<(&'c FieldClass, Vec<&'c str>)> {
        let mut names = Vec::new();
        let mut class = self.root(location.scope)?;
        for &step in location.paths.first()? {
            let (name, part) = class.parts().nth(step as usize)?;
            if matches!(class, FieldClass::Struct(_)) {
                names.extend(name.map(|name| name.as_str()));
            }
            class = part;
        }
        Some((class, names))
    }
}
