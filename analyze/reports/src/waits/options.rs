//! What can be asked of the report.

use tracebraid_follow::{CallNames, Views};

/// What is asked for of waits.
#[derive(Clone, Debug, Default)]
pub struct WaitOptions {
    /// The views.
    pub views: Views,
    /// System calls.
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
