//! A time series: values of one quantity of one CPU or thread, in the order of time.
//!
//! A series consists of parts: the values of a slice of time are appended as one part, without
//! copying them (except short parts, see [`SMALL`]). Appending is serial, and copying took 1.7 % of
//! the CPU time of `executions build` on 45 million event records.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How values of a quantity are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The total of the values.
    Sum,
    /// The values are readings of a counter: the total of its increases.
    Growth,
    /// Each value by itself.
    Each,
}

/// Values by time. For [`Keep::Sum`] and [`Keep::Growth`], each value is the total up to its time,
/// inclusive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TimeSeries {
    /// Parts before `last`, none of which is empty.
    earlier: VecDeque<Part>,
    last: Part,
    /// Total of the values that were dropped.
    before: u64,
    /// Last reading of a counter.
    shown: Option<u64>,
}

/// Consecutive values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Part {
    times: Vec<i64>,
    /// For each time, the value minus `base`.
    values: Vec<u64>,
    base: u64,
}

/// Position of a value in a series: index of its part (`last` comes after `earlier`), and index in
/// the part. A reader keeps it, because the next value that it needs is usually near.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeriesCursor {
    part: usize,
    index: usize,
}

/// A part with fewer values is copied to the end of the part before it, unless that part has at
/// least [`LARGE`] values: many small parts would take longer to search.
const SMALL: usize = 64;
const LARGE: usize = 4096;

impl Part {
    fn value(&self, index: usize) -> Option<u64> {
        let value = self.values.get(index)?;
        Some(self.base.saturating_add(*value))
    }

    fn last(&self) -> Option<u64> {
        self.value(self.values.len().checked_sub(1)?)
    }

    fn push(&mut self, time: i64, value: u64) {
        self.times.push(time);
        self.values.push(value.saturating_sub(self.base));
    }

    fn pop(&mut self) {
        self.times.pop();
        self.values.pop();
    }

    /// Number of values earlier than `time`, by exponential search from `start`.
    fn count_before(&self, time: i64, start: usize) -> usize {
        let is_before = |place: usize| self.times.get(place).is_some_and(|&at| at < time);
        let start = start.min(self.times.len());
        // Values at indexes below `from` are earlier than `time`; values at `end` and above are
        // not.
        let (mut from, mut end) = (start, start);
        let mut step = 1;
        if is_before(start) {
            while is_before(end) {
                (from, end) = (end + 1, end + step);
                step *= 2;
            }
        } else {
            while from > 0 && !is_before(from - 1) {
                (end, from) = (from - 1, from.saturating_sub(step));
                step *= 2;
            }
        }
        let within = self
            .times
            .get(from..end.min(self.times.len()))
            .unwrap_or_default();
        from + within.partition_point(|&at| at < time)
    }

    fn begins_before(&self, time: i64) -> bool {
        self.times.first().is_some_and(|&first| first < time)
    }
}

impl TimeSeries {
    /// Adds a value; `time` must not be earlier than that of the last value.
    #[inline]
    pub(crate) fn add(&mut self, time: i64, value: u64, keep: Keep) {
        let value = match keep {
            Keep::Each => value,
            Keep::Sum => self.total().saturating_add(value),
            Keep::Growth => {
                // A reading below the last one: the counter was restarted, and adds nothing.
                let shown = self.shown.replace(value).unwrap_or(value);
                self.total().saturating_add(value.saturating_sub(shown))
            }
        };
        if keep != Keep::Each && self.last.times.last() == Some(&time) {
            self.last.pop();
        }
        self.last.push(time, value);
    }

    /// Appends later values of a quantity that is kept as a total. The cost is linear in the number
    /// of parts of `later`.
    pub(crate) fn append(&mut self, later: TimeSeries) {
        if self.is_empty() && self.before == 0 {
            *self = later;
            return;
        }
        let total = self.total();
        for part in later.earlier.into_iter().chain([later.last]) {
            let base = part.base.saturating_add(total);
            self.append_part(Part { base, ..part });
        }
    }

