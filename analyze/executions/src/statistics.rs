//! How sure it is that two groups of values differ.
//!
//! Welch's test honours both variances and both sizes; a test of few values cannot be surer than that of all ways
//! to divide them into two groups, so it is held there. The interval is that of the same test. The effect is Hedges' g.
//! Where many things are tested, some differ by chance: [`correct`] accounts for that (Benjamini and Hochberg,
//! "Controlling the false discovery rate", 1995).

use statrs::distribution::{ContinuousCDF, StudentsT};

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
    let can_tell = one.executions > 1 && other.executions > 1;
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
fn least_chance(one: u64, other: u64) -> f64 {
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
