//! Quantities over time: page faults, bytes, system calls, hardware counters, and values that
//! programs record.
//!
//! Quantities are kept by CPU, since the execution graph contains the thread that ran there; values
//! of programs are kept by thread where the trace contains it. An execution is charged with the
//! quantities of the threads on its critical path, for the time in which they are on it.

mod analysis;
mod plan;
mod quantities;
mod series_by_owner;
mod time_series;

pub use analysis::{CountAnalysis, CountPartial};
pub use quantities::{ExtraMetric, Quantities};
pub use series_by_owner::CountSeries;
pub(crate) use series_by_owner::SeriesCursors;
