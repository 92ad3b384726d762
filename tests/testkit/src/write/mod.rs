//! The CTF writer: values to packets, and schemas to metadata of either format.
//!
//! It supports any schema; it is not fast.

mod encode;
mod packet;
mod tsdl;
mod tsdl_fields;

pub use encode::EncodeError;
pub use packet::{EventValues, PacketWriter};

use tracebraid_ctf::schema::{CtfVersion, FieldClass, Scope, TraceClass};
use tracebraid_ctf::write::WriteError;

/// The metadata text that describes `class`: TSDL that covers as many equivalent forms as possible,
/// or the JSON text sequence of `tracebraid_ctf`'s own writer.
///
/// # Errors
/// If CTF 2 cannot express the class.
pub fn metadata(class: &TraceClass) -> Result<String, WriteError> {
    match class.version {
        CtfVersion::V1_8 => Ok(tsdl::emit(class)),
        CtfVersion::V2_0 => tracebraid_ctf::write::metadata::text(class),
    }
}

/// The root class of a scope, as seen from an event record class.
fn scope_root(
    class: &TraceClass,
    scope: Scope,
    stream: Option<usize>,
    event: Option<usize>,
) -> Option<&FieldClass> {
    let stream = || class.streams.get(stream?);
    let event = || stream()?.events.get(event?);
    match scope {
        Scope::PacketHeader => class.packet_header.as_ref(),
        Scope::PacketContext => stream()?.packet_context.as_ref(),
        Scope::EventHeader => stream()?.event_header.as_ref(),
        Scope::CommonContext => stream()?.common_context.as_ref(),
        Scope::SpecificContext => event()?.specific_context.as_ref(),
        Scope::Payload => event()?.payload.as_ref(),
    }
}

/// Names of the structure members on a path; other steps have no name in a field location.
fn member_names<'c>(root: &'c FieldClass, path: &[u32]) -> Vec<&'c str> {
    let mut names = Vec::new();
    let mut class = root;
    for &step in path {
        class = match class {
            FieldClass::Struct(structure) => {
                let Some(member) = structure.members.get(step as usize) else {
                    break;
                };
                names.push(member.name.as_str());
                &member.class
            }
            FieldClass::Variant(variant) => {
                let Some(option) = variant.options.get(step as usize) else {
                    break;
                };
                &option.class
            }
            FieldClass::Optional(optional) => &optional.element,
            FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. } => element,
            _ => break,
        };
    }
    names
}
