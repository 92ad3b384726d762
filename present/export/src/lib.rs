//! Answers in the formats of other tools: Perfetto, folded stacks for flame graphs, Arrow.
//!
//! In: the result of an analysis. Out: bytes in that format. Promise: nothing is analyzed here; the
//! numbers are those of the answer.
//!
//! It exists because these tools show some answers better than a terminal: Perfetto draws critical
//! paths on a time line, flame graphs show where a sum comes from, and pandas, Polars and DuckDB
//! compute with the values of a history. Other people define the formats, so what depends on
//! their details is kept out of the analyses and of the program, and can be tested against a decoder.
//! Perfetto's messages are written by hand (`protobuf`): they need three kinds of fields, fewer
//! lines than a code generator takes. Arrow brings dependencies that compile for long; a program that
//! leaves out the feature `arrow` does without them.
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod critical_path;
mod folded;
pub mod perfetto;
mod protobuf;

pub use folded::folded;
