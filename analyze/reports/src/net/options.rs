//! Options of the report.

use tracebraid_follow::{By, Groupings, Views};
use tracebraid_language::glob::Glob;

/// Groupings of times from the queue to the driver.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Interface],
    usual: &[By::Interface],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct NetOptions {
    /// The views.
    pub views: Views,
    /// Patterns of interface names; empty: all.
    pub interfaces: Vec<Glob>,
    /// True for the overview, which shows only sums and the slowest packets: distributions and
    /// senders are not computed.
    pub is_summary: bool,
}

impl From<Views> for NetOptions {
    fn from(views: Views) -> NetOptions {
        NetOptions {
            views,
            ..NetOptions::default()
        }
    }
}
