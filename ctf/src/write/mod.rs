//! The writer: schemas to metadata, events to packets, packets to traces on disk as LTTng lays them
//! out.
//!
//! In: a [`TraceClass`](crate::schema::TraceClass) (see [`crate::schema::build`] for short ways to
//! one), and for each event its class, its time and its values. Out: directories that every reader
//! of CTF 1.8, or of CTF 2, reads. Promise: what has been written is valid at any moment, an event
//! record that is refused leaves no trace of itself, and nothing that a caller gives makes it panic.
//!
//! From above: [`trace`] makes files and directories, [`stream`] packets of one data stream,
//! [`fields`] an event's fields; [`metadata`] and [`index`] make the other files' bytes.

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
