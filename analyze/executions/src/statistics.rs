//! How sure it is that two groups of values differ.
//!
//! Welch's test honours both variances and both sizes; a test of few values cannot be surer than that of all ways
//! to divide them into two groups, so it is held there. The interval is that of the same test. The effect is Hedges' g.
//! Where many things are tested, some differ by chance: [`correct`] accounts for that (Benjamini and Hochberg,
//! "Controlling the false discovery rate", 1995).

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::factorial::ln_binomial;

/// Values of a group's executions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many executions the group has.
    pub executions: u64,
    /// How many of them have one: were in the context.
    pub present: u64,
    /// Their mean; of times of those that were not there, too.
    pub mean: f64,
    /// Standard deviation (of a sample).
    pub deviation: f64,
}

/// Two groups beside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// How much more the second group has on average.
    pub more: f64,
    /// In which that lies with a probability of 95 %; none if a group has less than two executions.
    pub interval: Option<(f64, f64)>,
    /// How large that is beside the spread of both groups: Hedges' g. Infinite if there is no spread.
    pub effect: f64,
    /// How probable a difference like that would be if there were none; 1 if that cannot be told. In lists it is
    /// corrected for their lengths.
    pub chance: f64,
}

/// Sums of times, which are exact whatever the order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) present: u64,
    sum: u128,
    squares: u128,
}

impl Sums {
    pub(crate) fn add(&mut self, time: u64) {
        let time = u128::from(time);
        self.present += 1;
        self.sum += time;
        self.squares = self.squares.saturating_add(time * time);
    }

    pub(crate) fn spread(&self, executions: u64) -> Spread {
        let count = executions as f64;
        let mean = self.sum as f64 / count.max(1.0);
        // Exact as long as it can be: the difference of two numbers that are nearly the same.
        let deviations = self
            .squares
            .checked_mul(u128::from(executions))
            .zip(self.sum.checked_mul(self.sum))
            .map_or(0, |(all, square)| all.saturating_sub(square));
        let variance = match executions {
            0 | 1 => 0.0,
            _ => deviations as f64 / (count * (count - 1.0)),
        };
        Spread {
            executions,
            present: self.present,
            mean,
            deviation: variance.sqrt(),
        }
    }
}

