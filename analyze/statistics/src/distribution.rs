//! A distribution: exact sums and a sketch.

use serde::{Deserialize, Serialize};

use crate::{Powers, Sketch, Summary};

/// Distribution of values: number, sum, minimum, maximum and deviation are exact; the relative
/// error of quantiles is at most 1/128.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    summary: Summary,
    sketch: Sketch,
}

impl Distribution {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.summary.add(value);
        self.sketch.add(value);
    }

    /// Adds a value to the exact part only, if no quantiles are needed.
    #[inline]
    pub fn add_exactly(&mut self, value: u64) {
        self.summary.add(value);
    }

    /// Adds the values of another distribution.
    pub fn merge(&mut self, other: &Distribution) {
        self.summary.merge(&other.summary);
        self.sketch.merge(&other.sketch);
    }

    /// The exact part.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Histogram of the values, but for those added to the exact part only.
    pub fn powers(&self) -> Powers {
        Powers::new(&self.sketch)
    }

    /// The value that `thousandths` thousandths of the values do not exceed, limited to the minimum
    /// and maximum of the values. `None` without values.
    pub fn quantile(&self, thousandths: u64) -> Option<u64> {
        let [quantile] = self.quantiles([thousandths]);
        quantile
    }

    /// [`Distribution::quantile`] for several thousandths, in ascending order, in one pass.
    pub fn quantiles<const N: usize>(&self, thousandths: [u64; N]) -> [Option<u64>; N] {
        let (min, max) = (self.summary.min(), self.summary.max());
        let within = |value: Option<u64>| Some(value?.clamp(min?, max?));
        self.sketch.quantiles(thousandths).map(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_stay_among_the_values() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.quantile(500), None);
        distribution.add(1_000_001);
        assert_eq!(distribution.quantile(0), Some(1_000_001));
        assert_eq!(distribution.quantile(1000), Some(1_000_001));
        (0..1000).for_each(|value| distribution.add(value * 31));
        let at = [1, 500, 900, 990, 999, 1000];
        assert_eq!(
            distribution.quantiles(at),
            at.map(|at| distribution.quantile(at))
        );
        let mut both = distribution.clone();
        both.merge(&distribution);
        assert_eq!(both.summary().count(), 2 * 1001);
    }
}
