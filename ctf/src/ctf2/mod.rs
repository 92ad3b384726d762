//! The metadata language of CTF 2: a JSON text sequence (RFC 7464) to [`TraceClass`].
//!
//! The way of a field class: `json` gives values with their places; `field_class` reads and checks
//! each by itself (to a `raw` one); `resolve` makes it part of the schema where it is used, finds
//! the fields that give lengths and select options (`location`), and checks its `roles`;
//! `fragments` puts the classes together.
//!
//! Rejected, though the specification allows it: every extension, because none is supported;
//! fixed-length fields above 64 bits (floating-point numbers: 128); a length or selector field in
//! an optional that is not being decoded, or in only some options of a variant: it may not exist
//! when it is needed.
//!
//! Accepted, though the specification forbids it, because it does no harm: fields without a role
//! in packet and event record headers.

mod attributes;
mod compound;
mod fault;
mod field_class;
mod fragments;
mod json;
mod location;
mod object;
mod raw;
mod resolve;
mod roles;

use crate::error::MetadataError;
use crate::schema::TraceClass;
use fault::{Fault, Result};
pub(crate) use roles::{role_names, scope_name};

/// Record separator: starts each fragment.
const RS: u8 = 0x1e;

/// Parses and validates the JSON text sequence.
///
/// `text` is the metadata as written: a record separator (0x1E) before each fragment. The error
/// has the place of the JSON value that is wrong, or of the object that lacks something.
pub fn parse(text: &[u8]) -> std::result::Result<TraceClass, MetadataError> {
    trace_class(text).map_err(|fault| MetadataError::at(text, fault.at, fault.message))
}

fn trace_class(text: &[u8]) -> Result<TraceClass> {
    let mut builder = fragments::Builder::new(text.len());
    let mut at = 0;
    for (index, part) in text.split(|&byte| byte == RS).enumerate() {
        // Nothing stands before the first separator; an empty part is the space between two
        // separators in a row, which the RFC says to ignore.
        if index == 0 && !part.is_empty() {
            return Err(Fault::new(
                0,
                "expecting a record separator (0x1E) before the first fragment",
            ));
        }
        if !part.is_empty() {
            builder.fragment(&json::parse(part, at)?)?;
        }
        at += part.len() + 1;
    }
    builder.finish(text.len())
}
