//! Options of the report.

use tracebraid_follow::{CallNames, Views};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct WaitOptions {
    /// The views.
    pub views: Views,
    /// The selected system calls.
    pub calls: CallNames,
}

impl From<Views> for WaitOptions {
    fn from(views: Views) -> WaitOptions {
        WaitOptions {
            views,
            ..WaitOptions::default()
        }
    }
}
