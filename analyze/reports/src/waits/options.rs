//! Options of the report.

use std::sync::Arc;

use tracebraid_follow::{By, CallNames, Groupings, Views};
use tracebraid_language::glob::Glob;
use tracebraid_threads::DeviceCalls;

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
    /// Calls that wait for a device.
    pub devices: Arc<DeviceCalls>,
}

impl From<Views> for WaitOptions {
    fn from(views: Views) -> WaitOptions {
        WaitOptions {
            views,
            ..WaitOptions::default()
        }
    }
}
