//! What threads did that can be counted, by the time when they did it: page faults, bytes, system calls, what counters of the
//! processor and programs tell.
//!
//! Kept by CPU: who had it then, the execution graph knows. What programs tell is kept by thread where they tell that. Of an
//! execution counts what was done by a thread on its critical path while the path was its own.

mod analysis;
mod plan;
mod quantities;
mod series_by_owner;
mod time_series;

pub use analysis::{CountAnalysis, CountPartial};
pub use quantities::{ExtraMetric, Quantities};
pub use series_by_owner::CountSeries;
pub(crate) use series_by_owner::SeriesCursors;
