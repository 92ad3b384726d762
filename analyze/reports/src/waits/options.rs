//! Options of the report.

use tracebraid_follow::{By, CallNames, Groupings, Views};
use tracebraid_language::glob::Glob;

/// Groupings of the times of calls by reason.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Reason, By::Call, By::Process, By::Thread],
    usual: &[By::Reason],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct WaitOptions {
    /// The views.
    pub views: Views,
    /// The selected system calls.
    pub calls: CallNames,
    /// Patterns of names of wait reasons; none: all.
    pub reasons: Vec<Glob>,
}

impl From<Views> for WaitOptions {
    fn from(views: Views) -> WaitOptions {
        WaitOptions {
            views,
            ..WaitOptions::default()
        }
    }
}
