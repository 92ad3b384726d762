//! The Common Trace Format (CTF), versions 1.8 and 2: reads metadata into a schema, compiles the
//! schema to layouts, reads packets and traces on disk, and writes traces.
//!
//! In: bytes of metadata and data streams. Out: a [`schema::TraceClass`], and event records whose
//! fields are decoded only on demand. Promise: no input makes this crate panic, hang or allocate
//! without bound; damage is reported with its position and does not affect data elsewhere. This
//! crate knows nothing of Linux.
//!
//! From bytes to event records:
//!
//! 1. [`metadata`] unpacks packetized metadata and calls the front end of its version: [`tsdl`]
//!    (CTF 1.8) or [`ctf2`] (JSON). Both front ends process one item or fragment at a time and then
//!    free its text. Both return a [`schema::TraceClass`], in which references to lengths and
//!    selectors are absolute field locations. Code above the front ends does not depend on the
//!    version.
//! 2. [`layout`] compiles the schema. Each scope gets a tree of nodes for walking over all fields,
//!    with registers (slots) for lengths and selectors. Each event class gets a skip program over
//!    its body, which for most classes is a single addition, and a shape if all steps of that
//!    program begin at byte boundaries. A header with id and timestamp at constant offsets gets the
//!    compact form that the scanner needs. The path to a single field is compiled on demand.
//! 3. `open` finds the files, reads LTTng's index or the heads of all packets (`packets`,
//!    [`index`]), and joins rotated files into streams and archives into a single [`trace::Trace`].
//!    The head of a packet is its packet header and packet context. A [`trace::TraceSet`] holds
//!    several traces.
//! 4. `bounds` holds the time range of the event records of a packet whose head does not contain
//!    it. The first event record of each packet is read together with the head when the file is
//!    opened, at no further access. No other code may infer the contents of a packet from its
//!    times; decoding starts at `Packet::clock`. The clock starts anew in each packet, as the
//!    formats define it, so packets can be read in any order.
//! 5. Event records are read by one of two modules. [`reader`] returns the records of one stream,
//!    or of all streams merged by time, one at a time, for callers that want all fields. [`scan`]
//!    finds or counts the records of chosen classes at memory bandwidth.
//!
//! **Input** (`source`, [`window`], [`mapping`]). Pieces of a file are mapped if the program allows
//! mapping and the file has not changed recently. All other files are read by `pread` into a reused
//! buffer: live traces, many small streams at once, and files of programs that do not want a signal
//! handler.
//!
//! **Nesting.** No function recurses over nested fields or types. Open levels are kept in a list
//! (`descent` where a nested result is built), the nodes of a scope form a single list, and nested
//! values are freed one at a time. So the depth of a trace's fields is not bounded by the size of a
//! thread's stack.
//!
//! **Corrections.** The relation between a trace's clock and those of other hosts is applied only
//! in [`clock::ClockConversion`], which `Trace::clock` returns. Parallel reading, merging, packet
//! bounds and time ranges all use this conversion. A clock without a correction is converted at no
//! extra cost. Corrections live as long as the program (`&'static`), so that conversions can be
//! copied in the loops over event records.
//!
//! The writer is `write`.
// Allowed only in `mapping`, `scan::lanes` and `scan::guess`; the head of each module gives the
// reason.
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
