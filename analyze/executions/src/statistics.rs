//! Significance of the difference between two groups of values.
//!
//! Probabilities are those of random groups ([`crate::permutation`]). The confidence interval is
//! the wider of Welch's, which allows for groups with different spread, and Student's, which allows
//! for small groups that do not show their spread. The effect size is Hedges' g.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::factorial::ln_binomial;

use crate::multiple_testing::least_chance;
use crate::permutation::{Pool, Runs, Tail};

/// Distribution of the values of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Number of executions of the group.
    pub executions: u64,
    /// Number of executions with a value, or of executions that entered the context.
    pub present: u64,
    /// Mean. Executions that did not enter a context count as a time of 0.
    pub mean: f64,
    /// Sample standard deviation.
    pub deviation: f64,
}

/// Comparison of two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// Difference of the means: second group minus first.
    pub more: f64,
    /// 95 % confidence interval of the difference; `None` if a group has fewer than two executions.
    pub interval: Option<(f64, f64)>,
    /// Effect size relative to the spread of both groups: Hedges' g. Infinite without spread.
    pub effect: f64,
    /// Probability of such a difference if the groups do not differ; 1 if it cannot be determined.
    /// In lists it is corrected for the length of the list.
    pub chance: f64,
}

impl Spread {
    /// Distribution of numbers. NaN stands for executions without a value and is left out.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        // Welford, "Note on a method for calculating corrected sums of squares and products"
        // (1962).
        let (mut executions, mut mean, mut squares) = (0u64, 0.0, 0.0);
        for value in values.filter(|value| !value.is_nan()) {
            executions += 1;
            let from_mean = value - mean;
            mean += from_mean / executions as f64;
            squares += from_mean * (value - mean);
        }
        let deviation = match executions {
            0 | 1 => 0.0,
            _ => (squares / (executions as f64 - 1.0)).sqrt(),
        };
        Spread {
            executions,
            present: executions,
            mean,
            deviation,
        }
    }
}

/// Comparison of two groups whose difference has the probability `chance`.
pub(crate) fn test(groups: [Spread; 2], chance: f64) -> Test {
    let more = groups[1].mean - groups[0].mean;
    Test {
        more,
        interval: interval(groups),
        effect: effect(more, groups),
        chance,
    }
}

/// One-sided probability of the second group's excess over the first by chance: by means, or by
/// ranks (Mann and Whitney), which a few outliers do not change. Means must differ both from those
/// of random groups and relative to the spread of each group (Welch's test): only the first is
/// valid for a small group, only the second for groups with the same mean and different spread.
pub fn chance_of_more(first: &[f64], second: &[f64]) -> f64 {
    let spreads = [first, second].map(|values| Spread::of(values.iter().copied()));
    let compared = numbers([&mut first.to_vec(), &mut second.to_vec()]);
    let by_spread = match Errors::new(spreads) {
        Some(errors) => errors.welch_of_more(),
        None => 1.0,
    };
    let by_mean = compared.by_mean.of_more().max(by_spread);
    let least = least_chance([0, 1].map(|at| spreads[at].executions), compared.differing);
    surer(by_mean, compared.by_ranks.of_more()).max(least / 2.0)
}

/// Tests whether the times of two groups in a context differ. Executions that did not enter it have
/// the time 0.
pub(crate) fn test_times(groups: [Spread; 2], pool: &Pool, sum: f64) -> Test {
    let executions = groups.map(|group| group.executions);
    // A single execution allows no inference.
    let chance = match executions.iter().all(|&count| count > 1) {
        true => pool.tail(executions[1], sum).two_sided(),
        false => 1.0,
    };
    test(groups, chance.max(least_of_times(groups)))
}

/// The lowest probability that [`test_times`] can give.
pub(crate) fn least_of_times(groups: [Spread; 2]) -> f64 {
    least_chance(
        groups.map(|group| group.executions),
        groups[0].present + groups[1].present,
    )
}

