//! Pseudo-random numbers that are the same for a seed on all machines: SplitMix64.

/// Generator state.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Creates a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Rng { state: seed }
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The remainder's bias does not matter here.
        if limit == 0 {
            0
        } else {
            self.next_u64() % limit
        }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A random item.
    ///
    /// # Panics
    /// If there are no items.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }

    /// A number below `2^bits` of random magnitude: small numbers are as likely as large ones.
    pub fn sized(&mut self, bits: u32) -> u64 {
        let bits = self.between(0, u64::from(bits.min(64))) as u32;
        if bits == 0 {
            0
        } else {
            self.next_u64() >> (64 - bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sequence() {
        let mut rng = Rng::new(1234567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn limits() {
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            assert!(rng.below(7) < 7);
            assert!((3..=5).contains(&rng.between(3, 5)));
            assert!(rng.sized(8) < 256);
        }
    }
}
