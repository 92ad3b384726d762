//! Probability of the sum of a group's values if the group is a random one.
//!
//! If two groups do not differ, every way to divide their executions into groups of these sizes is
//! equally probable (Fisher, "The Design of Experiments", 1935; Pitman, "Significance tests which
//! may be applied to samples from any populations", 1937). The probability of a sum at least as
//! extreme over all these ways is approximated by a double saddlepoint (Robinson, "Saddlepoint
//! approximations for permutation tests and confidence intervals", 1982; for lattices Daniels,
//! "Tail probability approximations", 1987), with the greatest gap between values taken for the
//! span of the lattice. Far out in the tail it is right in order of magnitude, and rather too large
//! than too small, for groups of any size and for rare and large values. Normal approximations,
//! Welch's test among them, are not: a small group without a rare context has no variance.
//!
//! Values come as a few numbers with weights, so that the cost depends neither on the number of
//! executions nor on their order.

/// The values of two groups together: numbers with their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    atoms: Vec<(f64, f64)>,
    /// The last number added, and the greatest gap between neighbours.
    last: Option<f64>,
    gap: f64,
}

/// The sum of a group compared with those of all groups of its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tail {
    /// Whether the sum is above the expected one.
    pub(crate) is_more: bool,
    /// Probability of a sum at least as far from the expected one on the same side; 1 where nothing
    /// can be inferred.
    pub(crate) chance: f64,
}

impl Tail {
    const UNKNOWN: Tail = Tail {
        is_more: false,
        chance: 1.0,
    };

    /// Two-sided probability: twice that of the observed side.
    pub(crate) fn two_sided(self) -> f64 {
        (2.0 * self.chance).min(1.0)
    }

    /// The probability of a sum at least as large.
    pub(crate) fn of_more(self) -> f64 {
        if self.is_more { self.chance } else { 1.0 }
    }
}

/// Standard deviations within which a sum counts as the expected one: the bound exceeds one half
/// there.
const NEAR: f64 = 0.8;
/// Maximum number of steps of Newton's method; about ten are needed, and more only for the largest
/// possible sum.
const STEPS: usize = 100;
/// Maximum change of the log odds in a step. The third derivative of the logistic function is
/// bounded by the second, so a step of this length does not diverge.
const LONGEST: f64 = 2.0;
/// Log odds beyond which a value is certainly drawn or not drawn: such values do not delay
/// convergence.
const CERTAIN: f64 = 20.0;
/// Error of the log probability at which the iteration ends.
const CLOSE: f64 = 1e-10;

impl Pool {
    /// Adds a number, not less than those before, that stands for `count` values.
    pub(crate) fn push(&mut self, value: f64, count: f64) {
        self.push_spread(value, 0.0, count);
    }

    /// Adds `count` values with a mean and a standard deviation: three numbers with the first five
    /// moments of a normal distribution.
    pub(crate) fn push_spread(&mut self, mean: f64, deviation: f64, count: f64) {
        if count <= 0.0 {
            return;
        }
        self.gap = self.gap.max(self.last.map_or(0.0, |last| mean - last));
        self.last = Some(mean);
        if deviation > 0.0 {
            let away = deviation * 3f64.sqrt();
            self.atoms.push((mean - away, count / 6.0));
            self.atoms.push((mean, count * 2.0 / 3.0));
            self.atoms.push((mean + away, count / 6.0));
        } else {
            self.atoms.push((mean, count));
        }
    }

    fn size(&self) -> f64 {
        self.atoms.iter().map(|(_, count)| count).sum()
    }

    /// Position of the sum of `drawn` values among the sums of all ways to draw as many.
    pub(crate) fn tail(&self, drawn: u64, sum: f64) -> Tail {
        let (all, drawn) = (self.size(), drawn as f64);
        let mean = self
            .atoms
            .iter()
            .map(|(value, count)| value * count)
            .sum::<f64>()
            / all;
        let square = |(value, count): &(f64, f64)| count * (value - mean).powi(2);
        let variance = self.atoms.iter().map(square).sum::<f64>() / all;
        let away = sum - drawn * mean;
        let is_known = drawn > 0.0 && drawn < all && variance > 0.0;
        if !is_known || !variance.is_finite() || !away.is_finite() {
            return Tail::UNKNOWN;
        }
        let is_more = away > 0.0;
        let deviation = variance.sqrt() * if is_more { 1.0 } else { -1.0 };
        let away = away / deviation;
        if away < NEAR * (drawn * (all - drawn) / (all - 1.0).max(1.0)).sqrt() {
            return Tail {
                is_more,
                chance: 1.0,
            };
        }
        let scaled = |&(value, count): &(f64, f64)| ((value - mean) / deviation, count);
        let atoms: Vec<(f64, f64)> = self.atoms.iter().map(scaled).collect();
        let chance = Saddle::new(&atoms, all, drawn, away).chance(self.gap / deviation.abs());
        Tail { is_more, chance }
    }
}

