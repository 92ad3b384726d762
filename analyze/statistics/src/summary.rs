//! Exact sums of values.

use serde::{Deserialize, Serialize};

/// Exact number, sum, minimum, maximum and deviation of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for Summary {
    fn default() -> Self {
        Summary {
            count: 0,
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Summary {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.squares = self
            .squares
            .saturating_add(u128::from(value) * u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the values of another summary.
    pub fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Minimum; `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Maximum; `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Sample standard deviation (n − 1 in the denominator); `None` with fewer than two values.
    pub fn deviation(&self) -> Option<f64> {
        let count = u128::from(self.count);
        if count < 2 {
            return None;
        }
        // n·Σx² − (Σx)² in integers, if it fits: the difference of two large floating-point numbers
        // would have few significant digits.
        let spread = count
            .checked_mul(self.squares)
            .zip(self.sum.checked_mul(self.sum))
            .map(|(a, b)| a.saturating_sub(b) as f64);
        let spread = spread.unwrap_or_else(|| {
            let (count, sum) = (count as f64, self.sum as f64);
            (count * self.squares as f64 - sum * sum).max(0.0)
        });
        Some((spread / (count as f64 * (count - 1) as f64)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Summary {
        let mut summary = Summary::default();
        values.iter().for_each(|&value| summary.add(value));
        summary
    }

    #[test]
    fn numbers_are_those_of_the_values() {
        let summary = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((summary.count(), summary.sum()), (8, 40));
        assert_eq!((summary.min(), summary.max()), (Some(2), Some(9)));
        assert_eq!(summary.mean(), Some(5.0));
        let deviation = summary.deviation().unwrap();
        assert!((deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn without_values_nothing_is_said() {
        let none = Summary::default();
        assert_eq!((none.min(), none.max(), none.mean()), (None, None, None));
        assert_eq!(of(&[3]).deviation(), None);
    }

    #[test]
    fn the_spread_of_times_far_from_zero_keeps_its_digits() {
        let base = 1_795_225_394_660_469_791;
        let deviation = of(&[base, base + 1, base + 2]).deviation().unwrap();
        assert!((deviation - 1.0).abs() < 1e-9, "{deviation}");
    }

    #[test]
    fn merging_is_adding_all() {
        let mut merged = of(&[1, 2]);
        merged.merge(&of(&[0, 100]));
        assert_eq!(merged, of(&[1, 2, 0, 100]));
    }
}
