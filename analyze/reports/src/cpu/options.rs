//! Options of the report.

use tracebraid_follow::Views;

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// The views.
    pub views: Views,
    /// Priorities on the kernel's scale; empty: all.
    pub priorities: Vec<i32>,
}

impl From<Views> for CpuOptions {
    fn from(views: Views) -> CpuOptions {
        CpuOptions {
            views,
            ..CpuOptions::default()
        }
    }
}