/// The tilted sampling under which the observed sum is the expected one. Each value is drawn with
/// the odds exp(shift + tilt · value).
struct Saddle<'a> {
    atoms: &'a [(f64, f64)],
    all: f64,
    drawn: f64,
    sum: f64,
    shift: f64,
    tilt: f64,
    /// Variances under this sampling: of the number of values drawn, and of their sum given that
    /// number.
    curvature: (f64, f64),
    /// The mean under the first variance.
    mean: f64,
}

impl<'a> Saddle<'a> {
    fn new(atoms: &'a [(f64, f64)], all: f64, drawn: f64, sum: f64) -> Saddle<'a> {
        let shift = (drawn / (all - drawn)).ln();
        let mut saddle = Saddle {
            atoms,
            all,
            drawn,
            sum,
            shift,
            tilt: 0.0,
            curvature: (0.0, 0.0),
            mean: 0.0,
        };
        for _ in 0..STEPS {
            if saddle.step() < CLOSE {
                break;
            }
        }
        saddle
    }

    /// A step of Newton's method; returns the gain.
    fn step(&mut self) -> f64 {
        let (mut drawn, mut sum) = (-self.drawn, -self.sum);
        let mut by = [0.0; 3];
        for &(value, count) in self.atoms {
            let part = 1.0 / (1.0 + (-self.shift - self.tilt * value).exp());
            let (expected, weight) = (count * part, count * part * (1.0 - part));
            drawn += expected;
            sum += expected * value;
            by[0] += weight;
            by[1] += weight * value;
            by[2] += weight * value * value;
        }
        let mean = by[1] / by[0];
        let spread = by[2] - by[1] * mean;
        if !(by[0] > 0.0 && spread > 0.0) {
            return 0.0;
        }
        self.curvature = (by[0], spread);
        self.mean = mean;
        let sum = sum - drawn * mean;
        let tilt = -sum / spread;
        let shift = -drawn / by[0] - tilt * mean;
        let allowed = |(value, _): &(f64, f64)| {
            let (odds, change) = (self.shift + self.tilt * value, shift + tilt * value);
            let is_outwards = odds * change > 0.0;
            match odds.abs() > CERTAIN {
                true if is_outwards => 1.0,
                true => (LONGEST + odds.abs() - CERTAIN) / change.abs(),
                false => LONGEST / change.abs(),
            }
        };
        let part = self.atoms.iter().map(allowed).fold(1.0, f64::min);
        self.shift += part * shift;
        self.tilt += part * tilt;
        drawn * drawn / by[0] + sum * sum / spread
    }

    /// Typical change of the sum when one value replaces another, weighted by their part in the
    /// variance.
    fn jump(&self) -> f64 {
        let parts = |power: i32| {
            let term = |&(value, count): &(f64, f64)| {
                let part = 1.0 / (1.0 + (-self.shift - self.tilt * value).exp());
                count * part * (1.0 - part) * (value - self.mean).abs().powi(power)
            };
            self.atoms.iter().map(term).sum::<f64>()
        };
        parts(3) / parts(2)
    }

    /// The tail probability. Sums come in steps of `gap` at most.
    fn chance(&self, gap: f64) -> f64 {
        let gap = gap.min(self.jump());
        let power = |shift: f64, tilt: f64| {
            let term = |&(value, count): &(f64, f64)| count * softplus(shift + tilt * value);
            self.atoms.iter().map(term).sum::<f64>() - shift * self.drawn - tilt * self.sum
        };
        let odds = (self.drawn / (self.all - self.drawn)).ln();
        let bound = (power(self.shift, self.tilt) - power(odds, 0.0))
            .min(0.0)
            .exp();
        let (of_count, of_sum) = self.curvature;
        // Probability that the right number of values is drawn, by tilted odds and by equal odds
        // for all.
        let counts = exactly(of_count) / exactly(self.drawn * (1.0 - self.drawn / self.all));
        let step = match gap > 0.0 {
            true => (1.0 - (-self.tilt * gap).exp()) / gap,
            false => self.tilt,
        };
        let beyond = step * (std::f64::consts::TAU * of_sum).sqrt();
        (bound * counts / beyond.max(1.0)).min(1.0)
    }
}

/// Probability of drawing exactly the expected number, if the number has this variance.
fn exactly(variance: f64) -> f64 {
    1.0 / (std::f64::consts::TAU * variance).sqrt().max(1.0)
}

/// ln(1 + exp(x)).
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Values in ascending order, gathered in runs: single values at both ends, longer runs towards the
/// middle.
#[derive(Debug)]
pub(crate) struct Runs {
    pool: Pool,
    all: u64,
    placed: u64,
    first: f64,
    /// The current run: number of values, values missing, sum and squares from the first.
    count: f64,
    left: u64,
    sums: [f64; 2],
}

/// A run takes 1/`RUN` of the values between it and the nearer end.
const RUN: u64 = 8;

impl Runs {
    /// Runs for `all` values.
    pub(crate) fn new(all: u64) -> Runs {
        Runs {
            pool: Pool::default(),
            all,
            placed: 0,
            first: 0.0,
            count: 0.0,
            left: 0,
            sums: [0.0; 2],
        }
    }

