//! Options of the report.

use tracebraid_follow::{By, Groupings, Limits, Views};

/// Groupings of sizes.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::Event, By::Process, By::Thread],
    usual: &[By::Event],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct MemoryOptions {
    /// The views.
    pub views: Views,
    /// Restricts moves by size in bytes.
    pub sizes: Limits,
}

impl From<Views> for MemoryOptions {
    fn from(views: Views) -> MemoryOptions {
        MemoryOptions {
            views,
            ..MemoryOptions::default()
        }
    }
}
