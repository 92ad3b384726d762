//! The state history: the value of every attribute of a traced machine at any time.
//!
//! In: a trace set with kernel events. Out: a file ([`build`]) that answers queries without reading
//! the trace again ([`History`]): the value of each [`Attribute`] at any time, its changes over a
//! range, and the values of all attributes at a time. Promise: the file is the same, byte for byte,
//! for every number of threads and every chunk size; memory does not grow with the trace.
//!
//! **An event sets attributes regardless of their old values.** The state of a thread and its
//! system call are two attributes, so a switch does not depend on calls, nor one CPU on another.
//! Steps that depend on the old value (does a wake-up change the state? what is the sum?) can be
//! deferred. So chunks of each CPU are folded in parallel into changes by slice of time (`kernel`,
//! `piece`). Complete slices continue in jobs that any thread runs (`pipeline`;
//! `Analysis::follow_up` returns the jobs that follow from others): each slice is encoded
//! (`encode`); sixteen slices are settled together, by sixteen shards of attributes in parallel
//! (`shard`: the first change of each attribute is dropped if it changes nothing, and sums get
//! their base); each block is assembled and packed (`assembly`). One thread numbers texts and
//! assigns the offsets of blocks in the file; jobs write the blocks there (`batch`). Which blocks
//! get a snapshot depends on the sizes of blocks at least sixteen earlier (`snapshots`), but
//! neither on groups nor on where a history was continued. Boundaries of slices come from the
//! packet table (`slices`), so the file does not show how the work was divided. Descriptors are
//! known in the order of time only (`files`), and so are disks (`disks`).
//!
//! **The file** (`file`, `block`, `run`): for each slice a directory of attributes, and their
//! changes as numbers of variable length. Snapshots of all values, which take at most an eighth of
//! the bytes written since the last snapshot, bound how far back a query reads. Coarse levels
//! (`levels`) have the same form: values at the multiples of a grid. A history tree, as in Trace
//! Compass, stores intervals, which must be known to their ends before they can be written; changes
//! need only their start, take half the space, and are written in order. The description of the
//! traces is at the end and, as far as it is known in advance, at the beginning (`origin`), for
//! truncated files. The state of a CPU follows from other attributes and is not stored (`derived`).
//!
//! **A trace that grows** (`append`, `marks`, `resume`): the history contains the state that a
//! chunk needs from earlier chunks. So it is cut at the start of a slice that precedes all new
//! packets, seeded from itself, and the fold starts there. Blocks become the same, byte for byte,
//! as in a build of the whole trace, because the earlier part of the packet table stays the same.
//! State that values do not contain (stacks of user analyses, open calls) is stored at the start of
//! some slices (`checkpoint`), and the cut is at the start of such a slice.
//!
//! `user` contains the analyses that users define.
#![forbid(unsafe_code)]

mod append;
mod assembly;
mod attribute;
mod batch;
mod block;
#[cfg(test)]
mod bounds;
mod build;
mod by_attribute;
mod checkpoint;
mod condition;
mod derived;
mod disks;
mod encode;
mod ends;
mod file;
mod files;
mod flush;
mod ground;
mod history;
mod history_analysis;
mod kernel;
mod levels;
mod marks;
mod origin;
mod packing;
mod piece;
mod pipeline;
mod query;
mod report;
mod resume;
mod run;
mod settling;
mod shard;
mod slices;
mod snapshots;
mod texts;
mod user;
mod value;
mod varint;
mod writer;

/// Entry points of fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    use crate::block::Block;

    /// Reads all of a block with that body.
    pub fn block(body: &[u8], flags: u8) {
        if let Ok(block) = Block::of_body(body, flags) {
            let changes = block
                .directory
                .iter()
                .flat_map(|entry| block.changes(entry));
            std::hint::black_box(changes.last());
        }
    }
}

pub use append::{AppendError, Appended, append};
pub use attribute::{Attribute, AttributeKind, Form, Path, Subject};
pub use build::{Built, build};
pub use condition::Condition;
pub use file::{Analysis, HistoryError, Meta, VERSION, is_history};
pub use ground::{Asked, BuildError};
pub use history::History;
pub use marks::StreamMark;
pub use origin::origin;
pub use query::Since;
pub use report::{Numbers, Report, Times};
pub use user::{Definition, DefinitionError};
pub use value::{ThreadState, Value};
