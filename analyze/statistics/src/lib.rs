//! Statistics of many values in little memory, as partial states need them: they hold integers,
//! and merging is exact, associative and commutative.
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
pub use top::Top;
