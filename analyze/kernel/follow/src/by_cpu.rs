//! Values by CPU.

use serde::{Deserialize, Serialize};

use crate::sources::CpuKey;

/// Values by CPU, in the order of their keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByCpu<T> {
    entries: Vec<(CpuKey, T)>,
    /// Index of the last lookup: the next event is often of the same CPU.
    #[serde(skip)]
    last: usize,
}

impl<T> Default for ByCpu<T> {
    fn default() -> Self {
        ByCpu {
            entries: Vec::new(),
            last: 0,
        }
    }
}

impl<T: Default> ByCpu<T> {
    /// The value of a CPU, which is added if it is new.
    #[inline(always)]
    pub fn get(&mut self, key: CpuKey) -> &mut T {
        if self
            .entries
            .get(self.last)
            .is_none_or(|entry| entry.0 != key)
        {
            self.last = self.find(key);
        }
        &mut self.entries[self.last].1
    }

    #[inline]
    fn find(&mut self, key: CpuKey) -> usize {
        // Most often there is one trace, with all CPUs from 0 on.
        let direct = key.cpu as usize;
        if self.entries.get(direct).is_some_and(|entry| entry.0 == key) {
            return direct;
        }
        let found = self.entries.binary_search_by_key(&key, |entry| entry.0);
        found.unwrap_or_else(|at| {
            self.entries.insert(at, (key, T::default()));
            at
        })
    }
}

impl<T> ByCpu<T> {
    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &(CpuKey, T)> {
        self.entries.iter()
    }

    /// All entries, in the order of their keys, with mutable values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (CpuKey, &mut T)> {
        self.entries.iter_mut().map(|(key, value)| (*key, value))
    }
}

impl<T> FromIterator<(CpuKey, T)> for ByCpu<T> {
    /// The keys must be unique and in ascending order.
    fn from_iter<I: IntoIterator<Item = (CpuKey, T)>>(entries: I) -> Self {
        ByCpu {
            entries: entries.into_iter().collect(),
            last: 0,
        }
    }
}

impl<T> IntoIterator for ByCpu<T> {
    type Item = (CpuKey, T);
    type IntoIter = std::vec::IntoIter<(CpuKey, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}
