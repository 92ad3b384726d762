//! The inequalities between two clocks over a long time, in bounded memory.
//!
//! The time of the first clock is divided into cells, each with the hulls of its own points. Points
//! may be added in any order and from any number of threads. When the number of cells exceeds the
//! limit, neighbouring cells are merged in pairs. The result does not depend on the order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::relation::Relation;

/// Maximum number of cells.
const MOST_CELLS: usize = 8192;
/// Initial cell length: 2²⁰ ns, about a millisecond.
const FIRST_PLACES: u32 = 20;
/// With this cell length, one cell covers all times.
const LAST_PLACES: u32 = 63;

/// The inequalities between two clocks, by the time of the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Binary logarithm of the cell length in nanoseconds.
    places: u32,
    cells: BTreeMap<i64, Relation>,
    /// Numbers of messages to the first clock's machine, and from it.
    messages: (u64, u64),
    /// Messages with times out of range.
    ignored: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline {
            places: FIRST_PLACES,
            cells: BTreeMap::new(),
            messages: (0, 0),
            ignored: 0,
        }
    }
}

impl Timeline {
    /// Adds a message that the other machine sent at `y` and the first received at `x`.
    pub fn receives(&mut self, x: i64, y: i64) {
        self.messages.0 += 1;
        let is_taken = self.cell(x).not_before(x, y);
        self.took(is_taken);
    }

    /// Adds a message that the first machine sent at `x` and the other received at `y`.
    pub fn sends(&mut self, x: i64, y: i64) {
        self.messages.1 += 1;
        let is_taken = self.cell(x).not_after(x, y);
        self.took(is_taken);
    }

    fn cell(&mut self, x: i64) -> &mut Relation {
        self.cells.entry(x >> self.places).or_default()
    }

    fn took(&mut self, is_taken: bool) {
        self.ignored += u64::from(!is_taken);
        self.limit();
    }

    fn limit(&mut self) {
        while self.cells.len() > MOST_CELLS && self.places < LAST_PLACES {
            self.coarsen(self.places + 1);
        }
    }

    fn coarsen(&mut self, places: u32) {
        let longer = places.saturating_sub(self.places);
        self.places = places.max(self.places);
        if longer == 0 {
            return;
        }
        for (index, relation) in std::mem::take(&mut self.cells) {
            self.cells
                .entry(index >> longer)
                .or_default()
                .merge(&relation);
        }
    }

    /// Adds the messages of another timeline of the same clocks.
    pub fn merge(&mut self, mut other: Timeline) {
        self.coarsen(other.places);
        other.coarsen(self.places);
        for (index, relation) in other.cells {
            self.cells.entry(index).or_default().merge(&relation);
        }
        self.messages.0 += other.messages.0;
        self.messages.1 += other.messages.1;
        self.ignored += other.ignored;
        self.limit();
    }

    /// Numbers of messages that the first clock's machine received and sent.
    pub fn messages(&self) -> (u64, u64) {
        self.messages
    }

    /// Number of messages that were ignored because a time is beyond the range that products of
    /// times allow.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// The cells with messages, in the order of time.
    pub fn cells(&self) -> impl Iterator<Item = &Relation> {
        self.cells.values().filter(|cell| cell.extent().is_some())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(messages: &[(i64, i64, bool)]) -> Timeline {
        let mut line = Timeline::default();
        for &(x, y, is_sent) in messages {
            match is_sent {
                true => line.sends(x, y),
                false => line.receives(x, y),
            }
        }
        line
    }

    proptest! {
        #[test]
        fn parts_may_be_joined_in_any_way(
            messages in prop::collection::vec((-1i64 << 40..1 << 40, 0i64..1000, any::<bool>()), 0..40),
            cut in 0usize..40,
            second in 0usize..40,
        ) {
            let (first, rest) = messages.split_at(cut.min(messages.len()));
            let (second, third) = rest.split_at(second.min(rest.len()));
            let [first, second, third] = [first, second, third].map(of);
            let join = |parts: [&Timeline; 2]| {
                let mut joined = parts[0].clone();
                joined.merge(parts[1].clone());
                joined
            };
            let left = join([&join([&first, &second]), &third]);
            let right = join([&first, &join([&second, &third])]);
            prop_assert_eq!(&left, &right);
            prop_assert_eq!(&left, &join([&third, &join([&second, &first])]));
            prop_assert_eq!(&left, &of(&messages));
        }
    }

    #[test]
    fn long_streams_take_bounded_memory() {
        let mut line = Timeline::default();
        for second in 0..3 * MOST_CELLS as i64 {
            line.receives(second * 1_000_000_000, second);
            line.sends(second * 1_000_000_000, second * 3);
        }
        line.receives(i64::MIN, 0);
        assert!(line.cells().count() <= MOST_CELLS);
        let all = 3 * MOST_CELLS as u64;
        assert_eq!((line.messages(), line.ignored()), ((all + 1, all), 1));
    }
}
