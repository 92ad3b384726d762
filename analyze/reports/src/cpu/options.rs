//! Options of the report.

use tracebraid_follow::{By, Groupings, Views};

/// Groupings of stretches.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Cpu, By::Process, By::Thread],
    usual: &[By::All, By::Thread],
};

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
