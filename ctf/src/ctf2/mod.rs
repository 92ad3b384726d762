//! The metadata language of CTF 2: converts a JSON text sequence (RFC 7464) to [`TraceClass`].
//!
//! A field class passes these modules: `json` parses values with their positions; `field_class`
//! reads and checks each class by itself and returns a `raw` class; `resolve` converts the raw
//! class where it is used, finds the fields that contain lengths and selectors (`location`), and
//! checks `roles`; `fragments` assembles the classes.
//!
//! Rejected, although the specification allows it: all extensions, because none is supported;
//! fixed-length fields of more than 64 bits (floating-point numbers: 128); a length or selector
//! field in an optional that is not being decoded, or in only some options of a variant, because
//! the field may not exist when it is needed.
//!
//! Accepted, although the specification forbids it, because it does no harm: fields without a role
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
/// `text` is the metadata as written, with a record separator (0x1E) before each fragment. An error
/// carries the position of the wrong JSON value, or of the object that lacks a property.
pub fn parse(text: &[u8]) -> std::result::Result<TraceClass, MetadataError> {
    trace_class(text).map_err(|fault| MetadataError::at(text, fault.at, fault.message))
}

fn trace_class(text: &[u8]) -> Result<TraceClass> {
    let mut builder = fragments::Builder::new(text.len());
    let mut at = 0;
    for (index, part) in text.split(|&byte| byte == RS).enumerate() {
        // No text may precede the first separator. An empty part is the gap between two adjacent
        // separators, which the RFC requires to be ignored.
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
