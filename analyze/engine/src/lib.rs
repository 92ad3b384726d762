//! The parallel engine: it plans chunks of a trace, folds each into a partial state on any number
//! of threads, and merges the partial states in one order.
//!
//! In: a [`TraceSet`](tracebraid_ctf::trace::TraceSet) and an [`Analysis`]. Out: the analysis's
//! report, the same for every number of threads and every chunk size. This crate knows no event
//! names.
#![forbid(unsafe_code)]

mod analysis;
mod chunk;
mod control;
mod engine;
mod feed;
mod merge;
mod schedule;
mod timings;

pub use analysis::{Analysis, Composition, Record, Slice, StreamPlace};
pub use chunk::{Chunk, Plan, StreamRef, StreamSlice, first_reaching};
pub use control::Control;
pub use engine::{FoldError, Options, Outcome, fold};
pub use feed::{Feed, Lane, Shared};
pub use timings::{ChunkTimes, FoldTimes, SerialWork, SliceTimes, Stopwatch, Timings, process_cpu_ns};
