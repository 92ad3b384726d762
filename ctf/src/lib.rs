//! The Common Trace Format, 1.8 and 2: metadata to schema, schema to compiled layouts, packets,
//! traces on disk, and back.
//!
//! In: bytes of metadata and data streams. Out: a [`schema::TraceClass`], and event records whose
//! fields are decoded only when asked for. Promise: no input makes it panic, hang or allocate
//! without bound; damage is reported with its place and hides nothing but itself. This crate knows
//! nothing of Linux.
//!
//! From bytes to event records:
//!
//! 1. [`metadata`] unpacks packetized metadata and calls the front end of its version: [`tsdl`]
//!    (CTF 1.8) or [`ctf2`] (JSON). Both take one item or fragment after the other and forget its
//!    text; both give a [`schema::TraceClass`], in which references to lengths and selectors are
//!    absolute field locations. Code above them does not know which language it was.
//! 2. [`layout`] compiles the schema: for each scope a tree of nodes to walk over all fields, with
//!    registers (slots) for lengths and selectors; for each event class a skip program over its
//!    body, which for most classes is one addition, and a shape where all steps lead from byte to
//!    byte; for headers with id and timestamp at constant offsets the form that the scanner needs;
//!    on demand the way to one field.
//! 3. `open` finds files, reads LTTng's index or the heads of all packets (`packets`, [`index`]),
//!    joins rotated files into streams and archives into one [`trace::Trace`]. A
//!    [`trace::TraceSet`] holds several.
//! 4. `bounds` holds the times between which the event records of a packet lie, where its head does
//!    not give them. To open a file reads the first event record of each packet along with its
//!    head, at no further access. No other code may infer the contents of a packet from its times;
//!    `Packet::clock` is where decoding starts. The clock starts anew in each packet, as the
//!    formats define it, so packets can be read in any order.
//! 5. Event records are read in one of two ways: [`reader`] gives them one by one, of one stream or
//!    of all merged by time, to callers that want all fields; [`scan`] finds the records of chosen
//!    classes, or counts them, at the speed of memory.
//!
//! **How bytes come in** (`source`, [`window`], [`mapping`]). Pieces of a file are mapped where the
//! program allows it and the file has not changed lately; everything else is read by `pread` into a
//! reused buffer: live traces, many small streams at once, programs that want no signal handler.
//!
//! **Nesting.** Nothing recurses over nested fields or types: open levels are kept in a list
//! (`descent` where a nested result is built), the nodes of a scope lie in one list, and nested
//! values are freed piece by piece. So the stack of a thread does not bound the depth of a trace's
//! fields.
//!
//! **Corrections.** The relation of a trace's clock to those of other hosts is applied in one
//! place, [`clock::ClockConversion`], which `Trace::clock` gives: reading in parallel, merging,
//! bounds of packets and ranges all use it, and a clock without a correction takes the same steps
//! as before. Corrections live as long as the program (`&'static`), so that conversions can be
//! copied in the loops over event records.
//!
//! The writer is `write`.
// Lifted where the head of a module says why: `mapping`, `scan::lanes`, `scan::guess`.
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
