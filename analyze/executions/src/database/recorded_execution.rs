//! An execution as the database contains it.

use crate::contexts::ContextId;

/// A step of a critical path: a stretch of an execution's time in one thread and context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The thread on the path, by index among those of the database.
    pub thread: Option<u32>,
    /// The calling context.
    pub context: ContextId,
    /// Nanoseconds.
    pub duration: u64,
}

/// An execution: its thread and time in the trace, and the steps of its critical path.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Begin, in nanoseconds from the origin.
    pub begin: i64,
    /// Index of its source among those of the database.
    pub source: usize,
    /// Index of the thread in which the execution ends.
    pub thread: Option<u32>,
    /// Nanoseconds; the sum of the durations of `steps`, if there are any.
    pub duration: u64,
    /// In the order of time; empty if the thread is unknown.
    pub steps: Vec<PathStep>,
}

impl Recorded {
    /// End, in nanoseconds from the origin.
    pub fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }
}
