//! Answers in the formats of other tools.
//!
//! In: what an analysis found. Out: bytes that Perfetto reads, text for flame graphs, or Arrow's tables. Promise: nothing is analyzed
//! here; numbers are those of the answer.
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod critical_path;
mod folded;
pub mod perfetto;
mod protobuf;

pub use folded::folded;
