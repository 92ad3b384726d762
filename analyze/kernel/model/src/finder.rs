//! Finding the fields of an event class under the names that tracers use.

use tracebraid_ctf::layout::node::NodeKind;
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::Scope;

use crate::drop_reason::DropReason;
use crate::field::{BytesField, IntField, TextField};

/// Finds the fields of an event class.
pub(crate) struct Finder<'a> {
    pub(crate) layout: &'a StreamLayout,
    pub(crate) event: usize,
}

impl Finder<'_> {
    /// True if the event has a field `name`.
    pub(crate) fn has(&self, scope: Scope, name: &str) -> bool {
        self.find(scope, &[name], Some).is_some()
    }

    /// Names of the payload's fields, in order.
    pub(crate) fn members(&self) -> Vec<String> {
        let root = self
            .layout
            .events
            .get(self.event)
            .and_then(|event| event.payload.root());
        let Some(root) = root.filter(|root| matches!(root.kind, NodeKind::Struct(_))) else {
            return Vec::new();
        };
        let name = |name: &str| name.strip_prefix('_').unwrap_or(name).to_owned();
        root.parts().map(|member| name(&member.name)).collect()
    }

    /// Byte order of the first integer in the payload, at any depth of nesting, that has one of
    /// these names.
    pub(crate) fn is_big_endian(&self, names: &[&str]) -> Option<bool> {
        let payload = &self.layout.events.get(self.event)?.payload;
        let is_named = |name: &str| names.contains(&name.strip_prefix('_').unwrap_or(name));
        payload
            .all()
            .filter(|part| is_named(&part.name))
            .find_map(|part| match part.kind {
                NodeKind::Int(read, _) => Some(read.big),
                _ => None,
            })
    }

    /// A text field at a constant offset, and the offset in bits after the header.
    pub(crate) fn text_at(&self, name: &str) -> Option<(TextField, u64)> {
        self.find(Scope::Payload, &[name], |field| {
            let offset = field.offset()?;
            Some((TextField::new(field)?, offset))
        })
    }

    /// A field of bytes that are not text.
    pub(crate) fn bytes(&self, name: &str) -> Option<BytesField> {
        self.find(Scope::Payload, &[name], BytesField::new)
    }

    /// The reason of a packet drop; `unspecified` as for [`DropReason::new`].
    pub(crate) fn drop_reason(&self, unspecified: i64) -> Option<DropReason> {
        let make = |field| DropReason::new(field, unspecified);
        self.find(Scope::Payload, &["reason"], make)
    }

    pub(crate) fn ints(&self, scope: Scope, names: &[&str]) -> Option<IntField> {
        self.find(scope, names, IntField::new)
    }

    pub(crate) fn int(&self, names: &[&str]) -> Option<IntField> {
        self.ints(Scope::Payload, names)
    }

    pub(crate) fn text(&self, names: &[&str]) -> Option<TextField> {
        self.find(Scope::Payload, names, TextField::new)
    }

    /// The first of these names that the event has and for which `make` succeeds. Writers of CTF
    /// 1.8 escape names with underscores, of which the schema removes one.
    pub(crate) fn find<T>(
        &self,
        scope: Scope,
        names: &[&str],
        make: impl Fn(FieldRef) -> Option<T>,
    ) -> Option<T> {
        // Looking up a scope that does not exist would search the whole layout.
        let event = self.layout.events.get(self.event)?;
        match scope {
            Scope::CommonContext => self.layout.common_context.root(),
            Scope::SpecificContext => event.specific_context.root(),
            _ => event.payload.root(),
        }?;
        names.iter().find_map(|name| {
            let found = |name: &str| {
                self.layout
                    .field(self.event, scope, &[name])
                    .and_then(&make)
            };
            found(name).or_else(|| found(&format!("_{name}")))
        })
    }

    pub(crate) fn element(&self, name: &str, index: &str) -> Option<IntField> {
        self.layout
            .field(self.event, Scope::Payload, &[name, index])
            .and_then(IntField::new)
    }

    /// The arguments of any call by number, in order.
    pub(crate) fn registers(&self) -> impl Iterator<Item = IntField> {
        ["0", "1", "2", "3", "4", "5"]
            .iter()
            .map_while(|index| self.element("args", index))
    }
}
