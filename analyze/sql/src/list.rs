//! Rows by index in a list of known length.

use rusqlite::types::Value;

use crate::asked::Asked;
use crate::table::Rows;

/// Rows of a list: the key is the index.
pub(crate) struct List<F> {
    next: usize,
    /// One past the last index.
    end: usize,
    value: F,
}

impl<F: FnMut(usize, usize) -> Value> List<F> {
    /// The requested rows of a list of that length; `value` returns a value by index and column.
    pub(crate) fn new(length: usize, asked: &Asked, value: F) -> List<F> {
        let next = usize::try_from(asked.from.max(0)).unwrap_or(usize::MAX);
        let last = usize::try_from(asked.to).ok();
        let end = last.map_or(0, |last| last.saturating_add(1).min(length));
        List { next, end, value }
    }
}

impl<F: FnMut(usize, usize) -> Value> Rows for List<F> {
    fn next(&mut self) -> Result<bool, String> {
        self.next = self.next.saturating_add(1);
        Ok(self.next <= self.end)
    }

    fn value(&mut self, column: usize) -> Result<Value, String> {
        // `next` is already one past the current row.
        Ok((self.value)(self.next.saturating_sub(1), column))
    }
}
