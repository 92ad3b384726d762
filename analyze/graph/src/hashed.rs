//! A map for many entries whose keys are hashes.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use tracebraid_follow::KeyHasher;

/// Values by keys that are hashes themselves; unordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, V)>", into = "Vec<(u64, V)>")]
#[serde(bound(
    serialize = "V: Clone + Serialize",
    deserialize = "V: Deserialize<'de>"
))]
pub(crate) struct Hashed<V>(HashMap<u64, V, BuildHasherDefault<KeyHasher>>);

impl<V> Default for Hashed<V> {
    fn default() -> Self {
        Hashed(HashMap::default())
    }
}

impl<V> Hashed<V> {
    pub(crate) fn add(&mut self, key: u64, value: impl FnOnce() -> V) {
        self.0.entry(key).or_insert_with(value);
    }

    /// The value of a key; inserts it if the key is new.
    pub(crate) fn get(&mut self, key: u64, value: impl FnOnce() -> V) -> &mut V {
        self.0.entry(key).or_insert_with(value)
    }

    pub(crate) fn find(&self, key: u64) -> Option<&V> {
        self.0.get(&key)
    }

    pub(crate) fn find_mut(&mut self, key: u64) -> Option<&mut V> {
        self.0.get_mut(&key)
    }

    pub(crate) fn merge(&mut self, mut later: Hashed<V>) {
        // Move the smaller map into the larger one: keys do not collide with different values.
        if self.0.len() < later.0.len() {
            std::mem::swap(self, &mut later);
        }
        for (key, value) in later.0 {
            self.add(key, || value);
        }
    }

    /// All entries, sorted by key.
    pub(crate) fn into_entries(self) -> Vec<(u64, V)> {
        let mut entries: Vec<(u64, V)> = self.into();
        entries.sort_unstable_by_key(|of| of.0);
        entries
    }
}

// As a list, since most formats require maps to have text keys.
impl<V> From<Vec<(u64, V)>> for Hashed<V> {
    fn from(entries: Vec<(u64, V)>) -> Self {
        Hashed(entries.into_iter().collect())
    }
}

impl<V> From<Hashed<V>> for Vec<(u64, V)> {
    fn from(hashed: Hashed<V>) -> Self {
        hashed.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_merged_alike() {
        let of =
            |keys: &[u64]| Hashed::from(keys.iter().map(|&key| (key, key * 2)).collect::<Vec<_>>());
        for (one, other) in [(&[7u64][..], &[9, 3][..]), (&[9, 3], &[7])] {
            let mut all = of(one);
            all.merge(of(other));
            all.add(3, || 0);
            assert_eq!(all.find(4), None);
            assert_eq!(all.into_entries(), [(3, 6), (7, 14), (9, 18)]);
        }
    }
}
