//! What can be asked of the report.

use tracebraid_follow::{By, Groupings, Views};
use tracebraid_language::glob::Glob;

/// Groupings of durations of handlers.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::Cpu, By::Name],
    usual: &[By::Name],
};

/// What is asked for of interrupts.
#[derive(Clone, Debug, Default)]
pub struct IrqOptions {
    /// The views.
    pub views: Views,
    /// Patterns of names or numbers of interrupts; none: all, unless there are some of softirqs.
    pub interrupts: Vec<Glob>,
    /// Patterns of names, in capitals, or numbers of softirqs; none: all, unless there are some of
    /// interrupts.
    pub softirqs: Vec<Glob>,
    /// True if one page is made of it, which shows sums of all and what took longest: how values
    /// are distributed and whose they are need not be known.
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
