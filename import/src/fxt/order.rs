//! Sorts records by time.
//!
//! Threads reserve room for their records without a lock, and take the time independently, so that
//! neighbours in the file may be in the wrong order (section 3.2 of INRIA's report RR-5513).

use std::collections::BTreeMap;

use super::records::Record;

/// Number of records among which the order is restored: many more than threads can record at once.
const WINDOW: usize = 1 << 14;

/// A buffer that sorts records by time; records of equal time stay in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Window {
    waiting: BTreeMap<(u64, u64), Record>,
}

impl Window {
    /// Adds a record, and returns the oldest if the buffer is full.
    pub(super) fn add(&mut self, record: Record) -> Option<Record> {
        self.waiting.insert((record.time, record.offset), record);
        (self.waiting.len() > WINDOW).then(|| self.oldest())?
    }

    /// The oldest record.
    pub(super) fn oldest(&mut self) -> Option<Record> {
        self.waiting.pop_first().map(|(_, record)| record)
    }
}
