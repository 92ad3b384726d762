//! The state history: the value of every attribute of a traced machine at any time.
//!
//! In: a trace set with kernel events. Out: a file ([`build`]) in which the value of each [`Attribute`] at any time, its changes over a
//! range, and what all attributes are at a time are found without reading the trace again ([`History`]). Promise: the file is
//! the same, byte for byte, for every number of threads and every chunk size; memory does not grow with the trace.
//!
//! How: time is cut into slices of as many bytes of trace each; a block of the file holds, for each attribute that
//! changes in a slice, its changes one behind the other. Chunks of each CPU give changes by slice, side by side; so are
//! slices encoded; only what depends on the slice before (does the first change change anything?) is done one after the other.
//! Snapshots of all values, and coarse levels for screens, are in further blocks.
#![forbid(unsafe_code)]

mod append;
mod attribute;
mod block;
mod build;
mod checkpoint;
mod condition;
mod derived;
mod disks;
mod encode;
mod ends;
mod file;
mod files;
mod flush;
mod history;
mod kernel;
mod levels;
mod marks;
mod origin;
mod packing;
mod piece;
mod query;
mod report;
mod resume;
mod run;
mod slices;
mod user;
mod value;
mod varint;
mod writer;

/// What fuzz targets call.
#[cfg(fuzzing)]
pub mod fuzzing {
    use crate::block::Block;

    /// Reads all of a block with that body.
    pub fn block(body: &[u8], flags: u8) {
        if let Ok(block) = Block::of_body(body, flags) {
            let changes = block.directory.iter().flat_map(|entry| block.changes(entry));
            std::hint::black_box(changes.last());
        }
    }
}

pub use append::{AppendError, Appended, append};
pub use attribute::{Attribute, Form, Kind, Path, Subject};
pub use build::{Asked, BuildError, Built, build};
pub use condition::Condition;
pub use file::{Analysis, HistoryError, Meta, VERSION};
pub use history::History;
pub use marks::StreamMark;
pub use origin::origin;
pub use query::Since;
pub use report::{Numbers, Report, Times};
pub use user::{Definition, DefinitionError};
pub use value::{ThreadState, Value};
