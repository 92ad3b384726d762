//! Histograms whose bounds are powers of two.

use crate::Sketch;

/// Number of buckets: 0, and each number of significant bits of a value.
const BUCKETS: usize = 65;

/// Number of values between each power of two and the next.
///
/// A sketch counts each value between two such bounds in a bucket between them, so that these
/// histograms are exact without a second pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Powers {
    counts: [u64; BUCKETS],
}

/// A bucket: `from` is inclusive, `to` is exclusive, except that 2⁶⁴ is written as `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerBin {
    /// Least value: 0 or a power of two.
    pub from: u64,
    /// End of the bucket.
    pub to: u64,
    /// Number of values.
    pub count: u64,
}

impl Default for Powers {
    fn default() -> Self {
        Powers {
            counts: [0; BUCKETS],
        }
    }
}

impl Powers {
    /// The values of a sketch.
    pub fn new(sketch: &Sketch) -> Powers {
        let mut powers = Powers::default();
        for (value, count) in sketch.middles() {
            powers.add_many(value, count);
        }
        powers
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// Adds the same value several times.
    pub fn add_many(&mut self, value: u64, count: u64) {
        self.counts[(u64::BITS - value.leading_zeros()) as usize] += count;
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Powers) {
        let counts = self.counts.iter_mut().zip(&other.counts);
        counts.for_each(|(own, other)| *own += other);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Buckets from the least to the greatest value, including empty ones between them; none
    /// without values.
    pub fn bins(&self) -> impl Iterator<Item = PowerBin> + '_ {
        self.bins_like(self)
    }

    /// Buckets from the least to the greatest value of another histogram, which has all values of
    /// this one.
    pub fn bins_like(&self, all: &Powers) -> impl Iterator<Item = PowerBin> + '_ {
        let first = all.counts.iter().position(|&count| count > 0);
        let last = all.counts.iter().rposition(|&count| count > 0);
        let bits = first.zip(last).map(|(first, last)| first..=last);
        bits.into_iter().flatten().map(|bits| PowerBin {
            from: bits.checked_sub(1).map_or(0, |bits| 1 << bits),
            to: 1u64.checked_shl(bits as u32).unwrap_or(u64::MAX),
            count: self.counts[bits],
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Powers {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&value| sketch.add(value));
        Powers::new(&sketch)
    }

    fn bins(powers: &Powers) -> Vec<(u64, u64, u64)> {
        powers
            .bins()
            .map(|bin| (bin.from, bin.to, bin.count))
            .collect()
    }

    #[test]
    fn buckets_reach_from_the_least_to_the_greatest_value() {
        assert_eq!(bins(&of(&[])), []);
        assert_eq!(bins(&of(&[0, 1, 1])), [(0, 1, 1), (1, 2, 2)]);
        let some = of(&[255, 256, 2047, 2048, 300]);
        let expected = [
            (128, 256, 1),
            (256, 512, 2),
            (512, 1024, 0),
            (1024, 2048, 1),
            (2048, 4096, 1),
        ];
        assert_eq!(bins(&some), expected);
        let last = (1 << 63, u64::MAX, 2);
        assert_eq!(bins(&of(&[u64::MAX, 1 << 63])), [last]);
        let all: Vec<u64> = some
            .bins_like(&of(&[64, 5000]))
            .map(|bin| bin.from)
            .collect();
        assert_eq!(all, [64, 128, 256, 512, 1024, 2048, 4096]);
    }

    proptest! {
        #[test]
        fn counts_are_exact(
            values in prop::collection::vec((0u32..64).prop_flat_map(|bits| 0..=u64::MAX >> bits), 0..200),
        ) {
            let powers = of(&values);
            prop_assert_eq!(powers.count(), values.len() as u64);
            for bin in powers.bins() {
                let is_below = |value: u64| value < bin.to || bin.to == u64::MAX;
                let is_within = |value: &&u64| bin.from <= **value && is_below(**value);
                let count = values.iter().filter(is_within).count() as u64;
                prop_assert_eq!(bin.count, count, "{:?}", bin);
            }
            let mut added = Powers::default();
            values.iter().for_each(|&value| added.add(value));
            prop_assert_eq!(added, powers);
        }
    }
}
