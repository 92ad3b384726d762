//! What can be asked of the report.

use tracebraid_follow::{By, Groupings, Views};

/// Groupings of stretches.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Cpu, By::Process, By::Thread],
    usual: &[By::All, By::Thread],
};

/// What is asked for of the use of CPUs.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// The views.
    pub views: Views,
    /// Priorities as the kernel counts them; none: all.
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
