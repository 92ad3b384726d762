//! Answers in the formats of other tools: Perfetto, folded stacks for flame graphs, Arrow.
//!
//! In: the result of an analysis. Out: bytes in that format. Promise: nothing is analyzed here;
//! numbers are those of the answer.
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod critical_path;
mod folded;
pub mod perfetto;
mod protobuf;

pub use folded::folded;
