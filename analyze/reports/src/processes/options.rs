//! Options of the report.

use tracebraid_follow::{By, Groupings, Views};

/// Groupings of life times.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All],
    usual: &[By::All],
};

/// Options of the report.
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