    fn append_part(&mut self, part: Part) {
        let Some(first) = part.times.first() else {
            return;
        };
        let last = &mut self.last;
        if last.times.last() == Some(first) {
            last.pop();
        }
        if part.times.len() < SMALL && last.times.len() < LARGE {
            last.times.extend_from_slice(&part.times);
            let base = last.base;
            let values = part
                .values
                .iter()
                .map(|value| part.base.saturating_add(*value));
            last.values
                .extend(values.map(|value| value.saturating_sub(base)));
            return;
        }
        let before = std::mem::replace(last, part);
        if !before.times.is_empty() {
            self.earlier.push_back(before);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.times.is_empty() && self.earlier.is_empty()
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        let earlier = self.earlier.iter().map(|part| part.times.len());
        earlier.sum::<usize>() + self.last.times.len()
    }

    pub(crate) fn total(&self) -> u64 {
        let last = self.last.last();
        let last = last.or_else(|| self.earlier.back().and_then(Part::last));
        last.unwrap_or(self.before)
    }

    fn part(&self, part: usize) -> &Part {
        self.earlier.get(part).unwrap_or(&self.last)
    }

    /// Index of the last part that begins before a time; 0 if none does. `near`: part to try first.
    fn part_before(&self, time: i64, near: usize) -> usize {
        let last = self.earlier.len();
        let near = near.min(last);
        let begins = |part: usize| self.part(part).begins_before(time);
        let is_early_enough = near == 0 || begins(near);
        if is_early_enough && (near == last || !begins(near + 1)) {
            return near;
        }
        if begins(last) {
            return last;
        }
        let before = self
            .earlier
            .partition_point(|part| part.begins_before(time));
        before.saturating_sub(1)
    }

    /// Position of the first value that is not earlier than `time`. The search starts at the
    /// cursor, and moves it there.
    fn seek(&self, time: i64, cursor: &mut SeriesCursor) -> SeriesCursor {
        let part = self.part_before(time, cursor.part);
        let start = if part == cursor.part { cursor.index } else { 0 };
        let index = self.part(part).count_before(time, start);
        *cursor = SeriesCursor { part, index };
        *cursor
    }

    /// Increase of the total from `begin` (inclusive) to `end` (exclusive), which is not earlier.
    pub(crate) fn grown(&self, begin: i64, end: i64, cursor: &mut SeriesCursor) -> u64 {
        let first = self.seek(begin, cursor);
        let last = self.seek(end, cursor);
        self.sum(last).saturating_sub(self.sum(first))
    }

    /// Total of the values before a position.
    fn sum(&self, SeriesCursor { part, index }: SeriesCursor) -> u64 {
        let value = match (part.checked_sub(1), index.checked_sub(1)) {
            (_, Some(last)) => self.part(part).value(last),
            (Some(before), None) => self.part(before).last(),
            (None, None) => None,
        };
        value.unwrap_or(self.before)
    }

    /// Values from `begin` (inclusive) to `end` (exclusive), for [`Keep::Each`]. Nothing is
    /// appended to such a series, so it has one part.
    pub(crate) fn between(&self, begin: i64, end: i64, cursor: &mut SeriesCursor) -> &[u64] {
        let (first, last) = (self.seek(begin, cursor), self.seek(end, cursor));
        self.last
            .values
            .get(first.index..last.index)
            .unwrap_or_default()
    }

    /// Drops values earlier than `before`: whole parts, or at least half of the only part. A call
    /// thus moves at most as many values as it drops.
    pub(crate) fn forget(&mut self, before: i64) {
        let is_over = |part: &Part| part.times.last().is_none_or(|&last| last < before);
        while self.earlier.front().is_some_and(is_over)
            && let Some(part) = self.earlier.pop_front()
        {
            self.before = part.last().unwrap_or(self.before);
        }
        let times = &self.last.times;
        let count = times.partition_point(|&at| at < before);
        if !self.earlier.is_empty() || count * 2 < times.len() || count == 0 {
            return;
        }
        self.before = self.last.value(count - 1).unwrap_or(self.before);
        let Part { times, values, .. } = &mut self.last;
        times.drain(..count);
        values.drain(..count);
        times.shrink_to(times.len() * 2);
        values.shrink_to(values.len() * 2);
    }

    /// All times and values.
    fn values(&self) -> impl Iterator<Item = (i64, u64)> {
        let parts = self.earlier.iter().chain([&self.last]);
        parts.flat_map(|part| {
            let values = part
                .values
                .iter()
                .map(|value| part.base.saturating_add(*value));
            part.times.iter().copied().zip(values)
        })
    }
}

impl PartialEq for TimeSeries {
    /// True if both have the same values, regardless of their division into parts.
    fn eq(&self, other: &TimeSeries) -> bool {
        let of = |series: &TimeSeries| (series.before, series.shown, series.len());
        of(self) == of(other) && self.values().eq(other.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(keep: Keep, values: &[(i64, u64)]) -> TimeSeries {
        let mut series = TimeSeries::default();
        values
            .iter()
            .for_each(|&(time, value)| series.add(time, value, keep));
        series
    }

    fn before(series: &TimeSeries, time: i64) -> u64 {
        series.grown(i64::MIN, time, &mut SeriesCursor::default())
    }

    #[test]
    fn counters_grow_and_begin_anew() {
        let series = added(
            Keep::Growth,
            &[(10, 500), (20, 510), (20, 515), (30, 3), (40, 7)],
        );
        let found = [10, 11, 20, 21, 31, 41, 99].map(|time| before(&series, time));
        assert_eq!(found, [0, 0, 0, 15, 15, 19, 19]);
    }

    #[test]
    fn what_is_appended_is_as_if_it_had_been_added() {
        let values: Vec<(i64, u64)> = (0..100).map(|time| (time / 3 * 10, time as u64)).collect();
        let whole = added(Keep::Sum, &values);
        for cut in [0, 1, 3, 50, 99, 100] {
            let (first, second) = values.split_at(cut);
            let mut joined = added(Keep::Sum, first);
            joined.append(added(Keep::Sum, second));
            assert_eq!(joined, whole, "{cut}");
        }
        for time in -5..400 {
            let expected = values
                .iter()
                .filter(|(at, _)| *at < time)
                .map(|(_, value)| value);
            assert_eq!(before(&whole, time), expected.sum::<u64>(), "{time}");
        }
    }

    /// Parts of all sizes, some of which end at the time at which the next one begins.
    #[test]
    fn parts_are_searched_as_one_series() {
        let values: Vec<(i64, u64)> = (0..9000)
            .map(|time| (time / 2 * 10, time as u64 % 7))
            .collect();
        let whole = added(Keep::Sum, &values);
        let mut joined = TimeSeries::default();
        let mut rest = values.as_slice();
        let mut sizes = [1, 63, 300, 2, 64, 65, 1001].into_iter().cycle();
        while let Some(size) = sizes.next().filter(|_| !rest.is_empty()) {
            let (part, later) = rest.split_at(size.min(rest.len()));
            joined.append(added(Keep::Sum, part));
            rest = later;
        }
        assert!(joined.earlier.len() > 10, "{}", joined.earlier.len());
        assert!(joined == whole);
        let mut forgotten = joined.clone();
        forgotten.forget(30_000);
        assert!(forgotten.len() < joined.len() / 2, "{}", forgotten.len());
        let (mut in_joined, mut in_whole, mut in_forgotten) = Default::default();
        // Forwards, backwards and at a distance.
        for step in 0..4000 {
            let time = 30_000 + step * 7919 % 16_000;
            let found = [
                joined.grown(time - 45, time, &mut in_joined),
                forgotten.grown((time - 45).max(30_000), time, &mut in_forgotten),
            ];
            let expected = whole.grown(time - 45, time, &mut in_whole);
            let of_forgotten = whole.grown((time - 45).max(30_000), time, &mut in_whole);
            assert_eq!(found, [expected, of_forgotten], "{time}");
        }
        forgotten.forget(i64::MAX);
        assert!(forgotten.is_empty() && forgotten.total() == whole.total());
    }

    #[test]
    fn what_is_forgotten_does_not_change_what_is_left() {
        let values: Vec<(i64, u64)> = (0..100).map(|time| (time * 10, time as u64)).collect();
        let whole = added(Keep::Sum, &values);
        let mut cut = whole.clone();
        cut.forget(300);
        assert_eq!(
            cut.len(),
            100,
            "fewer than half of the values are not dropped"
        );
        cut.forget(805);
        assert_eq!(cut.len(), 19);
        let (mut in_cut, mut in_whole) =
            (SeriesCursor { part: 0, index: 50 }, SeriesCursor::default());
        for time in (805..1100).step_by(5) {
            let found = cut.grown(805, time, &mut in_cut);
            assert_eq!(found, whole.grown(805, time, &mut in_whole), "{time}");
        }
    }
}
