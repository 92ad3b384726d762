//! Options of the report.

use tracebraid_follow::{CallNames, Limits, Views};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct IoOptions {
    /// Restricts calls by duration in nanoseconds.
    pub limits: Limits,
    /// The selected system calls.
    pub calls: CallNames,
}

impl From<Views> for IoOptions {
    fn from(views: Views) -> IoOptions {
        IoOptions {
            limits: views.limits,
            ..IoOptions::default()
        }
    }
}
