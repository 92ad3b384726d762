//! Quantities by CPU or thread, in the order of time.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, ThreadKey};

use crate::contexts::Hasher;
use crate::counts::line::{Keep, Line, LinePlace};
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

/// Offset of the last hit in each line of an owner, per reader: the next one is mostly near.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<Owner, Vec<LinePlace>, Hasher>);

impl Places {
    /// Those in that many lines of an owner.
    pub(crate) fn of(&mut self, owner: Owner, lines: usize) -> &mut [LinePlace] {
        let places = self.0.entry(owner).or_default();
        if places.len() < lines {
            places.resize(lines, LinePlace::default());
        }
        places
    }
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
        self.at(key).append(later);
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
        self.0.values().flatten().map(Line::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_serialized_by_owner() {
        let owners = [0, 3].map(|cpu| Owner::Cpu(CpuKey { trace: 0, cpu }));
        let mut lines = CountLines::default();
        for time in 0..1000 {
            for (owner, quantity) in owners.into_iter().zip([1, 0]) {
                let mut later = Line::default();
                later.add(time, 5, Keep::Sum);
                lines.append_line((quantity, owner), later);
            }
        }
        let serialized = Vec::from(lines.clone());
        assert_eq!(serialized.len(), 2, "empty lines are left out");
        assert_eq!(CountLines::from(serialized), lines);
        assert_eq!((lines.total(0), lines.total(1), lines.kept()), (5000, 5000, 2000));
        lines.forget(900);
        assert_eq!((lines.total(0), lines.total(1), lines.kept()), (5000, 5000, 200));
    }
}
