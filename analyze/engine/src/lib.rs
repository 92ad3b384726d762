//! The parallel engine: plans the chunks of a trace set, folds them on any number of threads, and
//! merges the partial states in one order.
//!
//! In: a [`TraceSet`](tracebraid_ctf::trace::TraceSet) and an [`Analysis`]. Out: the analysis's
//! report and the damage found while reading ([`Outcome`]); on request the CPU time of each piece
//! of work ([`Timings`]). Promise: the report is the same, byte for byte, for every number of
//! threads and every chunk size, if the analysis keeps the contract of [`Analysis`]. This crate
//! knows no event names.
//!
//! **The plan** (`chunk`) cuts each group of streams into chunks: runs of packets of one stream
//! whose sizes reach a threshold (the hybrid partitioning of Reumont-Locke et al., 2019, section
//! 4.1.3). For analyses that need one order over several streams, a chunk is an interval of time,
//! and its streams are merged on the fly. Such an interval is eight packets of each stream long,
//! since each of its ends lies within a packet of every stream, and those packets are read twice.
//!
//! The plan depends on packet times, which come from the index of a stream file if there is one.
//! Most index entries are compared only when their packets are read, so that opening a trace does
//! not read every packet head. If an entry contradicts its packet, the fold ends
//! ([`FoldError::WrongIndexes`]), since its report would depend on the plan. The first packet after
//! a range of time is compared too: if its time is wrong, packets of the range may have been
//! skipped (`edges`).
//!
//! **The merge** (`merge`, `schedule`) takes chunks in the order of their earliest time. The plan
//! holds a watermark for each chunk: once the chunk is merged, so is every event record before the
//! watermark. The worker that completes the item the merge waits for does the merge itself. A
//! thread only for merging would be one more to schedule, and partial states would wait for it to
//! wake up. Workers run ahead of the merge by a bounded number of chunks and slices, so that a slow
//! chunk does not let partial states pile up.
//!
//! **Unknowns.** When a chunk begins, it cannot know which thread runs on its CPU, nor which system
//! call an exit without an entry belongs to. Such facts stay explicit unknowns in the partial state
//! until the merge supplies them.
//!
//! **Slices of time** ([`Analysis::slices`]). Some results depend on the order of time over all
//! CPUs: the file that a descriptor refers to, the wake-up that ended a wait. A single state
//! machine that plays all events one after the other would bound the speed-up, however many threads
//! fold chunks. So the merged state releases the events before the watermark as a slice, which any
//! worker plays without knowledge of earlier slices. The outcome ([`Composition`]) is then joined
//! to the state, slice after slice:
//!
//! - A value that an item sets regardless of the old value is known from that item on.
//! - An item whose effect depends on an unknown value is kept, and replayed when the slice is
//!   composed.
//! - The cost of composing depends on the number of threads, descriptors, requests and the like
//!   that a slice touches, not on its event records.
//!
//! The last point is the law of scale: the CPU time that only one thread can spend at a time must
//! not grow with the number of event records. `--timings` measures it, and `bench/scaling.py`
//! predicts the speed-up from it. An analysis without slices does the same work in
//! [`Analysis::settle`], one chunk after the other.
//!
//! **Resident sums** ([`Analysis::exchange`]). Tables of sums stay with a worker for all chunks and
//! slices that it works on, and are merged once, at the end. Otherwise the merge would add up the
//! same table for each chunk.
#![forbid(unsafe_code)]

mod analysis;
mod chunk;
mod control;
mod edges;
mod engine;
mod feed;
mod merge;
pub mod parallel;
mod schedule;
mod timings;

pub use analysis::{Analysis, Composition, Record, Slice, StreamPlace};
pub use chunk::{Chunk, Plan, StreamRef, StreamSlice, are_in_order, first_reaching, slice_times};
pub use control::Control;
pub use engine::{FoldError, Options, Outcome, fold};
pub use feed::{Feed, Shared, StreamPart};
pub use timings::{
    ChunkTimes, FoldTimes, SerialWork, SliceTimes, Stopwatch, Timings, process_cpu_ns,
};
