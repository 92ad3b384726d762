//! Quantities by CPU or thread, in the order of time.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, ThreadKey};

use crate::contexts::Hasher;
use crate::counts::quantities::FAULTS;

/// Whose a quantity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// Whoever runs there.
    Cpu(CpuKey),
    Thread(ThreadKey),
}

/// A quantity by its place among all, and whose it is.
pub(crate) type LineKey = (u16, Owner);

/// All that was counted: by owner, and there by the place of the quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(LineKey, Line)>", into = "Vec<(LineKey, Line)>")]
pub struct CountLines(HashMap<Owner, Vec<Line>, Hasher>);

/// A quantity of one owner. Of what adds up, what had come together by each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    times: Vec<i64>,
    values: Vec<u64>,
    /// What had come together before the first time.
    before: u64,
    /// What a counter showed last.
    shown: Option<u64>,
}

/// Offset of the last hit in each line of an owner, per reader: the next one is mostly near.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<Owner, Vec<usize>, Hasher>);

impl Places {
    /// Those in that many lines of an owner.
    pub(crate) fn of(&mut self, owner: Owner, lines: usize) -> &mut [usize] {
        let places = self.0.entry(owner).or_default();
        if places.len() < lines {
            places.resize(lines, 0);
        }
        places
    }
}

/// How values of a quantity are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// They add up.
    Sum,
    /// They are what a counter shows: what it grew by adds up.
    Growth,
    /// Each as it is.
    Each,
}

impl From<Vec<(LineKey, Line)>> for CountLines {
    fn from(list: Vec<(LineKey, Line)>) -> CountLines {
        let mut lines = CountLines::default();
        for (key, line) in list {
            *lines.at(key) = line;
        }
        lines
    }
}

impl From<CountLines> for Vec<(LineKey, Line)> {
    fn from(lines: CountLines) -> Self {
        let of_owner = |(owner, lines): (Owner, Vec<Line>)| {
            let lines = (0..).zip(lines).filter(|(_, line)| *line != Line::default());
            lines.map(move |(place, line)| ((place, owner), line))
        };
        let mut list: Vec<_> = lines.0.into_iter().flat_map(of_owner).collect();
        list.sort_unstable_by_key(|(key, _)| *key);
        list
    }
}

impl CountLines {
    fn at(&mut self, (place, owner): LineKey) -> &mut Line {
        let lines = self.0.entry(owner).or_default();
        let place = usize::from(place);
        if lines.len() <= place {
            lines.resize_with(place + 1, Line::default);
        }
        &mut lines[place]
    }

    /// A value, later than all before.
    pub(crate) fn add(&mut self, key: LineKey, time: i64, value: u64, keep: Keep) {
        self.at(key).add(time, value, keep);
    }

    /// What was counted later than that, which adds up.
    pub(crate) fn append(&mut self, later: CountLines) {
        for (owner, lines) in later.0 {
            for (place, line) in (0..).zip(lines) {
                self.append_line((place, owner), line);
            }
        }
    }

    /// The same of one line.
    pub(crate) fn append_line(&mut self, key: LineKey, later: Line) {
        let line = self.at(key);
        match line.times.is_empty() && line.before == 0 {
            true => *line = later,
            false => line.append(&later),
        }
    }

    /// The lines of an owner, by the places of quantities, as far as there are any.
    pub(crate) fn of(&self, owner: Owner) -> &[Line] {
        self.0.get(&owner).map_or(&[], Vec::as_slice)
    }

    /// Drops what happened before a time: nobody will ask for it.
    pub fn forget(&mut self, before: i64) {
        self.0.values_mut().flatten().for_each(|line| line.forget(before));
    }

    /// What came together in all of a quantity, by its place: page faults, bytes read, bytes written, system calls, and then
    /// those of [`crate::Quantities::extra`].
    pub fn total(&self, place: usize) -> u64 {
        let lines = self.0.values().filter_map(|lines| lines.get(place));
        lines.fold(0, |sum, line| line.total().saturating_add(sum))
    }

    /// Page faults of all threads.
    pub(crate) fn faults(&self) -> u64 {
        self.total(usize::from(FAULTS))
    }

    /// How many values are kept.
    pub fn kept(&self) -> usize {
        self.0.values().flatten().map(|line| line.times.len()).sum()
    }
}

impl Line {
    /// A value, later than all before.
    pub(crate) fn add(&mut self, time: i64, value: u64, keep: Keep) {
        let value = match keep {
            Keep::Each => value,
            Keep::Sum => self.total().saturating_add(value),
            Keep::Growth => {
                // A counter that goes back began anew.
                let shown = self.shown.replace(value).unwrap_or(value);
                self.total().saturating_add(value.saturating_sub(shown))
            }
        };
        if keep != Keep::Each
            && let (Some(last), Some(sum)) = (self.times.last(), self.values.last_mut())
            && *last == time
        {
            *sum = value;
            return;
        }
        self.times.push(time);
        self.values.push(value);
    }

