//! The writer: schemas to metadata, events to packets, packets to traces on disk as LTTng lays them
//! out.
//!
//! In: a [`TraceClass`](crate::schema::TraceClass) (see [`crate::schema::build`] for short ways to
//! one), and for each event its class, its time and its values. Out: directories that every reader
//! of CTF 1.8, or of CTF 2, reads. Promise: whatever has been written is valid at any moment, an
//! event record that is refused leaves no trace of itself, and no value that a caller gives makes
//! it panic.
//!
//! From above: [`trace`] makes files and directories, [`stream`] packets of one data stream,
//! [`fields`] an event's fields; [`metadata`] and [`index`] make the other files' bytes. `plan`
//! compiles a stream class and each of its event classes once, with the reader's layouts, and
//! [`fields`] walks those with values from outside.
//!
//! A directory is named `NAME.part` until it is complete, unless it is live. Each piece is appended
//! whole, and an index gets its name last. Metadata is given out only if the reader's front end
//! makes the same schema of it.

mod bits;
mod convert;
mod error;
mod event_header;
pub mod fields;
mod head;
pub mod index;
pub mod lttng;
pub mod metadata;
mod plan;
pub mod stream;
pub mod trace;

pub use convert::to_version;
pub use error::{FieldProblem, Version, WriteError};
pub use plan::{EventPlan, StreamPlan};
