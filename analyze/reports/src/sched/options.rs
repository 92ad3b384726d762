//! Options of the report.

use tracebraid_follow::{By, Groupings, Views};

/// Groupings of latencies.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Priority, By::Process, By::Thread],
    usual: &[By::All, By::Priority, By::Thread],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct SchedOptions {
    /// The views.
    pub views: Views,
    /// Priorities on the kernel's scale; empty: all.
    pub priorities: Vec<i32>,
    /// True for the overview, which shows neither wakers nor preemptions: these are not computed.
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
