//! Rules by address, shared by all threads without a lock.
//!
//! A slot is two words, the rule and the address xor the rule: words of two writers that were mixed give an address
//! that nobody asks for, short of a chance of 2^-64 (Hyatt and Mann, "A lock-less transposition table
//! implementation for parallel search", 2002).

use core::sync::atomic::{AtomicU64, Ordering};

use crate::rule::Rule;

const SLOTS: usize = 4096;

pub(crate) struct Cache {
    slots: [[AtomicU64; 2]; SLOTS],
}

/// The address with the generation of the modules: rules of modules that went away are not found.
fn key(address: u64, generation: u16) -> u64 {
    address ^ u64::from(generation) << 48
}

impl Cache {
    pub(crate) const fn new() -> Cache {
        Cache {
            slots: [const { [const { AtomicU64::new(0) }; 2] }; SLOTS],
        }
    }

    #[inline]
    fn slot(&self, address: u64) -> Option<&[AtomicU64; 2]> {
        let hash = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS.trailing_zeros());
        self.slots.get(hash as usize)
    }

    #[inline]
    pub(crate) fn get(&self, address: u64, generation: u16) -> Option<Rule> {
        let [rule, check] = self.slot(address)?;
        let rule = rule.load(Ordering::Relaxed);
        let found = check.load(Ordering::Relaxed) ^ rule == key(address, generation) && rule != 0;
        found.then_some(Rule(rule))
    }

    pub(crate) fn put(&self, address: u64, generation: u16, rule: Rule) {
        if let Some([place, check]) = self.slot(address) {
            place.store(rule.0, Ordering::Relaxed);
            check.store(rule.0 ^ key(address, generation), Ordering::Relaxed);
        }
    }

    pub(crate) fn clear(&self) {
        for [rule, _] in &self.slots {
            rule.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_put_for_that_address_and_generation_only() {
        static CACHE: Cache = Cache::new();
        assert_eq!(CACHE.get(0, 0), None);
        CACHE.put(0x7F00_1234, 3, Rule::FRAME_POINTER);
        assert_eq!(CACHE.get(0x7F00_1234, 3), Some(Rule::FRAME_POINTER));
        assert_eq!(CACHE.get(0x7F00_1234, 4), None);
        assert_eq!(CACHE.get(0x7F00_1235, 3), None);
        // Halves of two writers.
        let [rule, _] = CACHE.slot(0x7F00_1234).unwrap();
        rule.store(Rule::SIGNAL.0, Ordering::Relaxed);
        assert_eq!(CACHE.get(0x7F00_1234, 3), None);
    }
}