    /// What comes later, of a quantity that adds up.
    fn append(&mut self, later: &Line) {
        let total = self.total();
        if self.times.last().is_some() && self.times.last() == later.times.first() {
            self.times.pop();
            self.values.pop();
        }
        self.times.extend_from_slice(&later.times);
        let values = later.values.iter();
        self.values
            .extend(values.map(|value| value.saturating_add(total)));
    }

    fn total(&self) -> u64 {
        self.values.last().copied().unwrap_or(self.before)
    }

    /// How many values are from before a time: it is looked for in steps that grow, from where something was found last.
    fn place(&self, time: i64, last: &mut usize) -> usize {
        let is_before = |place: usize| self.times.get(place).is_some_and(|&at| at < time);
        let start = (*last).min(self.times.len());
        // Values before `from` are from before the time, those from `end` on are not.
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
        let place = from + within.partition_point(|&at| at < time);
        *last = place;
        place
    }

    /// What came together from one time to before another one, which is not earlier.
    pub(crate) fn grown(&self, begin: i64, end: i64, place: &mut usize) -> u64 {
        let first = self.place(begin, place);
        let last = self.place(end, place);
        self.sum(last).saturating_sub(self.sum(first))
    }

    /// What the first ones came to.
    fn sum(&self, count: usize) -> u64 {
        let last = count.checked_sub(1);
        last.map_or(self.before, |last| self.values.get(last).copied().unwrap_or(0))
    }

    /// Values from one time to before another one.
    pub(crate) fn between(&self, begin: i64, end: i64, place: &mut usize) -> &[u64] {
        let (first, last) = (self.place(begin, place), self.place(end, place));
        self.values.get(first..last).unwrap_or_default()
    }

    /// What is moved is a part of what was added since: the time for that is bounded.
    fn forget(&mut self, before: i64) {
        let count = self.times.partition_point(|&at| at < before);
        if count * 2 < self.times.len() || count == 0 {
            return;
        }
        self.before = self.sum(count);
        self.times.drain(..count);
        self.values.drain(..count);
        self.times.shrink_to(self.times.len() * 2);
        self.values.shrink_to(self.values.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner::Cpu(CpuKey { trace: 0, cpu: 3 });

    fn line(keep: Keep, values: &[(i64, u64)]) -> CountLines {
        let mut lines = CountLines::default();
        for &(time, value) in values {
            lines.add((0, OWNER), time, value, keep);
        }
        lines
    }

    fn before(lines: &CountLines, time: i64) -> u64 {
        lines.of(OWNER)[0].grown(i64::MIN, time, &mut 0)
    }

    #[test]
    fn counters_grow_and_begin_anew() {
        let lines = line(Keep::Growth, &[(10, 500), (20, 510), (20, 515), (30, 3), (40, 7)]);
        let found = [10, 11, 20, 21, 31, 41, 99].map(|time| before(&lines, time));
        assert_eq!(found, [0, 0, 0, 15, 15, 19, 19]);
    }

    #[test]
    fn what_is_appended_is_as_if_it_had_been_added() {
        let values: Vec<(i64, u64)> = (0..100).map(|time| (time / 3 * 10, time as u64)).collect();
        let whole = line(Keep::Sum, &values);
        for cut in [0, 1, 3, 50, 99, 100] {
            let (first, second) = values.split_at(cut);
            let mut joined = line(Keep::Sum, first);
            joined.append(line(Keep::Sum, second));
            assert_eq!(joined, whole, "{cut}");
        }
        for time in -5..400 {
            let expected = values.iter().filter(|(at, _)| *at < time).map(|(_, value)| value);
            assert_eq!(before(&whole, time), expected.sum::<u64>(), "{time}");
        }
    }

    #[test]
    fn what_is_forgotten_does_not_change_what_is_left() {
        let values: Vec<(i64, u64)> = (0..100).map(|time| (time * 10, time as u64)).collect();
        let whole = line(Keep::Sum, &values);
        let mut cut = whole.clone();
        cut.forget(300);
        assert_eq!(cut.kept(), 100, "less than half is not worth it");
        cut.forget(805);
        assert_eq!(cut.kept(), 19);
        let grown = |lines: &CountLines, time, place: &mut usize| lines.of(OWNER)[0].grown(805, time, place);
        let (mut in_cut, mut in_whole) = (50, 0);
        for time in (805..1100).step_by(5) {
            let found = grown(&cut, time, &mut in_cut);
            assert_eq!(found, grown(&whole, time, &mut in_whole), "{time}");
        }
        let serialized = Vec::from(cut.clone());
        assert_eq!(CountLines::from(serialized), cut);
    }
}
