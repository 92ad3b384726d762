//! Two groups of executions beside each other: in which contexts they differ, and how sure that is.
//!
//! For each context the mean time of an execution in it, of those that were never there too, with the difference of the
//! groups, its confidence interval, how large it is beside the spread, and how probable such a difference would be
//! if there were none (Welch's test, which honours both variances and both sizes). A test of few
//! executions cannot be surer than that of all ways to divide them into two groups, so it is held there. Since there are many
//! contexts, some differ by chance: probabilities are corrected for that (Benjamini and Hochberg, "Controlling the false
//! discovery rate", 1995), those of times within contexts and those of contexts with all within them each by themselves.

use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;

use crate::contexts::{ContextId, Contexts};
use crate::ecct::Ecct;

/// A context in two groups. Times are nanoseconds of an execution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The context.
    pub context: ContextId,
    /// Whether it is about the context with all within it; else about its own time.
    pub is_whole: bool,
    /// The groups.
    pub groups: [Spread; 2],
    /// How much more the second group has on average.
    pub more: f64,
    /// In which that lies with a probability of 95 %; none if a group has less than two executions.
    pub interval: Option<(f64, f64)>,
    /// How large that is beside the spread of both groups: Hedges' g. Infinite if there is no spread.
    pub effect: f64,
    /// How probable a difference like that would be if there were none, corrected for the number of contexts; 1 if that
    /// cannot be told.
    pub chance: f64,
}

/// Times of a group's executions in a context.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many executions the group has.
    pub executions: u64,
    /// How many of them were in the context.
    pub present: u64,
    /// Their mean time there, of those that were not, too.
    pub mean: f64,
    /// Standard deviation (of a sample).
    pub deviation: f64,
}

/// Sums of times, which are exact whatever the order.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    present: u64,
    sum: u128,
    squares: u128,
}

impl Sums {
    fn add(&mut self, time: u64) {
        let time = u128::from(time);
        self.present += 1;
        self.sum += time;
        self.squares = self.squares.saturating_add(time * time);
    }

    fn spread(&self, executions: u64) -> Spread {
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

/// By context: of its own time and of all within it, in both groups.
type Table = BTreeMap<ContextId, [[Sums; 2]; 2]>;

/// Where two groups of executions differ: the surest differences first, of those as sure as each other the greatest.
pub fn compare(contexts: &Contexts, groups: [&[&Ecct]; 2]) -> Vec<Difference> {
    let mut table = Table::new();
    for (place, group) in groups.iter().enumerate() {
        for ecct in *group {
            add(contexts, &mut table, place, ecct);
        }
    }
    let counts = groups.map(|group| group.len() as u64);
    let mut found = Vec::new();
    for is_whole in [false, true] {
        let of = |(&context, sums): (&ContextId, &[[Sums; 2]; 2])| {
            let sums = sums[usize::from(is_whole)];
            let is_there = sums.iter().any(|sums| sums.present > 0);
            is_there.then(|| difference((context, is_whole), [0, 1].map(|at| sums[at].spread(counts[at]))))
        };
        let mut differences: Vec<Difference> = table.iter().filter_map(of).collect();
        correct(&mut differences);
        found.append(&mut differences);
    }
    let order = |of: &Difference| (of.chance, -of.more.abs());
    found.sort_by(|one, other| {
        let (one, other) = (order(one), order(other));
        one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    found
}

fn add(contexts: &Contexts, table: &mut Table, group: usize, ecct: &Ecct) {
    let mut whole: BTreeMap<ContextId, u64> = BTreeMap::new();
    for &(context, time) in &ecct.times {
        table.entry(context).or_default()[0][group].add(time);
        let mut at = context;
        *whole.entry(at).or_default() += time;
        while let Some((around, _)) = contexts.parts(at) {
            at = around;
            *whole.entry(at).or_default() += time;
        }
    }
    for (context, time) in whole {
        table.entry(context).or_default()[1][group].add(time);
    }
}

fn difference((context, is_whole): (ContextId, bool), groups: [Spread; 2]) -> Difference {
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
    Difference {
        context,
        is_whole,
        groups,
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

/// Corrects chances for the number of contexts.
fn correct(differences: &mut [Difference]) {
    differences.sort_by(|one, other| one.chance.total_cmp(&other.chance));
    let count = differences.len() as f64;
    let mut least = 1.0f64;
    for (place, difference) in differences.iter_mut().enumerate().rev() {
        least = least.min(difference.chance * count / (place as f64 + 1.0));
        difference.chance = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::{Frame, FrameKind};
    use crate::names::NameId;

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
        let spread = |values: &[u64]| {
            let mut sums = Sums::default();
            values.iter().for_each(|&value| sums.add(value));
            sums.spread(values.len() as u64)
        };
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
            let found = difference((Contexts::EMPTY, false), [spread(one), spread(other)]);
            assert!(near(found.chance, chance), "{found:?}");
            let interval = found.interval.unwrap();
            assert!(near(interval.0, low) && near(interval.1, high), "{found:?}");
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
        let with = |chance| Difference {
            chance,
            ..difference((Contexts::EMPTY, false), [Spread::default(); 2])
        };
        let mut differences = [0.01, 0.04, 0.03, 0.5].map(with);
        correct(&mut differences);
        let found = differences.map(|of| of.chance);
        let expected = [0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5];
        assert!(
            found.iter().zip(expected).all(|(one, other)| near(*one, other)),
            "{found:?}"
        );
    }

    #[test]
    fn contexts_that_one_group_lacks_are_there_with_all_around_them() {
        let mut contexts = Contexts::default();
        let frame = |name| Frame {
            kind: FrameKind::Function,
            name: NameId(name),
        };
        let outer = contexts.within(Contexts::EMPTY, frame(1));
        let inner = contexts.within(outer, frame(2));
        let ecct = |times: &[(ContextId, u64)]| Ecct {
            times: times.to_vec(),
        };
        let fast: Vec<Ecct> = (0..40).map(|at| ecct(&[(outer, 100 + at % 7)])).collect();
        let slow: Vec<Ecct> = (0..30)
            .map(|at| ecct(&[(outer, 100 + at % 7), (inner, 500 + at)]))
            .collect();
        let [fast, slow]: [Vec<&Ecct>; 2] = [fast.iter().collect(), slow.iter().collect()];
        let found = compare(&contexts, [&fast, &slow]);
        let of = |context, is_whole| {
            *found
                .iter()
                .find(|of| of.context == context && of.is_whole == is_whole)
                .unwrap()
        };
        let own = of(inner, false);
        assert_eq!((own.groups[0].present, own.groups[1].present), (0, 30));
        assert!(
            near(own.more, 514.5) && own.chance < 1e-9 && own.effect > 10.0,
            "{own:?}"
        );
        assert!(of(outer, false).chance > 0.1);
        assert!(near(of(outer, true).more, of(Contexts::EMPTY, true).more));
        assert!(found.first().unwrap().chance <= found.last().unwrap().chance);
        // Of the context without frames there is no time but that within it.
        assert!(
            !found
                .iter()
                .any(|of| of.context == Contexts::EMPTY && !of.is_whole)
        );
        assert!(compare(&contexts, [&fast, &[]]).iter().all(|of| of.chance == 1.0));
    }
}
