//! The Common Trace Format, 1.8 and 2: metadata to schema, schema to compiled layouts, packets,
//! traces on disk, and back.
//!
//! In: bytes of metadata and data streams. Out: a [`schema::TraceClass`], and event records whose
//! fields are decoded only when asked for. Promise: no input makes it panic, hang or allocate
//! without bound; damage is reported with its place and hides nothing but itself.
//! This crate knows nothing of Linux.
// One module lifts this: see `scan::lanes`.
#![deny(unsafe_code)]

pub mod bits;
mod bounds;
pub mod clock;
pub mod correction;
pub mod ctf2;
pub mod damage;
mod descent;
pub mod error;
pub mod event;
mod extent;
mod float;
pub mod index;
pub mod layout;
pub mod losses;
pub mod mapping;
pub mod metadata;
mod misplaced;
mod open;
pub mod order;
pub mod packet;
pub mod packetized;
mod packets;
pub mod reader;
pub mod scan;
pub mod schema;
mod source;
pub mod special;
mod stack;
pub mod stream;
mod timestamp;
pub mod trace;
pub mod tsdl;
pub mod walk;
pub mod window;
pub mod write;
