//! Index of numbered keys that are stored elsewhere.
//!
//! A `HashMap` from keys to numbers would store each key a second time, and would hash all keys
//! again whenever it grows. A slot with 32 bits of the hash suffices: keys are compared only if
//! these bits are equal.

/// Numbers by the hash of their keys: open addressing with linear probing, at most half full.
#[derive(Clone, Debug, Default)]
pub struct NumberIndex {
    /// The length is 0 or a power of two.
    slots: Vec<Slot>,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    /// [`FREE`] in an empty slot.
    number: u32,
}

const FREE: u32 = u32::MAX;
const FREE_SLOT: Slot = Slot {
    hash: 0,
    number: FREE,
};

/// Number of slots of the smallest nonempty index.
const LEAST: usize = 8;

impl NumberIndex {
    /// Number of entries.
    #[inline]
    pub fn count(&self) -> usize {
        self.length
    }

    /// The number that was inserted with this hash and for which `is_key` is true.
    #[inline]
    pub fn find(&self, hash: u64, is_key: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = shortened(hash);
        let mut at = hash as usize;
        loop {
            let slot = self.slots.get(at & self.slots.len().wrapping_sub(1))?;
            if slot.number == FREE {
                return None;
            }
            if slot.hash == hash && is_key(slot.number) {
                return Some(slot.number);
            }
            at = at.wrapping_add(1);
        }
    }

    /// Adds the number of a new key; it must be less than `u32::MAX`.
    pub fn insert(&mut self, hash: u64, number: u32) {
        if self.length >= self.slots.len() / 2 {
            self.grow();
        }
        let hash = shortened(hash);
        self.put(Slot { hash, number });
        self.length += 1;
    }

    /// Discards all numbers.
    pub fn clear(&mut self) {
        *self = NumberIndex::default();
    }

    fn put(&mut self, new: Slot) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = new.hash as usize;
        while let Some(slot) = self.slots.get_mut(at & mask) {
            if slot.number == FREE {
                *slot = new;
                return;
            }
            at = at.wrapping_add(1);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(LEAST);
        let old = std::mem::replace(&mut self.slots, vec![FREE_SLOT; slots]);
        for slot in old.into_iter().filter(|slot| slot.number != FREE) {
            self.put(slot);
        }
    }
}

/// 32 bits that depend on all bits of a hash. Keys that differ only in a port number have hashes
/// with equal low bits, for which linear probing would visit all of their slots.
#[inline]
fn shortened(hash: u64) -> u32 {
    let product = u128::from(hash) * 0x9E37_79B9_7F4A_7C15;
    (product as u64 ^ (product >> 64) as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_are_told_apart_by_their_keys() {
        let mut index = NumberIndex::default();
        let keys: Vec<u64> = (0..1_000).map(|key| key * 7).collect();
        let hash = |key: u64| key % 13;
        for (number, &key) in (0..).zip(&keys) {
            let is_key = |at: u32| keys[at as usize] == key;
            assert_eq!(index.find(hash(key), is_key), None);
            index.insert(hash(key), number);
        }
        for (number, &key) in (0..).zip(&keys) {
            let is_key = |at: u32| keys[at as usize] == key;
            assert_eq!(index.find(hash(key), is_key), Some(number));
        }
        assert_eq!(index.count(), keys.len());
    }

    #[test]
    fn slots_depend_on_all_bits_of_a_hash() {
        for shift in 0..53 {
            let slots = (0..2_048u64).map(|bits| shortened(bits << shift) % 4_096);
            let slots: std::collections::HashSet<u32> = slots.collect();
            assert!(slots.len() > 1_200, "{shift}: {}", slots.len());
        }
    }
}
