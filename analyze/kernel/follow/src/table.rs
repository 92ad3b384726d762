//! Values by thread.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::people::ThreadKey;
use crate::thread_index::ThreadIndex;

/// Values by thread, with fast lookup, in the order of their first use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table<T> {
    entries: Vec<(ThreadKey, T)>,
    #[serde(skip)]
    index: ThreadIndex,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            entries: Vec::new(),
            index: ThreadIndex::default(),
        }
    }
}

impl<T: Default> Table<T> {
    /// Position of a thread, which is added if it is new.
    #[inline]
    pub fn place(&mut self, key: ThreadKey) -> usize {
        if self.index.len() != self.entries.len() {
            // The index is missing after deserialization.
            self.index = index(&self.entries);
        }
        match self.index.get(key) {
            Some(at) => at as usize,
            None => self.add(key),
        }
    }

    #[cold]
    fn add(&mut self, key: ThreadKey) -> usize {
        let at = self.entries.len();
        self.index.insert(key, at as u32);
        self.entries.push((key, T::default()));
        at
    }

    /// The thread at a position.
    pub fn key(&self, place: usize) -> Option<ThreadKey> {
        self.entries.get(place).map(|(key, _)| *key)
    }

    /// The value at a position.
    #[inline]
    pub fn at(&mut self, place: usize) -> Option<&mut T> {
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// The value of a thread, which is added if it is new.
    #[inline]
    pub fn get(&mut self, key: ThreadKey) -> &mut T {
        let place = self.place(key);
        // `place` has added the entry.
        &mut self.entries[place].1
    }

    /// The value of a thread, which is added if it is new. Tries the position `place` first, and
    /// sets it to the thread's position.
    #[inline]
    pub fn get_near(&mut self, key: ThreadKey, place: &mut usize) -> &mut T {
        if self.key(*place) != Some(key) {
            *place = self.place(key);
        }
        // The entry exists, or `place` has added it.
        &mut self.entries[*place].1
    }

    /// The value of a known thread.
    pub fn find(&self, key: ThreadKey) -> Option<&T> {
        if self.index.len() == self.entries.len() {
            return self
                .index
                .get(key)
                .and_then(|at| self.entries.get(at as usize))
                .map(|(_, value)| value);
        }
        self.entries
            .iter()
            .find(|(other, _)| *other == key)
            .map(|(_, value)| value)
    }

    /// The value of a known thread, mutable.
    #[inline]
    pub fn find_mut(&mut self, key: ThreadKey) -> Option<&mut T> {
        if self.index.len() != self.entries.len() {
            // The index is not serialized.
            self.index = index(&self.entries);
        }
        let at = self.index.get(key)?;
        self.at(at as usize)
    }

    /// Whether each thread occurs once. May be false for deserialized data.
    pub fn is_sound(&self) -> bool {
        index(&self.entries).len() == self.entries.len()
    }

    /// All values.
    pub fn values(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// All entries, mutable, in the order of their first use.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (ThreadKey, &mut T)> {
        self.entries.iter_mut().map(|(key, value)| (*key, value))
    }

    /// Merges another table, using `add` for threads that are in both.
    #[inline]
    pub fn merge_by(&mut self, other: Table<T>, add: impl Fn(&mut T, T)) {
        if self.entries.is_empty() {
            *self = other;
            return;
        }
        for (key, value) in other.entries {
            let known = self.entries.len();
            let place = self.place(key);
            // The entry exists, or `place` has added it.
            let own = &mut self.entries[place].1;
            match place < known {
                true => add(own, value),
                false => *own = value,
            }
        }
    }

    /// Drops the entries for which `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.entries.retain(|(_, value)| keep(value));
        self.index = index(&self.entries);
    }

    /// All entries, in the order of their first use.
    pub fn into_entries(self) -> Vec<(ThreadKey, T)> {
        self.entries
    }

    /// All entries, in the order of their first use.
    pub fn entries(&self) -> impl Iterator<Item = (ThreadKey, &T)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }
}

fn index<T>(entries: &[(ThreadKey, T)]) -> ThreadIndex {
    ThreadIndex::of(entries.iter().map(|(key, _)| *key))
}

/// Thread ids are small numbers that no adversary controls, so a slow hash is not needed: their
/// spread is enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

impl KeyHasher {
    /// The hash of a key for [`NumberIndex`](crate::NumberIndex).
    #[inline]
    pub fn hash_of<K: Hash>(key: &K) -> u64 {
        BuildHasherDefault::<KeyHasher>::default().hash_one(key)
    }
}

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u64(u64::from(byte)));
    }
    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_i32(&mut self, value: i32) {
        self.write_u64(u64::from(value as u32));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(29) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
