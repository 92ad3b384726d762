//! What can be asked of the report.

use tracebraid_follow::{By, Groupings, Views};
use tracebraid_language::glob::Glob;

/// Groupings of times from the queue to the driver.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Interface],
    usual: &[By::Interface],
};

/// What is asked for of the network.
#[derive(Clone, Debug, Default)]
pub struct NetOptions {
    /// The views.
    pub views: Views,
    /// Patterns of names of interfaces; none: all.
    pub interfaces: Vec<Glob>,
    /// True if one page is made of it, which shows sums of all and what took longest: how values
    /// are distributed and whose they are need not be known.
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
