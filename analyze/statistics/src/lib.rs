//! Statistics of many values in little memory.
//!
//! In: values one by one. Out: sums, minimum and maximum ([`Summary`]), sketches of distributions
//! ([`Sketch`], [`Distribution`]), the greatest N ([`Top`]), and histograms between bounds that a
//! first pass has found ([`Bins`]; `--view freq` reads the trace twice). Promise: all hold
//! integers, and merging is exact, associative and commutative, as partial states need it.
#![forbid(unsafe_code)]

mod bins;
mod distribution;
mod sketch;
mod summary;
mod top;

pub use bins::{BINS, Bin, Bins, Ranges};
pub use distribution::Distribution;
pub use sketch::Sketch;
pub use summary::Summary;
pub use top::{Top, keep_first_by_key};
