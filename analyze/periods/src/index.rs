//! Looks up open periods by values.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};

use tracebraid_follow::KeyHasher;

/// Open periods by the hash of the values that they began with. Entries of ended periods are
/// removed when a lookup meets them, or once they are half of all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    places: HashMap<u64, Vec<Entry>, BuildHasherDefault<KeyHasher>>,
    entries: usize,
    ended: usize,
}

/// A period: its slot, and the number that distinguishes it from later periods in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) place: u32,
    pub(super) number: u64,
}

/// Below this number of ended entries, no clean-up.
const FEW: usize = 1024;

impl Index {
    pub(super) fn add(&mut self, key: u64, entry: Entry) {
        self.places.entry(key).or_default().push(entry);
        self.entries += 1;
    }

    /// Counts an ended period, and removes the ended entries if there are too many.
    pub(super) fn end(&mut self, is_open: impl Fn(Entry) -> bool) {
        self.ended += 1;
        if self.ended > FEW.max(self.entries / 2) {
            self.places.retain(|_, entries| {
                entries.retain(|&entry| is_open(entry));
                !entries.is_empty()
            });
            self.entries = self.places.values().map(Vec::len).sum();
            self.ended = 0;
        }
    }

    /// The open periods with that key, in the order of their starts.
    #[inline]
    pub(super) fn find(&mut self, key: u64, is_open: impl Fn(Entry) -> bool) -> &[Entry] {
        let Some(entries) = self.places.get_mut(&key) else {
            return &[];
        };
        let before = entries.len();
        entries.retain(|&entry| is_open(entry));
        let gone = before - entries.len();
        self.entries -= gone;
        self.ended = self.ended.saturating_sub(gone);
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_not_found_and_takes_no_memory() {
        let mut index = Index::default();
        for number in 0..10_000 {
            let entry = Entry { place: 0, number };
            index.add(number % 7, entry);
            index.end(|entry| entry.number > number);
        }
        assert!(index.entries <= 2 * FEW, "{}", index.entries);
        let entry = Entry {
            place: 3,
            number: 20_000,
        };
        index.add(5, entry);
        assert_eq!(index.find(5, |entry| entry.number == 20_000), [entry]);
        assert_eq!(index.find(5, |_| false), []);
        assert_eq!(index.find(8, |_| true), []);
    }
}
