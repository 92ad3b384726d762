//! A map with fast lookup that keeps the order of insertion.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash};

use serde::{Deserialize, Serialize};

use tracebraid_follow::KeyHasher;

/// Values by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Keyed<K, V> {
    entries: Vec<(K, V)>,
    /// By some bits of the hash: index of the last key found. Few keys are in use at a time.
    #[serde(skip)]
    near: Vec<u32>,
    #[serde(skip, default = "HashMap::default")]
    index: HashMap<K, u32, BuildHasherDefault<KeyHasher>>,
}

const NEAR: usize = 128;

impl<K, V> Default for Keyed<K, V> {
    fn default() -> Self {
        Keyed {
            entries: Vec::new(),
            near: Vec::new(),
            index: HashMap::default(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Keyed<K, V> {
    #[inline]
    fn search(&mut self, key: K) -> Option<usize> {
        let hash = self.index.hasher().hash_one(key) as usize;
        let near = self.near.get(hash % NEAR).copied();
        if let Some(at) = near.map(|at| at as usize)
            && self.entries.get(at).is_some_and(|entry| entry.0 == key)
        {
            return Some(at);
        }
        self.search_far(key, hash)
    }

    #[inline(never)]
    fn search_far(&mut self, key: K, hash: usize) -> Option<usize> {
        if self.index.len() != self.entries.len() {
            // Deserialized: the index is not stored.
            let places = (0..).zip(&self.entries);
            self.index = places.map(|(at, (key, _))| (*key, at)).collect();
        }
        let found = *self.index.get(&key)?;
        self.near.resize(NEAR, 0);
        self.near[hash % NEAR] = found;
        Some(found as usize)
    }

    /// The value of a key.
    #[inline]
    pub(super) fn find(&mut self, key: K) -> Option<&mut V> {
        let at = self.search(key)?;
        self.at(at)
    }

    /// The index of a key, which is inserted if it is new. The index never changes.
    #[inline]
    pub(super) fn place(&mut self, key: K) -> usize {
        self.search(key).unwrap_or_else(|| {
            let at = self.entries.len();
            self.entries.push((key, V::default()));
            self.index.insert(key, at as u32);
            at
        })
    }

    /// The value at an index.
    #[inline]
    pub(super) fn at(&mut self, place: usize) -> Option<&mut V> {
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// The value of a key, which is inserted if it is new.
    #[inline]
    pub(super) fn get(&mut self, key: K) -> &mut V {
        let at = self.place(key);
        // In range: `place` has inserted the key.
        &mut self.entries[at].1
    }

    /// Adds the values of another map; `add` combines the values of common keys.
    pub(super) fn merge(&mut self, other: Keyed<K, V>, add: impl Fn(&mut V, V)) {
        if self.entries.is_empty() {
            *self = other;
            return;
        }
        for (key, value) in other.entries {
            let known = self.entries.len();
            let at = self.place(key);
            // In range: the key existed, or `place` has inserted it.
            let own = &mut self.entries[at].1;
            match at < known {
                true => add(own, value),
                false => *own = value,
            }
        }
    }

    /// The values with their keys, in the order of insertion.
    pub(super) fn into_entries(self) -> Vec<(K, V)> {
        self.entries
    }

    /// The values with their keys.
    pub(super) fn entries(&self) -> &[(K, V)] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_after_being_sent() {
        let mut keyed: Keyed<(u32, i64), u64> = Keyed::default();
        *keyed.get((1, -7)) += 1;
        *keyed.get((2, 8)) += 5;
        let text = serde_json::to_string(&keyed).unwrap();
        let mut received: Keyed<(u32, i64), u64> = serde_json::from_str(&text).unwrap();
        *received.get((1, -7)) += 1;
        assert_eq!(received.entries(), [((1, -7), 2), ((2, 8), 5)]);
        assert_eq!(received.find((3, 3)), None);
    }
}
