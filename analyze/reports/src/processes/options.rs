//! What can be asked of the report.

use tracebraid_follow::{By, Groupings, Views};

/// Groupings of life times.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All],
    usual: &[By::All],
};

/// What is asked for of processes.
#[derive(Clone, Debug, Default)]
pub struct ProcessOptions {
    /// The views.
    pub views: Views,
}

impl From<Views> for ProcessOptions {
    fn from(views: Views) -> ProcessOptions {
        ProcessOptions { views }
    }
}