/// A number rounded to six digits: terminal and page sum in different orders, and must rank equal
/// values equally.
pub(crate) fn coarse(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// Probability of the more significant of two tests, corrected for the two tests.
pub(crate) fn surer(one: f64, other: f64) -> f64 {
    (2.0 * one.min(other)).min(1.0)
}

/// Two-sided probability that the shares of present executions in both groups differ as much, if
/// presence does not depend on the group.
pub(crate) fn presence(present: [u64; 2], executions: [u64; 2]) -> f64 {
    let [all, have, drawn, found] = [
        executions[0] + executions[1],
        present[0] + present[1],
        executions[1],
        present[1],
    ];
    if executions.contains(&0) || present[0] > executions[0] || present[1] > executions[1] {
        return 1.0;
    }
    let first =
        ln_binomial(have, found) + ln_binomial(all - have, drawn - found) - ln_binomial(all, drawn);
    let is_many = found as f64 * all as f64 >= have as f64 * drawn as f64;
    // Sums the probabilities of more extreme counts until they are negligible.
    let (mut term, mut sum, mut at) = (first.exp(), 0.0, found);
    while term > sum * 1e-9 {
        sum += term;
        let absent = (all - have + at) as f64 - drawn as f64;
        let [have, drawn, place] = [have, drawn, at].map(|number| number as f64);
        match is_many {
            true => {
                term *= (have - place) * (drawn - place) / ((place + 1.0) * (absent + 1.0));
                at += 1;
            }
            false if at == 0 => break,
            false => {
                term *= place * absent / ((have - place + 1.0) * (drawn - place + 1.0));
                at -= 1;
            }
        }
    }
    (2.0 * sum).min(1.0)
}

/// Two groups of numbers, compared with all possible choices of the second group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// By the sum of the numbers.
    pub(crate) by_mean: Tail,
    /// By the sum of their ranks: Mann and Whitney, "On a test of whether one of two random
    /// variables is stochastically larger than the other" (1947).
    pub(crate) by_ranks: Tail,
    /// Probability that a number of the second group is greater than one of the first, ties
    /// counting one half.
    pub(crate) higher: f64,
    /// Number of values other than the most frequent one.
    pub(crate) differing: u64,
}

/// Sorts numbers, and removes NaN.
fn sorted(values: &mut [f64]) -> &[f64] {
    values.sort_by(f64::total_cmp);
    let is_number = |value: &f64| !value.is_nan();
    let from = values.iter().position(is_number).unwrap_or(values.len());
    let until = values
        .iter()
        .rposition(is_number)
        .map_or(from, |last| last + 1);
    values.get(from..until).unwrap_or_default()
}

/// Sorts and compares two groups of numbers; NaN is left out.
pub(crate) fn numbers(groups: [&mut [f64]; 2]) -> Numbers {
    let [first, second] = groups.map(sorted);
    let counts = [first.len() as u64, second.len() as u64];
    let all = counts[0] + counts[1];
    let (mut values, mut ranks) = (Runs::new(all), Runs::new(all));
    let (mut sum, mut rank_sum, mut frequent, mut placed) = (0.0, 0.0, 0, 0);
    let mut at = [0, 0];
    while let Some(value) = least_of([first.get(at[0]), second.get(at[1])]) {
        let equal = |list: &[f64], from: usize| {
            let rest = list.get(from..).unwrap_or_default();
            rest.iter().take_while(|other| **other == value).count()
        };
        let found = [equal(first, at[0]), equal(second, at[1])];
        let count = (found[0] + found[1]) as u64;
        let rank = placed as f64 + (count as f64 + 1.0) / 2.0;
        values.push(value, count);
        ranks.push(rank, count);
        sum += value * found[1] as f64;
        rank_sum += rank * found[1] as f64;
        frequent = frequent.max(count);
        placed += count;
        at = [at[0] + found[0], at[1] + found[1]];
    }
    let [one, other] = counts.map(|count| count as f64);
    let above = rank_sum - other * (other + 1.0) / 2.0;
    Numbers {
        by_mean: values.pool().tail(counts[1], sum),
        by_ranks: ranks.pool().tail(counts[1], rank_sum),
        higher: if counts.contains(&0) {
            0.5
        } else {
            above / (one * other)
        },
        differing: all - frequent,
    }
}

fn least_of(next: [Option<&f64>; 2]) -> Option<f64> {
    match next {
        [Some(one), Some(other)] => Some(one.min(*other)),
        [one, other] => one.or(other).copied(),
    }
}

/// Errors of the difference of two means.
struct Errors {
    more: f64,
    /// Standard errors and degrees of freedom: Welch's, and Student's.
    welch: (f64, f64),
    student: (f64, f64),
}

impl Errors {
    /// `None` if a group has fewer than two executions, or if numbers or their squares are
    /// infinite.
    fn new(groups: [Spread; 2]) -> Option<Errors> {
        let more = groups[1].mean - groups[0].mean;
        let counts = groups.map(|group| group.executions as f64);
        let variances = groups.map(|group| group.deviation.powi(2));
        let parts = [0, 1].map(|at| variances[at] / counts[at]);
        let welch = parts[0] + parts[1];
        let of_group = |at: usize| parts[at].powi(2) / (counts[at] - 1.0);
        let freedom = counts[0] + counts[1] - 2.0;
        let common = [0, 1].map(|at: usize| variances[at] * (counts[at] - 1.0) / freedom);
        let student = (common[0] + common[1]) * (1.0 / counts[0] + 1.0 / counts[1]);
        let is_known = groups.iter().all(|group| group.executions > 1);
        (is_known && more.is_finite() && welch.is_finite()).then(|| Errors {
            more,
            welch: (
                welch.sqrt(),
                (welch.powi(2) / (of_group(0) + of_group(1))).max(1.0),
            ),
            student: (student.sqrt(), freedom),
        })
    }

