//! A mergeable sketch of a distribution.

use serde::{Deserialize, Serialize};

/// Bits of a value that a bucket keeps below its highest one.
const BITS: u32 = 6;

/// How often values of about each size occurred.
///
/// Values below 128 have a bucket each; greater ones share it with those that have the same highest
/// seven bits (the log-linear histogram of HdrHistogram). So a quantile errs by at most a 128th of
/// itself, at most 3,776 buckets exist, and the sketch of merged sketches is that of all values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// Buckets that are not empty, ascending.
    buckets: Vec<u16>,
    /// Values in each.
    counts: Vec<u64>,
}

/// The bucket of a value.
#[inline]
fn bucket(value: u64) -> u16 {
    let shift = (u64::BITS - 1 - BITS).saturating_sub((value | 1).leading_zeros());
    ((shift << BITS) + (value >> shift) as u32) as u16
}

/// The middle of a bucket, rounded down.
fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = (bucket - (shift << BITS)) << shift;
    low + ((1 << shift) >> 1)
}

impl Sketch {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        match self.buckets.binary_search(&bucket) {
            Ok(at) => self.counts[at] += 1,
            Err(at) => {
                self.buckets.insert(at, bucket);
                self.counts.insert(at, 1);
            }
        }
    }

    /// Adds all values of another one.
    pub fn merge(&mut self, other: &Sketch) {
        if self.buckets.is_empty() {
            self.clone_from(other);
            return;
        }
        let before = std::mem::take(self);
        let mut own = before.iter().peekable();
        let mut others = other.iter().peekable();
        loop {
            let next = match (own.peek(), others.peek()) {
                (Some(a), Some(b)) if a.0 == b.0 => {
                    let sum = (a.0, a.1 + b.1);
                    own.next();
                    others.next();
                    Some(sum)
                }
                (Some(a), Some(b)) if a.0 < b.0 => own.next(),
                (Some(_), None) => own.next(),
                (_, Some(_)) => others.next(),
                (None, None) => None,
            };
            let Some((bucket, count)) = next else { break };
            self.buckets.push(bucket);
            self.counts.push(count);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.buckets.iter().copied().zip(self.counts.iter().copied())
    }

    /// Values that were added.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The value that so many thousandths of the values do not exceed (the nearest rank), within a
    /// 128th of it; `None` without values.
    pub fn quantile(&self, thousandths: u64) -> Option<u64> {
        let count = u128::from(self.count());
        let rank = (count * u128::from(thousandths.min(1000))).div_ceil(1000).max(1);
        let mut passed = 0u128;
        self.iter()
            .find(|&(_, count)| {
                passed += u128::from(count);
                passed >= rank
            })
            .map(|(bucket, _)| middle(bucket))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(127), 127);
        assert_eq!(bucket(128), 128);
        assert_eq!(bucket(u64::MAX), 3775);
        let mut last = 0;
        for exponent in 0..64 {
            for value in [1u64 << exponent, (1u64 << exponent) + ((1u64 << exponent) >> 1)] {
                assert!(bucket(value) >= last);
                last = bucket(value);
                assert_eq!(bucket(middle(last)), last);
            }
        }
    }

    proptest! {
        #[test]
        fn quantiles_err_by_a_128th_at_most(
            mut values in prop::collection::vec((0u32..64).prop_flat_map(|bits| 0..=u64::MAX >> bits), 1..200),
            thousandths in 0u64..=1000,
        ) {
            let mut sketch = Sketch::default();
            values.iter().for_each(|&value| sketch.add(value));
            values.sort_unstable();
            let rank = (values.len() as u64 * thousandths).div_ceil(1000).max(1);
            let exact = values[rank as usize - 1];
            let found = sketch.quantile(thousandths).unwrap();
            prop_assert!(found.abs_diff(exact) <= exact / 128, "{found} for {exact}");
        }

        #[test]
        fn merging_is_adding_all(
            a in prop::collection::vec(any::<u64>(), 0..50),
            b in prop::collection::vec(0u64..1000, 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut sketch = Sketch::default();
                values.iter().for_each(|&value| sketch.add(value));
                sketch
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged.count(), (a.len() + b.len()) as u64);
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }
}
