//! Options of the report.

use tracebraid_follow::{By, Groupings, Views};
use tracebraid_language::glob::Glob;

/// Groupings of durations of handlers.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::Cpu, By::Name],
    usual: &[By::Name],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct IrqOptions {
    /// The views.
    pub views: Views,
    /// Patterns of names or numbers of interrupts; empty: all, unless `softirqs` has patterns.
    pub interrupts: Vec<Glob>,
    /// Patterns of names, in capitals, or numbers of softirqs; empty: all, unless `interrupts` has
    /// patterns.
    pub softirqs: Vec<Glob>,
    /// True for the overview, which shows only sums and the longest runs: distributions and raise
    /// times are not computed.
    pub is_summary: bool,
}

impl From<Views> for IrqOptions {
    fn from(views: Views) -> IrqOptions {
        IrqOptions {
            views,
            ..IrqOptions::default()
        }
    }
}
