//! The writer: converts schemas to metadata and events to packets, and writes traces to disk in
//! LTTng's layout.
//!
//! In: a [`TraceClass`](crate::schema::TraceClass) (see [`crate::schema::build`] for shorthand),
//! and for each event its class, its time and its values. Out: directories that every reader of CTF
//! 1.8, or of CTF 2, can read. Promise: the data written so far is valid at any moment, a rejected
//! event record leaves no bytes in the file, and no value makes the writer panic.
//!
//! From top to bottom: [`trace`] creates files and directories, [`stream`] the packets of a data
//! stream, [`fields`] the fields of an event; [`metadata`] and [`index`] create the bytes of the
//! other files. `plan` compiles a stream class and each of its event classes once, with the
//! reader's layouts, and [`fields`] walks over these layouts with the caller's values.
//!
//! A directory is named `NAME.part` until it is complete, unless it is live. Each piece is appended
//! as a whole, and an index gets its final name last. Metadata is returned only if the reader's
//! front end parses it to the same schema.

mod bits;
mod convert;
mod error;
mod event_header;
pub mod fields;
mod head;
pub mod index;
pub mod lttng;
pub mod metadata;
mod placed;
mod plan;
pub mod stream;
pub mod trace;

pub use convert::to_version;
pub use error::{FieldProblem, Version, WriteError};
pub use placed::PlacedFiles;
pub use plan::{DeferredEventPlan, EventPlan, StreamPlan};
