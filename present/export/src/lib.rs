//! Results in the formats of other tools: Perfetto, Pajé, OTF2, FxT, folded stacks, Arrow.
//!
//! In: the result of an analysis. Out: bytes in the format of the tool. Promise: this crate
//! analyzes nothing; the numbers are those of the result.
//!
//! The crate exists because these tools show some results better than a terminal: Perfetto draws
//! critical paths on a time line, flame graphs break down a sum, and pandas, Polars and DuckDB
//! compute with the values of a history. Other projects define the formats, so their details are
//! kept out of the analyses and the program, and are tested against decoders. Perfetto's messages
//! are encoded without a code generator (`protobuf`), since they need only three kinds of fields.
//! Arrow's dependencies compile slowly; programs without the feature `arrow` do not need them.
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod critical_path;
pub mod devices;
mod folded;
pub mod levels;
pub mod perfetto;
mod protobuf;
mod scheduling;

pub use folded::folded;
