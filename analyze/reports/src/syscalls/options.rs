//! Options of the report.

use tracebraid_follow::{By, CallNames, Groupings, Views};

/// Groupings of durations of calls.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Call, By::Process, By::Thread],
    usual: &[By::Call],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct SyscallOptions {
    /// The views.
    pub views: Views,
    /// The selected system calls.
    pub calls: CallNames,
    /// True for the overview: quantiles are not computed, and the longest calls do not include
    /// those that wait for work.
    pub is_summary: bool,
}

impl From<Views> for SyscallOptions {
    fn from(views: Views) -> SyscallOptions {
        SyscallOptions {
            views,
            ..SyscallOptions::default()
        }
    }
}
