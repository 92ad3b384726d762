//! Roles of field classes: their names, and where each may occur.

use super::fault::{Fault, Result};
use super::json::Value;
use super::object::{items_of, listed, shown, string_of};
use crate::schema::{Roles, Scope};

/// Roles of unsigned integers, with the scopes in which they may occur.
const INT_ROLES: &[(&str, Roles, &[Scope])] = &[
    (
        "data-stream-class-id",
        Roles::STREAM_CLASS_ID,
        &[Scope::PacketHeader],
    ),
    ("data-stream-id", Roles::STREAM_ID, &[Scope::PacketHeader]),
    (
        "default-clock-timestamp",
        Roles::CLOCK_TIMESTAMP,
        &[Scope::PacketContext, Scope::EventHeader],
    ),
    (
        "discarded-event-record-counter-snapshot",
        Roles::DISCARDED_EVENTS,
        &[Scope::PacketContext],
    ),
    (
        "event-record-class-id",
        Roles::EVENT_CLASS_ID,
        &[Scope::EventHeader],
    ),
    (
        "packet-content-length",
        Roles::PACKET_CONTENT_LENGTH,
        &[Scope::PacketContext],
    ),
    (
        "packet-end-default-clock-timestamp",
        Roles::PACKET_END_TIMESTAMP,
        &[Scope::PacketContext],
    ),
    (
        "packet-magic-number",
        Roles::PACKET_MAGIC,
        &[Scope::PacketHeader],
    ),
    (
        "packet-sequence-number",
        Roles::PACKET_SEQUENCE_NUMBER,
        &[Scope::PacketContext],
    ),
    (
        "packet-total-length",
        Roles::PACKET_TOTAL_LENGTH,
        &[Scope::PacketContext],
    ),
];

/// Roles of static-length BLOBs.
const BLOB_ROLES: &[(&str, Roles, &[Scope])] = &[(
    "metadata-stream-uuid",
    Roles::METADATA_UUID,
    &[Scope::PacketHeader],
)];

pub(crate) fn role_names(roles: Roles) -> impl Iterator<Item = &'static str> {
    let known = INT_ROLES.iter().chain(BLOB_ROLES);
    known
        .filter(move |(_, role, _)| roles.contains(*role))
        .map(|(name, ..)| *name)
}

/// Name of a scope in the metadata.
pub(crate) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "packet-header",
        Scope::PacketContext => "packet-context",
        Scope::EventHeader => "event-record-header",
        Scope::CommonContext => "event-record-common-context",
        Scope::SpecificContext => "event-record-specific-context",
        Scope::Payload => "event-record-payload",
    }
}

/// Reads the `roles` of an unsigned integer field class.
pub(super) fn int_roles(value: Option<&Value>) -> Result<Roles> {
    read(value, INT_ROLES)
}

/// Reads the `roles` of a static-length BLOB field class.
pub(super) fn blob_roles(value: Option<&Value>) -> Result<Roles> {
    read(value, BLOB_ROLES)
}

fn read(value: Option<&Value>, known: &[(&str, Roles, &[Scope])]) -> Result<Roles> {
    let mut roles = Roles::NONE;
    let Some(value) = value else { return Ok(roles) };
    for item in items_of(value, "roles")? {
        let name = string_of(item, "roles")?;
        match known.iter().find(|(known, ..)| *known == name) {
            Some((_, role, _)) => roles |= *role,
            None => {
                let names: Vec<&str> = known.iter().map(|(name, ..)| *name).collect();
                let message = format!(
                    "unexpected role `{}`: expecting {}",
                    shown(name),
                    listed(&names)
                );
                return Err(Fault::new(item.at, message));
            }
        }
    }
    Ok(roles)
}

/// Properties besides the field class that the validity of roles depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoleContext {
    pub(super) scope: Scope,
    /// The preamble has a UUID.
    pub(super) has_uuid: bool,
    /// The data stream class has a default clock class.
    pub(super) has_clock: bool,
}

impl RoleContext {
    /// Checks the roles of a field of this scope; `at` is the byte offset of `roles`.
    pub(super) fn check(&self, roles: Roles, at: usize) -> Result<()> {
        for (name, role, scopes) in INT_ROLES.iter().chain(BLOB_ROLES) {
            if roles.contains(*role) && !scopes.contains(&self.scope) {
                let scopes: Vec<&str> = scopes.iter().map(|scope| scope_name(*scope)).collect();
                let message = format!(
                    "a field of the `{}` scope may not have the role `{name}`: only valid in {}",
                    scope_name(self.scope),
                    listed(&scopes)
                );
                return Err(Fault::new(at, message));
            }
        }
        if roles.contains(Roles::METADATA_UUID) && !self.has_uuid {
            let message =
                "the role `metadata-stream-uuid` needs the `uuid` property of the preamble";
            return Err(Fault::new(at, message));
        }
        let is_timestamp =
            roles.contains(Roles::CLOCK_TIMESTAMP) || roles.contains(Roles::PACKET_END_TIMESTAMP);
        if is_timestamp && !self.has_clock {
            let message = "the role of a timestamp needs the `default-clock-class-id` property of the \
                           data stream class";
            return Err(Fault::new(at, message));
        }
        Ok(())
    }
}
