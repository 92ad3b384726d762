//! What can be asked of the report.

use tracebraid_follow::{By, CallNames, Groupings, Views};

/// Groupings of durations of calls.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Call, By::Process, By::Thread],
    usual: &[By::Call],
};

/// What is asked for of system calls.
#[derive(Clone, Debug, Default)]
pub struct SyscallOptions {
    /// The views.
    pub views: Views,
    /// System calls.
    pub calls: CallNames,
    /// True if one page is made of it, which shows sums of all and what took longest: how values
    /// are distributed and whose they are need not be known.
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
