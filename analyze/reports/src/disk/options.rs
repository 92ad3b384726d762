//! What can be asked of the report.

use tracebraid_follow::{By, Groupings, Limits, Views};
use tracebraid_language::glob::Glob;

/// Groupings of latencies of requests.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Disk, By::Process, By::Thread],
    usual: &[By::Disk],
};

/// What is asked for of requests to disks.
#[derive(Clone, Debug, Default)]
pub struct DiskOptions {
    /// The views.
    pub views: Views,
    /// Only what is that large, in bytes; what has no size is as large as may be.
    pub sizes: Limits,
    /// Patterns of names of disks; none: all.
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
