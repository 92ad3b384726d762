//! What can be asked of the report.

use tracebraid_follow::{By, Groupings, Views};

/// Groupings of latencies.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Priority, By::Process, By::Thread],
    usual: &[By::All, By::Priority, By::Thread],
};

/// What is asked for of the scheduler.
#[derive(Clone, Debug, Default)]
pub struct SchedOptions {
    /// The views.
    pub views: Views,
    /// Priorities as the kernel counts them; none: all.
    pub priorities: Vec<i32>,
    /// True if one page is made of it, which shows sums of all and what took longest: how values
    /// are distributed and whose they are need not be known.
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
