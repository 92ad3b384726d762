//! What can be asked of the report.

use tracebraid_follow::{CallNames, Limits, Views};

/// What is asked for of reading and writing.
#[derive(Clone, Debug, Default)]
pub struct IoOptions {
    /// Only calls that last that long, in nanoseconds.
    pub limits: Limits,
    /// System calls.
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
