//! Options of the report.

use tracebraid_follow::{CallNames, Views};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct SyscallOptions {
    /// The views.
    pub views: Views,
    /// The selected system calls.
    pub calls: CallNames,
    /// True for the overview, which shows only sums and the longest calls: distributions are not
    /// computed.
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
