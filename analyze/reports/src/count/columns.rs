//! Columns of the chart over time, and the selected time range.

use std::ops::Range;

use tracebraid_ctf::clock::{ClockConversion, Timestamp};

use tracebraid_follow::{Extent, Window};

/// The time range, divided into columns of equal length. Selected times before the first column or
/// after the last one count in the nearest column.
#[derive(Debug)]
pub(super) struct Columns {
    window: Window,
    /// Boundaries in nanoseconds, ascending: the number of columns plus one.
    bounds: Vec<i64>,
}

/// Latest end of a column.
const LAST: i64 = i64::MAX - 1;

impl Columns {
    /// Divides the part of the window that lies in `covered`, the extent of the traces' packets.
    pub(super) fn new(covered: Option<Extent>, window: Window, columns: usize) -> Columns {
        let (from, to) = covered.map_or((0, 0), |covered| {
            (covered.first.0, covered.last.0.min(LAST))
        });
        let from = from.min(to);
        let from = window.from.map_or(from, |time| time.0.max(from));
        let to = window
            .to
            .map_or(to.saturating_add(1), |time| {
                time.0.min(to.saturating_add(1))
            })
            .max(from);
        let length = i128::from(to) - i128::from(from);
        let bound =
            |column: usize| (i128::from(from) + length * column as i128 / columns as i128) as i64;
        Columns {
            window,
            bounds: (0..=columns).map(bound).collect(),
        }
    }

    pub(super) fn bounds(&self) -> &[i64] {
        &self.bounds
    }

    /// True if the range contains the time. An event record without a time is in no limited range.
    pub(super) fn contain(&self, time: Option<i64>) -> bool {
        let is_limited = self.window.from.is_some() || self.window.to.is_some();
        time.map_or(!is_limited, |time| self.window.contains(time))
    }

    /// Index of the column that contains a time in the window.
    pub(super) fn at(&self, time: i64) -> usize {
        let column = self.bounds.partition_point(|&bound| bound <= time).max(1) - 1;
        column.min(self.bounds.len().saturating_sub(2))
    }

    /// The parts of time for streams with the given clock.
    pub(super) fn of(&self, clock: Option<ClockConversion>) -> Parts {
        let Some(clock) = clock else {
            let is_limited = self.window.from.is_some() || self.window.to.is_some();
            return Parts {
                edges: Vec::new(),
                window: if is_limited { 0..0 } else { 0..u64::MAX },
            };
        };
        let cycles = |time: i64| clock.cycles_at(Timestamp(time));
        let from = self.window.from.map_or(0, |from| cycles(from.0));
        let to = self.window.to.map_or(u64::MAX, |to| cycles(to.0));
        let inner = self
            .bounds
            .get(1..self.bounds.len() - 1)
            .unwrap_or_default();
        Parts {
            edges: inner.iter().map(|&bound| cycles(bound)).collect(),
            window: from..to,
        }
    }
}

/// Parts of time in cycles of a clock: the columns, the time before the range, and that after it.
#[derive(Debug)]
pub(super) struct Parts {
    /// Begins of all columns but the first, ascending.
    edges: Vec<u64>,
    /// The selected range. An end of `u64::MAX` means no limit; in streams without a clock a
    /// limited range selects nothing.
    window: Range<u64>,
}

/// A part of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Index of the column; `None` outside the selected range.
    pub(super) column: Option<usize>,
    /// Clock values of the part; an end of `u64::MAX` means no limit.
    pub(super) within: Range<u64>,
}

impl Parts {
    /// The selected clock values.
    pub(super) fn window(&self) -> &Range<u64> {
        &self.window
    }

    /// The part that contains a clock value.
    pub(super) fn at(&self, clock: u64) -> Part {
        let Range { start, end } = self.window;
        if clock < start {
            return Part {
                column: None,
                within: 0..start,
            };
        }
        if clock >= end && end < u64::MAX {
            return Part {
                column: None,
                within: end..u64::MAX,
            };
        }
        // Times that the clock never reaches become `u64::MAX`, which the clock itself may reach.
        let column = self
            .edges
            .partition_point(|&edge| edge <= clock && edge < u64::MAX);
        let before = column
            .checked_sub(1)
            .and_then(|before| self.edges.get(before));
        let next = self.edges.get(column).copied().unwrap_or(u64::MAX);
        Part {
            column: Some(column),
            within: before.map_or(start, |&edge| edge.max(start))..next.min(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_value_is_in_its_part() {
        for window in [0..u64::MAX, 3..u64::MAX, 0..9, 4..7, 6..6, 0..0] {
            for edges in [vec![], vec![5], vec![2, 2, 6, 8], vec![4, u64::MAX]] {
                let parts = Parts {
                    edges: edges.clone(),
                    window: window.clone(),
                };
                for clock in (0..12).chain([u64::MAX - 1, u64::MAX]) {
                    let part = parts.at(clock);
                    let contains = |range: &Range<u64>| {
                        range.start <= clock && (clock < range.end || range.end == u64::MAX)
                    };
                    assert!(
                        contains(&part.within),
                        "{window:?} {edges:?} {clock} {part:?}"
                    );
                    assert_eq!(part.column.is_some(), contains(&window));
                    let before = edges
                        .iter()
                        .filter(|&&edge| edge <= clock && edge < u64::MAX);
                    assert!(part.column.is_none_or(|column| column == before.count()));
                }
            }
        }
    }
}
