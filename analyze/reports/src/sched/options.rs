//! Options of the report.

use tracebraid_follow::Views;

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct SchedOptions {
    /// The views.
    pub views: Views,
    /// Priorities on the kernel's scale; empty: all.
    pub priorities: Vec<i32>,
    /// True for the overview, which shows only sums and the longest latencies: distributions and
    /// wakers are not computed.
    pub is_summary: bool,
}

impl From<Views> for SchedOptions {
    fn from(views: Views) -> SchedOptions {
        SchedOptions {
            views,
            ..SchedOptions::default()
        }
    }
}