    /// The upper tail of Welch's test: p of a difference at least this large by chance.
    fn welch_of_more(&self) -> f64 {
        let (error, freedom) = self.welch;
        if error == 0.0 {
            return if self.more > 0.0 { 0.0 } else { 1.0 };
        }
        StudentsT::new(0.0, 1.0, freedom)
            .map_or(1.0, |distribution| distribution.cdf(-self.more / error))
    }
}

/// 95 % confidence interval of the difference of the means.
fn interval(groups: [Spread; 2]) -> Option<(f64, f64)> {
    let errors = Errors::new(groups)?;
    let reach = |(error, freedom): (f64, f64)| {
        let distribution = StudentsT::new(0.0, 1.0, freedom.min(MOST_FREEDOM)).ok()?;
        Some(distribution.inverse_cdf(0.975) * error)
    };
    let reach = match errors.welch.0 == 0.0 && errors.student.0 == 0.0 {
        true => 0.0,
        false => reach(errors.welch)?.max(reach(errors.student)?),
    };
    Some((errors.more - reach, errors.more + reach))
}

/// Student's distribution is normal long before this. Degrees of freedom are infinite if one
/// variance is too small.
const MOST_FREEDOM: f64 = 1e15;

/// Hedges' g: the difference relative to the pooled spread, reduced for small groups.
fn effect(more: f64, groups: [Spread; 2]) -> f64 {
    let freedoms = groups.map(|group| group.executions.saturating_sub(1) as f64);
    let freedom = freedoms[0] + freedoms[1];
    if freedom < 1.0 || more == 0.0 {
        return 0.0;
    }
    let squares = [0, 1].map(|at| groups[at].deviation.powi(2) * freedoms[at]);
    let spread = ((squares[0] + squares[1]) / freedom).sqrt();
    if !more.is_finite() || !spread.is_finite() {
        return 0.0;
    }
    let few = 1.0 - 3.0 / (4.0 * freedom - 1.0).max(3.0);
    more / spread * if freedom > 1.0 { few.max(0.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-6 * other.abs().max(1e-3)
    }

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied())
    }

    #[test]
    fn infinite_numbers_are_told_by_ranks_alone() {
        let low: Vec<f64> = (0..20).map(f64::from).collect();
        for high in [f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            let mut other = low.clone();
            other.iter_mut().take(3).for_each(|value| *value = high);
            let spreads = [&low, &other].map(|values| spread(values));
            for groups in [spreads, [spreads[1], spreads[0]], [spreads[1], spreads[1]]] {
                let found = test(groups, 1.0);
                assert_eq!(
                    (found.interval, found.effect),
                    (None, 0.0),
                    "{high}: {found:?}"
                );
            }
            assert_eq!(
                numbers([&mut low.clone(), &mut other]).by_mean.chance,
                1.0,
                "{high}"
            );
        }
        let infinite = [f64::INFINITY; 20];
        assert!(chance_of_more(&low, &infinite) < 1e-6);
        assert_eq!(chance_of_more(&infinite, &low), 1.0);
    }

    #[test]
    fn intervals_are_the_wider_of_both_tests() {
        let one = [
            275.0, 210.0, 190.0, 236.0, 170.0, 179.0, 169.0, 201.0, 219.0, 226.0, 231.0, 196.0,
            190.0, 217.0, 214.0,
        ];
        let other = [
            271.0, 220.0, 208.0, 234.0, 234.0, 235.0, 258.0, 220.0, 248.0, 202.0, 219.0, 221.0,
            229.0, 300.0, 239.0,
        ];
        // Results of scipy 1.17 (`ttest_ind(...).confidence_interval()`): Welch's and Student's.
        let welch = [
            (
                (&one[..], &other[..]),
                (7.668882941149821, 47.664450392183554),
            ),
            (
                (&[3.0, 5.0, 4.0][..], &[10.0, 30.0, 20.0, 50.0][..]),
                (-3.5984413954914274, 50.59844139549143),
            ),
        ];
        for ((one, other), (low, high)) in welch {
            let interval = test([spread(one), spread(other)], 1.0).interval.unwrap();
            let expected = interval.0 <= low + 1e-6 && interval.1 >= high - 1e-6;
            assert!(
                expected && near(interval.0 + interval.1, low + high),
                "{interval:?}"
            );
        }
        // A group without the rare value has no variance: Student's standard error is 40 times
        // Welch's.
        let many: Vec<f64> = (0..1780)
            .map(|at| if at % 89 == 0 { 100.0 } else { 0.0 })
            .collect();
        let none = [0.0; 20];
        let (low, high) = test([spread(&none), spread(&many)], 1.0).interval.unwrap();
        let reach = 1.961_287
            * 10.535_8
            * (1779.0f64 / 1798.0).sqrt()
            * (1.0f64 / 20.0 + 1.0 / 1780.0).sqrt();
        assert!(
            (high - low - 2.0 * reach).abs() < 1e-2,
            "{low} {high} {reach}"
        );
        assert_eq!(
            test([spread(&[1.0; 3]), spread(&[3.0; 3])], 1.0).interval,
            Some((2.0, 2.0))
        );
        assert_eq!(
            test([spread(&[1.0]), spread(&[3.0; 3])], 1.0).interval,
            None
        );
    }

    #[test]
    fn who_was_there_tells_much_of_few() {
        // Twice the lesser tail, counted in whole numbers: 2 C(152, 2) / C(155, 5), and so on.
        for (present, executions, chance) in [
            ([0, 3], [150, 5], 3.285_771_8e-5),
            ([40, 9], [100, 30], 0.440_187_66),
            ([0, 5], [150, 5], 2.863_168_2e-9),
        ] {
            let found = presence(present, executions);
            assert!((found / chance - 1.0).abs() < 1e-3, "{present:?}: {found}");
        }
        assert_eq!(presence([7, 3], [7, 3]), 1.0);
        assert_eq!(presence([0, 0], [7, 3]), 1.0);
        assert!(presence([1_000_000, 499_000], [1_000_000, 500_000]) < 1e-300);
    }

    #[test]
    fn ranks_tell_groups_apart_whatever_their_tails() {
        let mut few: Vec<f64> = (0..60).map(f64::from).collect();
        let mut slow: Vec<f64> = (0..40)
            .map(|at| 100.0 + f64::from(at))
            .chain([1e12])
            .collect();
        let found = numbers([&mut few, &mut slow]);
        assert!(
            found.by_ranks.chance < 1e-12 && found.higher == 1.0,
            "{found:?}"
        );
        // U is 48 of 64. In the normal approximation of Mann and Whitney, the two-sided probability
        // is 0.102.
        let mut one = [1.0, 2.0, 2.0, 3.0, 5.0, 8.0, 9.0, 4.0];
        let mut other = [2.0, 6.0, 7.0, 8.0, 10.0, 12.0, 3.0, 11.0];
        let found = numbers([&mut one, &mut other]);
        let ratio = found.by_ranks.two_sided() / 0.102_037_506;
        assert!((0.9..1.5).contains(&ratio), "{found:?} {ratio}");
        assert!(
            (found.higher - 0.75).abs() < 1e-12 && found.differing == 13,
            "{found:?}"
        );
        let found = numbers([
            &mut [f64::NAN, 1.0, -f64::NAN],
            &mut [-f64::NAN, 3.0, 2.0, f64::NAN],
        ]);
        assert_eq!((found.higher, found.differing), (1.0, 2));
        let found = numbers([&mut [], &mut [2.0]]);
        assert_eq!((found.by_ranks.chance, found.higher), (1.0, 0.5));
    }

    #[test]
    fn more_must_be_more_beside_the_spread_of_each_group() {
        let many: Vec<f64> = (0..500).map(|at| f64::from(at % 10)).collect();
        let more: Vec<f64> = (0..30).map(|at| f64::from(at % 10) + 6.0).collect();
        assert!(chance_of_more(&many, &more) < 1e-6);
        assert_eq!(chance_of_more(&more, &many), 1.0);
        // A single outlier increases the mean, but proves nothing.
        let mut one = vec![4.0; 20];
        one[3] = 1e6;
        assert!(chance_of_more(&many, &one) > 0.1);
        // A group without a value that few executions of the other have is no evidence either.
        let rare: Vec<f64> = (0..1780)
            .map(|at| if at % 89 == 0 { 100.0 } else { 0.0 })
            .collect();
        assert!(chance_of_more(&[0.0; 20], &rare) > 0.2);
        // The probability is at least that of a single choice of the group.
        assert!(chance_of_more(&[1.0, 2.0, 3.0], &[7.0, 8.0, 9.0]) >= 0.05);
    }
}
