//! Values by key: found fast, kept in the order in which the keys were met.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

use serde::{Deserialize, Serialize};

use crate::kernel::KeyHasher;

/// Values by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Keyed<K, V> {
    entries: Vec<(K, V)>,
    /// Where the last one was found: the next one is often the same.
    #[serde(skip)]
    last: usize,
    #[serde(skip, default = "HashMap::default")]
    index: HashMap<K, usize, BuildHasherDefault<KeyHasher>>,
}

impl<K, V> Default for Keyed<K, V> {
    fn default() -> Self {
        Keyed {
            entries: Vec::new(),
            last: 0,
            index: HashMap::default(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Keyed<K, V> {
    #[inline]
    fn place(&mut self, key: K) -> Option<usize> {
        if self.entries.get(self.last).is_some_and(|entry| entry.0 == key) {
            return Some(self.last);
        }
        let found = self.search(key);
        self.last = found.unwrap_or(self.last);
        found
    }

    fn search(&mut self, key: K) -> Option<usize> {
        if self.index.len() != self.entries.len() {
            // It was deserialized.
            let places = self.entries.iter().enumerate();
            self.index = places.map(|(at, (key, _))| (*key, at)).collect();
        }
        self.index.get(&key).copied()
    }

    /// The value of a key, if there is one.
    pub(super) fn find(&mut self, key: K) -> Option<&mut V> {
        let at = self.place(key)?;
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    /// The value of a key, which is made if it is new.
    pub(super) fn get(&mut self, key: K) -> &mut V {
        let at = self.place(key).unwrap_or_else(|| {
            self.entries.push((key, V::default()));
            self.index.insert(key, self.entries.len() - 1);
            self.entries.len() - 1
        });
        &mut self.entries[at].1
    }

    /// All values with their keys.
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
