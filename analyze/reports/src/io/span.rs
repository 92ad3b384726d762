//! A part of time.

/// From a time on, up to another one or to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first nanosecond.
    pub(super) from: i64,
    /// The first one that is not in it.
    pub(super) until: Option<i64>,
}

impl Span {
    pub(super) fn contains(self, time: i64) -> bool {
        time >= self.from && self.until.is_none_or(|until| time < until)
    }

    /// Whether something that lasts from the first to the last time has a part in it.
    pub(super) fn meets(self, (first, last): (i64, i64)) -> bool {
        last >= self.from && self.until.is_none_or(|until| first < until)
    }
}
