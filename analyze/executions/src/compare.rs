//! Comparison of two groups of executions: the contexts in which they differ, and the significance
//! of each difference.
//!
//! For each context, the difference of the mean times (an execution that never entered the context
//! counts as 0) is compared with that of random groups of the same sizes ([`crate::permutation`]).
//! Probabilities are corrected for the number of contexts that can differ as significantly,
//! separately for own times and for total times.

use crate::contexts::{ContextId, Contexts};
use crate::multiple_testing::correct;
use crate::statistics::{Spread, Test, least_of_times, test_times};
use crate::sums::{Sums, pool};

/// Times of an execution by context, in ascending order of contexts.
pub type Times<'t> = &'t [(ContextId, u64)];

/// A context in two groups. Times are nanoseconds per execution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The compared context.
    pub context: ContextId,
    /// True for the total time, including inner contexts; false for the context's own time.
    pub is_whole: bool,
    /// Distribution in each group.
    pub groups: [Spread; 2],
    /// Difference of the means, and its significance.
    pub test: Test,
}

/// Differences between two groups of executions by context: the most significant first, among
/// equals the greatest.
pub fn compare(contexts: &Contexts, groups: [&[Times<'_>]; 2]) -> Vec<Difference> {
    let sums = groups.map(|group| GroupSums::new(contexts, group));
    let mut found = Vec::new();
    let executions = groups.map(|group| group.len() as u64);
    for is_whole in [false, true] {
        let of = |id: usize| {
            let sums = [sums[0].of(is_whole, id)?, sums[1].of(is_whole, id)?];
            let is_there = sums.iter().any(|sums| sums.present > 0);
            let groups = [0, 1].map(|at| sums[at].spread(executions[at]));
            is_there.then(|| Difference {
                context: ContextId(id as u32),
                is_whole,
                groups,
                test: test_times(
                    groups,
                    &pool(sums, executions[0] + executions[1]),
                    sums[1].sum(),
                ),
            })
        };
        let mut differences: Vec<Difference> = (0..contexts.count()).filter_map(of).collect();
        let tests = differences
            .iter_mut()
            .map(|of| (&mut of.test.chance, least_of_times(of.groups)));
        correct(tests);
        found.append(&mut differences);
    }
    let order = |of: &Difference| (of.test.chance, -of.test.more.abs());
    found.sort_by(|one, other| {
        let (one, other) = (order(one), order(other));
        one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    found
}

/// Significance level: a difference with a lower probability under chance is significant.
pub const SURE: f64 = 0.01;

impl Difference {
    /// True if the difference is significant at the level [`SURE`].
    pub fn is_sure(&self) -> bool {
        self.test.chance < SURE
    }
}

/// Differences of own times, or of total times: the greatest first, significant or not.
pub fn ranked(differences: &[Difference], is_whole: bool) -> Vec<Difference> {
    let of_kind = differences.iter().filter(|of| of.is_whole == is_whole);
    let mut ranked: Vec<Difference> = of_kind.copied().collect();
    ranked.sort_by(|one, other| other.test.more.abs().total_cmp(&one.test.more.abs()));
    ranked
}

/// The head of a [`ranked`] list that is worth showing: up to the last significant difference, and
/// at least five entries with any difference. Insignificant rows keep their rank.
pub fn worth_showing(ranked: &[Difference]) -> &[Difference] {
    const LEAST: usize = 5;
    let last = ranked.iter().rposition(Difference::is_sure);
    let significant = last.map_or(0, |last| last + 1);
    let differing = ranked.partition_point(|of| of.test.more != 0.0);
    ranked
        .get(..significant.max(LEAST).min(differing))
        .unwrap_or(ranked)
}

/// Sums of a group, by context.
struct GroupSums {
    own: Vec<Sums>,
    whole: Vec<Sums>,
}

impl GroupSums {
    fn new(contexts: &Contexts, group: &[Times<'_>]) -> GroupSums {
        let count = contexts.count();
        let mut sums = GroupSums {
            own: vec![Sums::default(); count],
            whole: vec![Sums::default(); count],
        };
        // Of one execution: the total time of each context, and the contexts whose total is not 0.
        let mut whole = vec![0u64; count];
        let mut met: Vec<ContextId> = Vec::new();
        for times in group {
            for &(context, time) in *times {
                if let Some(own) = sums.own.get_mut(context.0 as usize) {
                    own.add(time);
                }
                for at in contexts.way(context) {
                    let Some(sum) = whole.get_mut(at.0 as usize) else {
                        break;
                    };
                    if *sum == 0 {
                        met.push(at);
                    }
                    *sum = sum.saturating_add(time);
                }
            }
            for context in met.drain(..) {
                let place = context.0 as usize;
                if let (Some(sum), Some(whole)) = (sums.whole.get_mut(place), whole.get_mut(place))
                {
                    sum.add(std::mem::take(whole));
                }
            }
        }
        sums
    }

    fn of(&self, is_whole: bool, id: usize) -> Option<&Sums> {
        let list = if is_whole { &self.whole } else { &self.own };
        list.get(id)
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
    fn contexts_that_one_group_lacks_are_there_with_all_around_them() {
        let mut contexts = Contexts::default();
        let frame = |name| Frame {
            kind: FrameKind::Function,
            name: NameId(name),
        };
        let outer = contexts.within(Contexts::EMPTY, frame(1));
        let inner = contexts.within(outer, frame(2));
        let fast: Vec<Vec<(ContextId, u64)>> =
            (0..40).map(|at| vec![(outer, 100 + at % 7)]).collect();
        let slow: Vec<Vec<(ContextId, u64)>> = (0..30)
            .map(|at| vec![(outer, 100 + at % 7), (inner, 500 + at)])
            .collect();
        let [fast, slow]: [Vec<Times<'_>>; 2] =
            [&fast, &slow].map(|group| group.iter().map(Vec::as_slice).collect());
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
            near(own.test.more, 514.5) && own.test.chance < 1e-9 && own.test.effect > 10.0,
            "{own:?}"
        );
        assert!(of(outer, false).test.chance > 0.1);
        assert!(near(
            of(outer, true).test.more,
            of(Contexts::EMPTY, true).test.more
        ));
        assert!(found.first().unwrap().test.chance <= found.last().unwrap().test.chance);
        // The context without frames has no own time, only a total.
        assert!(
            !found
                .iter()
                .any(|of| of.context == Contexts::EMPTY && !of.is_whole)
        );
        assert!(
            compare(&contexts, [&fast, &[]])
                .iter()
                .all(|of| of.test.chance == 1.0)
        );
    }
}
