//! Hash maps with attributes as keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::attribute::Attribute;

/// A hash map with attributes as keys.
pub(crate) type ByAttribute<V> = HashMap<Attribute, V, BuildHasherDefault<BitsHasher>>;

/// 2^64 divided by the golden ratio: odd, and about half of its bits are set without a pattern.
pub(crate) const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Attributes differ in few bits; the hash spreads them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BitsHasher(u64);

impl Hasher for BitsHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u64(u64::from(byte)));
    }
    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(SPREAD);
        self.0 = product ^ product >> 32;
    }
}

/// The entries in the order of attributes.
pub(crate) fn sorted(values: &ByAttribute<u64>) -> Vec<(Attribute, u64)> {
    let mut sorted: Vec<_> = values
        .iter()
        .map(|(attribute, code)| (*attribute, *code))
        .collect();
    sorted.sort_unstable_by_key(|entry| entry.0);
    sorted
}
