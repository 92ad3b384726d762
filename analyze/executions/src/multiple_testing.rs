//! Correction of p-values for the number of tests.

/// The lowest two-sided probability that a test of two groups can give, if `differing` values
/// differ from the most frequent value: the probability that all these values are in the smaller
/// group, or of a single choice of that group.
pub(crate) fn least_chance(groups: [u64; 2], differing: u64) -> f64 {
    let all = groups[0].saturating_add(groups[1]) as f64;
    let few = groups[0].min(groups[1]);
    let mut chance = 2.0;
    for place in 0..few.min(differing) {
        chance *= (few - place) as f64 / (all - place as f64);
        if chance < 1e-30 {
            break;
        }
    }
    chance.min(1.0)
}

/// Corrects probabilities for the number of tests: the corrected probability bounds the probability
/// that any test gives so small a value by chance. A test counts only if it can give so small a
/// probability (Tarone, "A modified Bonferroni method for discrete data", 1990; Westfall and
/// Wolfinger, "Multiple tests with discrete distributions", 1997): a context that a single
/// execution has proves nothing, and costs the other tests nothing. Each probability comes with the
/// [least](least_chance) that its test can give.
pub(crate) fn correct<'t>(tests: impl Iterator<Item = (&'t mut f64, f64)>) {
    let tests: Vec<(&mut f64, f64)> = tests.collect();
    let mut least: Vec<f64> = tests.iter().map(|(_, least)| *least).collect();
    least.sort_by(f64::total_cmp);
    for (chance, _) in tests {
        *chance = corrected(*chance, &least);
    }
}

/// Tolerance for equal probabilities with different rounding.
const ROUNDED: f64 = 1.0 + 1e-9;

/// A probability, corrected for the tests that can give one as small; `least` is in ascending
/// order.
pub(crate) fn corrected(chance: f64, least: &[f64]) -> f64 {
    let count = least
        .partition_point(|least| *least <= chance * ROUNDED)
        .max(1);
    (chance * count as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_count_that_can_be_as_sure() {
        // One choice of 6 of 12.
        let least = least_chance([6, 6], 6);
        assert!((least - 2.0 / 924.0).abs() < 1e-12);
        assert_eq!(least_chance([6, 6], 1), 1.0);
        assert!(least_chance([100, 2000], 2000) < 1e-29);
        let mut chances = [0.01, 0.04, 0.5, 0.02];
        let least = [0.001, 0.01, 0.5, 0.02];
        correct(chances.iter_mut().zip(least));
        assert_eq!(chances, [0.02, 0.12, 1.0, 0.06]);
    }
}
