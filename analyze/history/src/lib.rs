//! The state history: the value of every attribute of a traced machine at any time.
//!
//! In: a trace set with kernel events. Out: a file ([`build`]) in which the value of each
//! [`Attribute`] at any time, its changes over a range, and the values of all attributes at a time
//! are found without reading the trace again ([`History`]). Promise: the file is the same, byte for
//! byte, for every number of threads and every chunk size; memory does not grow with the trace.
//!
//! **An event sets attributes regardless of their old values.** The state of a thread and its
//! system call are two attributes, so that a switch need not know of calls, nor one CPU of another.
//! Steps that depend on the old value (does a wake-up change anything? what is the sum?) can be put
//! off. So chunks of each CPU are folded side by side into changes by slice of time (`kernel`,
//! `piece`). Complete slices go on in jobs that any thread does (`pipeline`; `Analysis::follow_up`
//! tells the engine what follows from what): each slice is encoded (`encode`); sixteen of them are
//! settled together, by sixteen shards of attributes beside each other (`shard`: the first change
//! of each attribute is left out if it changes nothing, sums get their beginning); each block is
//! put together and packed (`assembly`). One thread numbers texts and assigns the offsets of blocks
//! in the file; jobs write the blocks there (`batch`). Which blocks get a snapshot depends on the
//! sizes of blocks at least sixteen before them (`snapshots`), but neither on groups nor on where a
//! history was continued. Boundaries of slices come from the packet table (`slices`), so the file
//! does not show how the work was cut. Descriptors are known in the order of time only (`files`),
//! and so are disks (`disks`).
//!
//! **The file** (`file`, `block`, `run`): for each slice a directory of attributes, and their
//! changes as numbers of variable length. Snapshots of all values, which take at most an eighth of
//! what was written since the last one, bound how far back a query reads. Coarse levels (`levels`)
//! have the same form: values at the multiples of a grid. A history tree, as in Trace Compass,
//! keeps intervals, which must be known to their ends before they can be written; changes need only
//! their beginning, take half the room, and are written in order. The description of the traces is
//! at the end and, as far as it is known in advance, at the beginning (`origin`), for files that
//! were cut. The state of a CPU follows from other attributes and is not kept (`derived`).
//!
//! **A trace that grows** (`append`, `marks`, `resume`): the history holds the state that a chunk
//! needs from the chunks before it. So it is cut where a slice begins before everything new, seeded
//! from itself, and the fold begins there. Blocks become the same, byte for byte, as in a build of
//! the whole trace, because the earlier part of the packet table stays the same. Knowledge that
//! values do not hold (stacks of users' analyses, open calls) is kept at the beginnings of some
//! slices (`checkpoint`), and the cut is at one of these.
//!
//! Analyses that users define are in `user`.
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

/// What fuzz targets call.
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
pub use file::{Analysis, HistoryError, Meta, VERSION};
pub use ground::{Asked, BuildError};
pub use history::History;
pub use marks::StreamMark;
pub use origin::origin;
pub use query::Since;
pub use report::{Numbers, Report, Times};
pub use user::{Definition, DefinitionError};
pub use value::{ThreadState, Value};
