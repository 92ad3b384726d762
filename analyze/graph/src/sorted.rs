//! A sorted list for few values that are looked up much more often than added.

use serde::{Deserialize, Serialize};

/// Values sorted by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sorted<K, V>(Vec<(K, V)>);

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Sorted(Vec::new())
    }
}

impl<K: Ord + Copy, V> Sorted<K, V> {
    /// Adds a value, unless the key has one. Returns the value if it was added.
    pub(crate) fn add(&mut self, key: K, value: impl FnOnce() -> Option<V>) -> Option<&V> {
        let at = self.0.binary_search_by_key(&key, |of| of.0).err()?;
        self.0.insert(at, (key, value()?));
        self.0.get(at).map(|(_, value)| value)
    }

    pub(crate) fn merge(&mut self, later: Sorted<K, V>) {
        for (key, value) in later.0 {
            self.add(key, || Some(value));
        }
    }

    /// Takes a list as [`Sorted::into_entries`] returns it.
    pub(crate) fn from_entries(entries: Vec<(K, V)>) -> Self {
        Sorted(entries)
    }

    pub(crate) fn into_entries(self) -> Vec<(K, V)> {
        self.0
    }
}
