//! Positions of threads in a table.
//!
//! Reports look up a thread for almost every event record, and most lookups succeed. A lookup in a
//! `HashMap` takes 63 instructions; if the slots contain the keys, one load and one comparison
//! suffice.

use crate::people::ThreadKey;

/// Positions by thread: open addressing with linear probing, at most half full.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadIndex {
    /// The length is 0 or a power of two.
    slots: Vec<Slot>,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: ThreadKey,
    /// [`FREE`] in an empty slot.
    place: u32,
}

const FREE: u32 = u32::MAX;
const FREE_SLOT: Slot = Slot {
    key: ThreadKey { trace: 0, tid: 0 },
    place: FREE,
};

/// Number of slots of the smallest nonempty index.
const LEAST: usize = 16;

impl ThreadIndex {
    /// Index of threads in the order of their positions. If a thread occurs twice, its last
    /// position is used.
    pub(crate) fn of(keys: impl ExactSizeIterator<Item = ThreadKey>) -> ThreadIndex {
        let mut index = ThreadIndex::default();
        index.resize(keys.len());
        for (key, place) in keys.zip(0..) {
            index.insert(key, place);
        }
        index
    }

    /// Number of threads.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Position of a thread.
    #[inline]
    pub(crate) fn get(&self, key: ThreadKey) -> Option<u32> {
        let mut at = hash(key);
        loop {
            let slot = self.slots.get(at & self.slots.len().wrapping_sub(1))?;
            if slot.key == key && slot.place != FREE {
                return Some(slot.place);
            }
            if slot.place == FREE {
                return None;
            }
            at = at.wrapping_add(1);
        }
    }

    /// Sets the position of a thread, which must be less than `u32::MAX`.
    pub(crate) fn insert(&mut self, key: ThreadKey, place: u32) {
        if self.length >= self.slots.len() / 2 {
            self.resize(self.length + 1);
        }
        self.put(Slot { key, place });
    }

    fn put(&mut self, new: Slot) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash(new.key);
        while let Some(slot) = self.slots.get_mut(at & mask) {
            if slot.place == FREE || slot.key == new.key {
                self.length += usize::from(slot.place == FREE);
                *slot = new;
                return;
            }
            at = at.wrapping_add(1);
        }
    }

    /// Allocates slots for `threads` threads and reinserts all entries.
    fn resize(&mut self, threads: usize) {
        let slots = (threads * 2).next_power_of_two().max(LEAST);
        let old = std::mem::replace(&mut self.slots, vec![FREE_SLOT; slots]);
        self.length = 0;
        for slot in old.into_iter().filter(|slot| slot.place != FREE) {
            self.put(slot);
        }
    }
}

/// Multiplicative hash: the upper half of the product depends on all bits of the key, and spreads
/// consecutive ids. Crafted ids can collide; a keyed hash would slow down every lookup.
#[inline]
fn hash(key: ThreadKey) -> usize {
    let key = u64::from(key.trace) << 32 | u64::from(key.tid as u32);
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn an_index_is_as_a_map() {
        let mut index = ThreadIndex::default();
        let mut map = HashMap::new();
        for step in 0..5_000u32 {
            // Recurring threads of two traces, with ids that differ only in high bits.
            let tid = (step.wrapping_mul(2_654_435_761) >> 20) as i32 * 65_536;
            let key = ThreadKey {
                trace: step % 2,
                tid,
            };
            assert_eq!(index.get(key), map.get(&key).copied());
            index.insert(key, step);
            map.insert(key, step);
            assert_eq!(index.len(), map.len());
        }
        for (key, place) in map {
            assert_eq!(index.get(key), Some(place));
        }
    }

    #[test]
    fn the_last_place_of_a_thread_counts() {
        let keys = [5, 6, 5].map(|tid| ThreadKey { trace: 0, tid });
        let index = ThreadIndex::of(keys.into_iter());
        assert_eq!((index.len(), index.get(keys[0])), (2, Some(2)));
        assert_eq!(index.get(keys[0].with(0)), None);
    }
}