    /// Adds a value, not less than those before, `count` times.
    pub(crate) fn push(&mut self, value: f64, mut count: u64) {
        while count > 0 {
            if self.left == 0 {
                self.end();
                self.first = value;
                let from_end = self.placed.min(self.all.saturating_sub(self.placed + 1));
                self.left = (from_end / RUN).max(1);
            }
            let taken = count.min(self.left);
            let (from_first, part) = (value - self.first, taken as f64);
            self.count += part;
            self.sums[0] += part * from_first;
            self.sums[1] += part * from_first * from_first;
            self.left -= taken;
            self.placed += taken;
            count -= taken;
        }
    }

    fn end(&mut self) {
        if self.count > 0.0 {
            let mean = self.sums[0] / self.count;
            let deviation = (self.sums[1] / self.count - mean * mean).max(0.0).sqrt();
            self.pool
                .push_spread(self.first + mean, deviation, self.count);
        }
        self.count = 0.0;
        self.sums = [0.0; 2];
    }

    /// The pool of all values.
    pub(crate) fn pool(mut self) -> Pool {
        self.end();
        self.pool
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiple_testing::least_chance;

    /// Pseudorandom numbers from 0 to 1, by Knuth's constants.
    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    fn pool_of(values: &[f64]) -> Pool {
        let mut pool = Pool::default();
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.iter().for_each(|&value| pool.push(value, 1.0));
        pool
    }

    /// The sum of each choice of `drawn` values.
    fn sums(values: &[f64], drawn: u32) -> Vec<f64> {
        let chosen = (0..1u32 << values.len()).filter(|bits| bits.count_ones() == drawn);
        let sum = |bits: u32| {
            values
                .iter()
                .enumerate()
                .map(|(at, value)| f64::from(bits >> at & 1) * value)
                .sum()
        };
        chosen.map(sum).collect()
    }

    #[test]
    fn tails_are_those_of_all_ways_to_choose() {
        let mut random = random(1);
        let mut worst = [f64::MAX, 0.0f64];
        for case in 0..120 {
            let values: Vec<f64> = (0..14)
                .map(|_| match case % 4 {
                    0 => random(),
                    1 => (random() < 0.4) as u8 as f64 * (1.0 + random()),
                    2 => (random() * 4.0).exp2().round(),
                    _ => random().powi(-2).min(1e6),
                })
                .collect();
            let drawn = [3, 5, 7, 10][case / 4 % 4];
            let all = sums(&values, drawn);
            let pool = pool_of(&values);
            for &sum in all.iter().step_by(all.len() / 20) {
                let found = pool.tail(drawn.into(), sum);
                let close = 1e-9 * sum.abs().max(1.0);
                let as_far = |other: &&f64| match found.is_more {
                    true => **other >= sum - close,
                    false => **other <= sum + close,
                };
                let exact = all.iter().filter(as_far).count() as f64 / all.len() as f64;
                let ratio = found.chance / exact;
                worst = [worst[0].min(ratio), worst[1].max(ratio)];
                // Near the expected sum no inference is possible.
                assert!(
                    found.chance <= 1.0 && ratio > 0.4 && (ratio < 20.0 || found.chance == 1.0),
                    "{values:?} {sum}: {found:?}, {exact}"
                );
            }
        }
        println!(
            "from {:.2} to {:.2} of the exact probabilities",
            worst[0], worst[1]
        );
    }

    /// Values that few executions have, all in the small group: the sum is the largest possible
    /// one.
    #[test]
    fn rare_values_have_the_chance_of_their_places() {
        for (all, drawn) in [(1806u64, 20u64), (1806, 100), (1806, 903), (155, 5)] {
            for present in 1..=drawn.min(12) {
                let mut pool = Pool::default();
                pool.push(0.0, (all - present) as f64);
                pool.push(7e6, present as f64);
                let place = |at: u64| (drawn - at) as f64 / (all - at) as f64;
                let exact: f64 = (0..present).map(place).product();
                let found = pool.tail(drawn, 7e6 * present as f64).of_more();
                let ratio = found / exact;
                assert!(
                    (0.15..3.0).contains(&ratio),
                    "{present} of {drawn} of {all}: {found} {exact}"
                );
                assert!(
                    (least_chance([drawn, all - drawn], present) - (2.0 * exact).min(1.0)).abs()
                        <= 1e-9 * exact
                );
            }
        }
    }

    #[test]
    fn nothing_is_said_of_what_is_all_the_same_or_no_number() {
        for (values, drawn, sum) in [
            (vec![], 1, 1.0),
            (vec![3.0; 8], 4, 12.0),
            (vec![1.0, 2.0], 0, 0.0),
            (vec![1.0, 2.0], 2, 3.0),
            (vec![f64::INFINITY, 2.0], 1, 2.0),
            (vec![1e300, -1e300, 1.0], 1, 1e300),
        ] {
            assert_eq!(
                pool_of(&values).tail(drawn, sum),
                Tail::UNKNOWN,
                "{values:?}"
            );
        }
    }

    #[test]
    fn runs_have_the_mean_and_the_variance_of_their_values() {
        let mut random = random(5);
        let mut values: Vec<f64> = (0..3000).map(|_| (random() * 9.0).exp()).collect();
        values.sort_by(f64::total_cmp);
        let mut runs = Runs::new(3000);
        values.iter().for_each(|&value| runs.push(value, 1));
        let pool = runs.pool();
        assert!(pool.atoms.len() < 400, "{}", pool.atoms.len());
        let moments = |pool: &Pool| {
            let power = |power: i32| {
                let of = |(value, count): &(f64, f64)| count * value.powi(power);
                pool.atoms.iter().map(of).sum::<f64>()
            };
            [0, 1, 2].map(power)
        };
        let (found, exact) = (moments(&pool), moments(&pool_of(&values)));
        for at in 0..3 {
            assert!(
                (found[at] / exact[at] - 1.0).abs() < 1e-9,
                "{found:?} {exact:?}"
            );
        }
        for (drawn, sum) in [(20, 6e4), (300, 4e5), (1500, 1.6e6)] {
            let [found, exact] = [&pool, &pool_of(&values)].map(|pool| pool.tail(drawn, sum));
            assert!(
                (found.chance / exact.chance - 1.0).abs() < 0.1,
                "{found:?} {exact:?}"
            );
        }
        // There may be more equal values than a run takes.
        let mut runs = Runs::new(100);
        runs.push(1.0, 90);
        runs.push(2.0, 10);
        assert!((moments(&runs.pool())[1] - 110.0).abs() < 1e-9);
    }

    /// `web/tests/statistics.test.ts` has the same numbers.
    #[test]
    fn page_and_terminal_have_the_same_tails() {
        let mut pool = Pool::default();
        for (mean, deviation, count) in [
            (0.0, 0.0, 1500.0),
            (3000.0, 700.0, 200.0),
            (50_000.0, 11_000.0, 95.0),
            (7e6, 0.0, 1.0),
            (3e7, 4e6, 10.0),
        ] {
            pool.push_spread(mean, deviation, count);
        }
        for (drawn, sum, chance) in [
            (20, 3e7, 0.105_388_250_185_882_16),
            (20, 1.2e8, 2.681_855_838_245_357e-6),
            (100, 9e7, 0.015_366_250_677_826_033),
            (903, 1e6, 1.122_765_807_453_836_7e-16),
            (903, 2.9e8, 0.004_035_162_454_842_522),
        ] {
            let found = pool.tail(drawn, sum).chance;
            assert!(
                (found / chance - 1.0).abs() < 1e-9,
                "{drawn} {sum}: {found}"
            );
        }
        let mut runs = Runs::new(1000);
        (0..1000).for_each(|at| runs.push(f64::from(at * at), 1));
        let of_runs = runs.pool().tail(30, 1.6e7).chance;
        assert!(
            (of_runs / 1.900_306_820_220_669e-4 - 1.0).abs() < 1e-9,
            "{of_runs}"
        );
    }
}
