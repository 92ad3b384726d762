//! Pairs of begin and end events, by a key that both contain: a request by its disk and sector, a
//! packet by its buffer.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

use serde::{Deserialize, Serialize};

use crate::table::KeyHasher;

/// Beginnings `B` that wait for their ends, by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(K, B)>", into = "Vec<(K, B)>")]
#[serde(bound(
    serialize = "K: Clone + Serialize, B: Clone + Serialize",
    deserialize = "K: Eq + Hash + Deserialize<'de>, B: Deserialize<'de>"
))]
pub struct Pairs<K, B>(HashMap<K, B, BuildHasherDefault<KeyHasher>>);

impl<K, B> Default for Pairs<K, B> {
    fn default() -> Self {
        Pairs(HashMap::default())
    }
}

impl<K: Eq + Hash, B> Pairs<K, B> {
    /// Adds a beginning; true if it replaces an open beginning with the same key.
    #[inline]
    pub fn begin(&mut self, key: K, begun: B) -> bool {
        self.0.insert(key, begun).is_some()
    }

    /// Adds an end; returns the beginning with its key.
    #[inline]
    pub fn end(&mut self, key: K) -> Option<B> {
        self.0.remove(&key)
    }

    /// Drops the beginnings whose keys are selected.
    pub fn forget(&mut self, mut is_forgotten: impl FnMut(&K) -> bool) {
        self.0.retain(|key, _| !is_forgotten(key));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Open beginnings, in no order.
    pub fn open(&self) -> impl Iterator<Item = (&K, &B)> {
        self.0.iter()
    }

    /// Keys of open beginnings.
    pub fn open_keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }
}

// Most formats allow only text as keys of maps.
impl<K: Eq + Hash, B> From<Vec<(K, B)>> for Pairs<K, B> {
    fn from(entries: Vec<(K, B)>) -> Self {
        Pairs(entries.into_iter().collect())
    }
}

impl<K, B> From<Pairs<K, B>> for Vec<(K, B)> {
    fn from(pairs: Pairs<K, B>) -> Self {
        pairs.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_paired_with_the_last_beginning() {
        let mut pairs: Pairs<(u32, u64), &str> = Pairs::default();
        assert!(!pairs.begin((0, 7), "lost"));
        assert!(pairs.begin((0, 7), "begun"));
        assert!(!pairs.begin((1, 7), "open"));
        assert_eq!(
            [pairs.end((0, 7)), pairs.end((0, 7))],
            [Some("begun"), None]
        );
        let sent: Vec<_> = pairs.into();
        let received = Pairs::from(sent);
        assert_eq!(received.open_keys().collect::<Vec<_>>(), [&(1, 7)]);
    }
}
