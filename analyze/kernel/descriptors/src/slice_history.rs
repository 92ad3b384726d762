//! Values of a slice over time.

use std::collections::BTreeMap;

use crate::values::ValueId;

/// A value from a time on, with the number of the change that set it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From<V> {
    pub(crate) order: u32,
    pub(crate) time: i64,
    pub(crate) value: V,
}

/// A table of descriptors over the time of a slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlicedTable {
    /// Bases of the descriptors that are not in `fds`. Before the first base, the table is as at
    /// the beginning of the slice.
    pub(crate) bases: Vec<From<u32>>,
    pub(crate) fds: BTreeMap<i32, Vec<From<ValueId>>>,
    /// No descriptor is open at the end of the slice, and the history is not needed: the other
    /// fields are empty.
    pub(crate) is_gone: bool,
}

/// A point between changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(crate) u32);

impl Moment {
    /// After all changes.
    pub(crate) const LAST: Moment = Moment(u32::MAX);
}

/// The value at a time, and the time of the next change.
pub(crate) fn at<V: Copy>(history: &[From<V>], time: i64) -> Option<(V, Option<i64>)> {
    let last = history.last()?;
    // Fast path: most lookups ask for the latest value.
    if last.time <= time {
        return Some((last.value, None));
    }
    let after = history.partition_point(|from| from.time <= time);
    let found = history.get(after.checked_sub(1)?)?;
    Some((found.value, begin(history.get(after..).unwrap_or_default())))
}

/// The value at a moment.
pub(crate) fn before<V: Copy>(history: &[From<V>], moment: Moment) -> Option<V> {
    let end = match moment {
        Moment::LAST => history.len(),
        Moment(moment) => history.partition_point(|from| from.order < moment),
    };
    Some(history.get(end.checked_sub(1)?)?.value)
}

/// Begin time of the first value.
pub(crate) fn begin<V>(history: &[From<V>]) -> Option<i64> {
    history.first().map(|from| from.time)
}

impl SlicedTable {
    /// The bases after `since`, and the last one at or before it.
    pub(crate) fn bases_since(&self, since: i64) -> &[From<u32>] {
        let first = self.bases.partition_point(|from| from.time <= since);
        self.bases
            .get(first.saturating_sub(1)..)
            .unwrap_or_default()
    }
}
