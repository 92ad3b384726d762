//! Statistics of many values in little memory.
//!
//! In: values. Out: sums, minimum and maximum ([`Summary`]), sketches of distributions
//! ([`Sketch`], [`Distribution`]), the greatest N ([`Top`]), and histograms: between powers of two
//! from sketches ([`Powers`]), or of equal steps between bounds that a first pass has found
//! ([`Bins`]; `--buckets linear` reads the trace twice). Promise: all hold integers, and merging is
//! exact, associative and commutative, as partial states need it.
//!
//! The crate exists because general statistics libraries do not obey the law of folding: a report
//! must be the same, byte for byte, for every number of threads and every chunk size.
//! Floating-point sums depend on the order of addition, and common sketches (t-digest, reservoir
//! samples) on the order of values or on chance. Here, sums are integers and sketches count values
//! in fixed buckets, so the order of merging does not change the result. Memory depends on the
//! number of distinct groups, not on the number of values.
#![forbid(unsafe_code)]

mod bins;
mod distribution;
mod powers;
mod sketch;
mod summary;
mod top;

pub use bins::{BINS, Bin, Bins, Ranges};
pub use distribution::Distribution;
pub use powers::{PowerBin, Powers};
pub use sketch::Sketch;
pub use summary::Summary;
pub use top::{Top, keep_first_by_key};