impl Spread {
    /// Of numbers; those that are none count as executions that have none, and are left out.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        // Welford, "Note on a method for calculating corrected sums of squares and products" (1962).
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

/// Tests whether two groups differ.
pub fn test(groups: [Spread; 2]) -> Test {
    let [one, other] = groups;
    let more = other.mean - one.mean;
    let counts = groups.map(|group| group.executions as f64);
    let errors = [0, 1].map(|at| groups[at].deviation.powi(2) / counts[at].max(1.0));
    let error = (errors[0] + errors[1]).sqrt();
    // Numbers may be infinite, or so great that their squares are.
    let can_tell = one.executions > 1 && other.executions > 1 && more.is_finite() && error.is_finite();
    let (interval, chance) = match can_tell {
        true => welch(more, error, [0, 1].map(|at| (errors[at], counts[at]))),
        false => (None, 1.0),
    };
    Test {
        more,
        interval,
        effect: effect(more, groups),
        chance: chance
            .max(least_chance(one.executions, other.executions))
            .min(1.0),
    }
}

/// Tests whether the times of two groups in a context differ: as [`test`] does, and by how many executions were there at all (Fisher's
/// exact test, "The Design of Experiments", 1935), which tells more where few were. The surer one counts, as one of two; the second
/// only where the effect is [`LARGE`]: that some more were there is no difference in time yet.
pub(crate) fn test_times(groups: [Spread; 2]) -> Test {
    let by_mean = test(groups);
    let [one, other] = groups;
    let by_presence = match by_mean.effect.abs() >= LARGE {
        true => presence([one.present, other.present], [one.executions, other.executions]),
        false => 1.0,
    };
    Test {
        chance: surer(by_mean.chance, by_presence),
        ..by_mean
    }
}

/// What is called a large effect: Cohen, "Statistical Power Analysis for the Behavioral Sciences" (1988).
const LARGE: f64 = 0.8;

/// How probable numbers of a second group that are as much greater than those of a first one are if they are none: by means
/// (Welch) or by ranks (Mann and Whitney), which a few numbers far away do not change.
pub fn chance_of_more(first: &[f64], second: &[f64]) -> f64 {
    let spreads = [first, second].map(|values| Spread::of(values.iter().copied()));
    let by_mean = test(spreads);
    let (by_ranks, higher) = ranks([&mut first.to_vec(), &mut second.to_vec()]);
    let if_more = |is_more, chance| if is_more { chance } else { 1.0 };
    surer(
        if_more(by_mean.more > 0.0, by_mean.chance),
        if_more(higher > 0.5, by_ranks),
    )
}

/// The chance of the surer of two tests, as there were two.
pub(crate) fn surer(one: f64, other: f64) -> f64 {
    (2.0 * one.min(other)).min(1.0)
}

/// How probable it is that so different parts of both groups have something, if it does not depend on the group.
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
    let first = ln_binomial(have, found) + ln_binomial(all - have, drawn - found) - ln_binomial(all, drawn);
    let is_many = found as f64 * all as f64 >= have as f64 * drawn as f64;
    // Neither more nor fewer than that, as far as it counts.
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

/// How probable ranks as different as those of two groups of numbers are by chance: Mann and Whitney, "On a test of whether one of
/// two random variables is stochastically larger than the other" (1947), with the normal distribution. And how probable it is that one
/// of the second group is greater than one of the first.
pub(crate) fn ranks([first, second]: [&mut [f64]; 2]) -> (f64, f64) {
    if first.is_empty() || second.is_empty() {
        return (1.0, 0.5);
    }
    first.sort_by(f64::total_cmp);
    second.sort_by(f64::total_cmp);
    let (mut below, mut up_to, mut sum) = (0, 0, 0.0);
    for value in second.iter() {
        while first.get(below).is_some_and(|other| other < value) {
            below += 1;
        }
        while first.get(up_to).is_some_and(|other| other <= value) {
            up_to += 1;
        }
        sum += (below + up_to) as f64 / 2.0;
    }
    let [one, other] = [first.len() as f64, second.len() as f64];
    let all = one + other;
    let higher = sum / (one * other);
    let ties = ties([first, second]) / (all * (all - 1.0));
    let deviation = (one * other / 12.0 * (all + 1.0 - ties)).sqrt();
    let away = (sum - one * other / 2.0).abs() - 0.5;
    let chance = match Normal::standard() {
        normal if deviation > 0.0 => 2.0 * normal.cdf(-away.max(0.0) / deviation),
        _ => 1.0,
    };
    let least = least_chance(first.len() as u64, second.len() as u64);
    (chance.max(least).min(1.0), higher)
}

/// What equal values, of which there are t, add up to: t³ − t. Both groups are sorted.
fn ties([first, second]: [&[f64]; 2]) -> f64 {
    let mut all: Vec<f64> = [first, second].concat();
    all.sort_by(f64::total_cmp);
    let runs = all.chunk_by(|one, other| one == other);
    runs.map(|run| run.len() as f64)
        .map(|count| count.powi(3) - count)
        .sum()
}

/// Welch's test: the interval of 95 %, and the probability of such a difference by chance.
fn welch(more: f64, error: f64, parts: [(f64, f64); 2]) -> (Option<(f64, f64)>, f64) {
    if error == 0.0 {
        return (Some((more, more)), if more == 0.0 { 1.0 } else { 0.0 });
    }
    let of_group = |(part, count): (f64, f64)| part.powi(2) / (count - 1.0);
    let freedom = error.powi(4) / (of_group(parts[0]) + of_group(parts[1]));
    let Ok(distribution) = StudentsT::new(0.0, 1.0, freedom.max(1.0)) else {
        return (None, 1.0);
    };
    let reach = distribution.inverse_cdf(0.975) * error;
    let chance = 2.0 * distribution.cdf(-(more / error).abs());
    (Some((more - reach, more + reach)), chance)
}

/// Of all ways to divide so many executions into two groups, the part that at least looks like the one at hand.
pub(crate) fn least_chance(one: u64, other: u64) -> f64 {
    let (few, many) = (one.min(other), one.max(other));
    let mut ways = 1.0;
    for place in 1..=few {
        ways *= (many + place) as f64 / place as f64;
        if ways > 1e30 {
            break;
        }
    }
    2.0 / ways
}

/// Hedges' g: the difference by the spread of both, made smaller for few executions.
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

/// Corrects chances for how many there are.
pub fn correct<'t>(chances: impl Iterator<Item = &'t mut f64>) {
    let mut chances: Vec<&mut f64> = chances.collect();
    chances.sort_by(|one, other| one.total_cmp(other));
    let count = chances.len() as f64;
    let mut least = 1.0f64;
    for (place, chance) in chances.iter_mut().enumerate().rev() {
        least = least.min(**chance * count / (place as f64 + 1.0));
        **chance = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-6 * other.abs().max(1e-3)
    }

    #[test]
    fn infinite_numbers_are_told_by_ranks_alone() {
        let low: Vec<f64> = (0..20).map(f64::from).collect();
        for high in [f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            let mut other = low.clone();
            other.iter_mut().take(3).for_each(|value| *value = high);
            let spreads = [&low, &other].map(|values| Spread::of(values.iter().copied()));
            for found in [
                test(spreads),
                test([spreads[1], spreads[0]]),
                test([spreads[1], spreads[1]]),
            ] {
                assert_eq!((found.interval, found.effect), (None, 0.0), "{high}: {found:?}");
                assert!(found.chance == 1.0, "{high}: {found:?}");
            }
        }
        let infinite = [f64::INFINITY; 20];
        assert!(chance_of_more(&low, &infinite) < 1e-6);
        assert_eq!(chance_of_more(&infinite, &low), 1.0);
    }

    #[test]
    fn chances_are_those_of_welchs_test() {
        // Chances and intervals as scipy 1.16 gives them (`ttest_ind` with `equal_var=False`).
        let [one, other, few, large]: [&[u64]; 4] = [
            &[
                275, 210, 190, 236, 170, 179, 169, 201, 219, 226, 231, 196, 190, 217, 214,
            ],
            &[
                271, 220, 208, 234, 234, 235, 258, 220, 248, 202, 219, 221, 229, 300, 239,
            ],
            &[3, 5, 4],
            &[10, 30, 20, 50],
        ];
        let exact = |values: &[u64]| {
            let mut sums = Sums::default();
            values.iter().for_each(|&value| sums.add(value));
            sums.spread(values.len() as u64)
        };
        let running = |values: &[u64]| Spread::of(values.iter().map(|&value| value as f64));
        let expected = [
            (
                (one, other),
                0.008452732437443369,
                (7.668882941149821, 47.664450392183554),
            ),
            (
                (few, large),
                0.07027845189629994,
                (-3.5984413954914274, 50.59844139549143),
            ),
        ];
        for ((one, other), chance, (low, high)) in expected {
            for spread in [&exact as &dyn Fn(&[u64]) -> Spread, &running] {
                let found = test([spread(one), spread(other)]);
                assert!(near(found.chance, chance), "{found:?}");
                let interval = found.interval.unwrap();
                assert!(near(interval.0, low) && near(interval.1, high), "{found:?}");
            }
        }
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
        let mut slow: Vec<f64> = (0..40).map(|at| 100.0 + f64::from(at)).chain([1e12]).collect();
        let (chance, higher) = ranks([&mut few, &mut slow]);
        assert!(chance < 1e-12 && higher == 1.0, "{chance} {higher}");
        // U is 48 of 64; three twos, two threes and two eights are 36 of 16 · 15.
        let mut one = [1.0, 2.0, 2.0, 3.0, 5.0, 8.0, 9.0, 4.0];
        let mut other = [2.0, 6.0, 7.0, 8.0, 10.0, 12.0, 3.0, 11.0];
        let (chance, higher) = ranks([&mut one, &mut other]);
        assert!((chance - 0.102_037_506).abs() < 1e-8, "{chance}");
        assert!((higher - 0.75).abs() < 1e-12, "{higher}");
        assert_eq!(ranks([&mut [], &mut [2.0]]), (1.0, 0.5));
    }

    #[test]
    fn few_executions_cannot_tell_much() {
        assert!(near(least_chance(3, 3), 0.1));
        assert!(near(least_chance(1, 1), 1.0));
        assert!(least_chance(100, 2000) < 1e-29);
    }

    #[test]
    fn chances_are_corrected_for_their_number() {
        let mut chances = [0.01, 0.04, 0.03, 0.5];
        correct(chances.iter_mut());
        let expected = [0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5];
        assert!(
            chances.iter().zip(expected).all(|(one, other)| near(*one, other)),
            "{chances:?}"
        );
    }
}
