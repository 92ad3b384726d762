//! What can be asked of the report.

use tracebraid_follow::{By, Groupings, Limits, Views};

/// Groupings of sizes.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::Event, By::Process, By::Thread],
    usual: &[By::Event],
};

/// What is asked for of memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryOptions {
    /// The views.
    pub views: Views,
    /// Only pages of that many bytes together.
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
