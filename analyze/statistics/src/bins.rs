//! Histograms of equal steps between known bounds.

use serde::{Deserialize, Serialize};
pub use tracebraid_follow::Ranges;

/// Number of steps.
pub const BINS: usize = 20;

/// Number of values in each step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    counts: [u64; BINS],
}

/// A step of a histogram: `from` is inclusive, `to` is exclusive except in the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Least value.
    pub from: f64,
    /// End of the step.
    pub to: f64,
    /// Number of values.
    pub count: u64,
}

impl Bins {
    /// Adds a value, which must be within the bounds.
    #[inline]
    pub fn add(&mut self, (min, max): (u64, u64), value: u64) {
        // Computed in integers, to be independent of rounding.
        let range = u128::from(max.saturating_sub(min)).max(1);
        let above = u128::from(value.saturating_sub(min));
        let bin = (above * BINS as u128 / range).min(BINS as u128 - 1);
        self.counts[bin as usize] += 1;
    }

    /// Adds the values of another histogram with the same bounds.
    pub fn merge(&mut self, other: &Bins) {
        let counts = self.counts.iter_mut().zip(&other.counts);
        counts.for_each(|(own, other)| *own += other);
    }

    /// All steps in ascending order, including empty ones.
    pub fn bins(&self, (min, max): (u64, u64)) -> impl Iterator<Item = Bin> + '_ {
        let step = max.saturating_sub(min) as f64 / BINS as f64;
        self.counts.iter().enumerate().map(move |(at, &count)| Bin {
            from: min as f64 + at as f64 * step,
            to: min as f64 + (at + 1) as f64 * step,
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_belong_to_the_step_above_but_for_the_last() {
        let mut bins = Bins::default();
        let bounds = (100, 300);
        [100, 109, 110, 299, 300]
            .iter()
            .for_each(|&value| bins.add(bounds, value));
        let counts: Vec<_> = bins.bins(bounds).map(|bin| bin.count).collect();
        assert_eq!((counts[0], counts[1], counts[19]), (2, 1, 2));
        let mut one = Bins::default();
        one.add((7, 7), 7);
        assert_eq!(one.bins((7, 7)).map(|bin| bin.count).sum::<u64>(), 1);
        one.add((0, u64::MAX), u64::MAX);
        assert_eq!(one.counts[BINS - 1], 1);
    }
}
