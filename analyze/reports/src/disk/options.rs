//! Options of the report.

use tracebraid_follow::{By, Groupings, Limits, Views};
use tracebraid_language::glob::Glob;

/// Groupings of latencies of requests.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Disk, By::Process, By::Thread],
    usual: &[By::Disk],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct DiskOptions {
    /// The views.
    pub views: Views,
    /// Restricts requests by size in bytes; requests without a size always match.
    pub sizes: Limits,
    /// Patterns of disk names; empty: all.
    pub disks: Vec<Glob>,
}

impl From<Views> for DiskOptions {
    fn from(views: Views) -> DiskOptions {
        DiskOptions {
            views,
            ..DiskOptions::default()
        }
    }
}
