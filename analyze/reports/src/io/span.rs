//! An interval of time.

/// An interval from a time up to another or to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first nanosecond.
    pub(super) from: i64,
    /// The first nanosecond after the span.
    pub(super) until: Option<i64>,
}

impl Span {
    pub(super) fn contains(self, time: i64) -> bool {
        time >= self.from && self.until.is_none_or(|until| time < until)
    }

    /// Whether an interval with these first and last times overlaps the span.
    pub(super) fn meets(self, (first, last): (i64, i64)) -> bool {
        last >= self.from && self.until.is_none_or(|until| first < until)
    }
}
