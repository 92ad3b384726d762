//! The end of playing a slice: drops history that is no longer needed, so that installing the slice
//! takes less time.

use std::hash::Hash;

use tracebraid_follow::ThreadKey;

use crate::slice_history::{From, SlicedTable};
use crate::sliced::Sliced;
use crate::values::{Base, Value, ValueId, Values};

impl<A: Copy + Eq + Hash> Sliced<A> {
    /// Ends the slice. Afterwards, descriptors of threads in the slice are looked up only by value,
    /// or with [`Sliced::now`] in the tables `asked`, which must be sorted.
    ///
    /// Drops the history of other tables before `since` (nanoseconds from the origin), except where
    /// [`Sliced::install`] needs it. The slice must be installed with the same `since`. All
    /// descriptors that the slice knows must turn out to be open.
    pub fn end(&mut self, since: i64, asked: &[ThreadKey]) {
        self.members = Default::default();
        let Sliced { tables, values, .. } = self;
        for (table, of_table) in tables.entries_mut() {
            if asked.binary_search(&table).is_ok() {
                continue;
            }
            if of_table.is_closed_since(since, values) {
                *of_table = SlicedTable {
                    is_gone: true,
                    ..SlicedTable::default()
                };
                continue;
            }
            for history in of_table.fds.values_mut() {
                leave_out(history, since, values);
            }
        }
    }
}

impl SlicedTable {
    /// True if no descriptor of the table is open at or after `since`.
    fn is_closed_since<A: Copy + Eq + Hash>(&self, since: i64, values: &Values<A>) -> bool {
        let base = self.bases.last();
        let is_empty = base
            .is_some_and(|base| base.time <= since && values.base_at(base.value) == Base::Empty);
        let is_closed = |history: &Vec<From<ValueId>>| {
            let last = history.last();
            last.is_none_or(|last| last.time <= since && last.value == ValueId::default())
        };
        is_empty && self.fds.values().all(is_closed)
    }
}

/// Drops the history before the last change at or before `since`. Keeps the value just before that
/// change, which shows that it was a change.
fn leave_out<A: Copy + Eq + Hash>(
    history: &mut Vec<From<ValueId>>,
    since: i64,
    values: &Values<A>,
) {
    let is_open = |value: ValueId| match values.get(value) {
        None => Some(false),
        Some(Value::Is(..)) => Some(true),
        Some(_) => None,
    };
    let is_change = |at: usize| match history.get(at.wrapping_sub(1)..=at) {
        Some([before, now]) => {
            let both = is_open(before.value).zip(is_open(now.value));
            both.is_some_and(|(before, now)| before != now)
        }
        _ => false,
    };
    let last = history
        .partition_point(|from| from.time <= since)
        .saturating_sub(1);
    let change = (2..=last).rev().find(|at| is_change(*at));
    let (Some(change), Some(first)) = (change, history.first()) else {
        return;
    };
    // Earlier changes of the whole table do not matter.
    let order = first.order;
    history.drain(..change - 1);
    history
        .iter_mut()
        .take(1)
        .for_each(|from| from.order = order);
}
