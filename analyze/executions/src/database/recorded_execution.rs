//! One execution as the database contains it.

use crate::contexts::ContextId;

/// A stretch of an execution's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The thread on the path, by index among those of the database.
    pub thread: Option<u32>,
    /// The calling context.
    pub context: ContextId,
    /// In nanoseconds.
    pub duration: u64,
}

/// One execution: its position in the trace, and the steps of its critical path.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// When it begins, in nanoseconds from the origin.
    pub begin: i64,
    /// Index of its source among those of the database.
    pub source: usize,
    /// The thread in which it ends.
    pub thread: Option<u32>,
    /// How long it is, in nanoseconds: what its steps add up to, if it has any.
    pub duration: u64,
    /// Its steps, in the order of time; none if its thread is unknown.
    pub steps: Vec<PathStep>,
}

impl Recorded {
    /// When it ends, in nanoseconds from the origin.
    pub fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }
}
