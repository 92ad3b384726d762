//! Two groups of executions of a table, and the metrics and texts in which they differ.

use crate::compare::{SURE, Times};
use crate::database::{Database, Figures, Table};
use crate::multiple_testing::{correct, least_chance};
use crate::statistics::{Numbers, Spread, Test, coarse, numbers, surer, test};
use crate::texts::{TextSeparation, rank, texts};

/// Indexes of executions in their table, ascending.
pub type Group = Vec<usize>;

/// Indexes of the selected executions.
pub fn group(chosen: &[bool]) -> Group {
    let places = chosen.iter().enumerate();
    places
        .filter_map(|(place, is)| is.then_some(place))
        .collect()
}

/// Default groups: the half around the median, and the slowest 1 % (at least five executions, if
/// there are twenty). `None` if durations are unknown.
pub fn typical_and_slow(table: &Table) -> Option<[Group; 2]> {
    let durations = &table.figure("duration_ns")?.values;
    let mut order: Vec<usize> = (0..table.len()).collect();
    order.sort_by(|&one, &other| {
        durations[one]
            .total_cmp(&durations[other])
            .then(one.cmp(&other))
    });
    let count = order.len();
    let slow = count.div_ceil(100).max(5.min(count / 4));
    let sorted = |part: &[usize]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part
    };
    Some([
        sorted(&order[count / 4..count - count / 4]),
        sorted(&order[count - slow..]),
    ])
}

/// Times by context of a group's executions.
pub fn times<'t>(table: &'t Table, group: &[usize]) -> Vec<Times<'t>> {
    group.iter().map(|&row| table.rows.of(row)).collect()
}

/// A metric in two groups.
#[derive(Clone, Copy, Debug)]
pub struct Separation<'t> {
    /// The compared metric.
    pub figures: &'t Figures,
    /// Distribution in each group.
    pub groups: [Spread; 2],
    /// Difference of the groups; its probability is corrected for the number of metrics.
    pub test: Test,
    /// Probability that an execution of the second group has a higher value than one of the first;
    /// ties count half. 0 or 1 if the metric separates the groups, 0.5 if it does not differ (the
    /// area under the ROC curve; Mann and Whitney, 1947).
    pub higher: f64,
}

impl Separation<'_> {
    /// True if the probability [`Separation::higher`] differs from 0.5, so that the metric is worth
    /// a row.
    pub fn tells(&self) -> bool {
        self.higher != 0.5
    }
}

/// Metrics and texts in which two groups differ, the best separation first.
#[derive(Clone, Debug, Default)]
pub struct Apart<'t> {
    /// Metrics; among equally good ones, the most significant first.
    pub figures: Vec<Separation<'t>>,
    /// Texts.
    pub texts: Vec<TextSeparation>,
}

/// Compares the metrics and texts of two groups. Probabilities are corrected for the number of
/// each.
pub fn separations<'t>(database: &Database, table: &'t Table, groups: [&[usize]; 2]) -> Apart<'t> {
    let (mut figures, least): (Vec<_>, Vec<_>) = figures(table, groups).into_iter().unzip();
    correct(figures.iter_mut().map(|of| &mut of.test.chance).zip(least));
    let distance = |of: &Separation<'_>| (of.higher - 0.5).abs();
    figures.sort_by(|one, other| {
        distance(other)
            .total_cmp(&distance(one))
            .then(coarse(one.test.chance).total_cmp(&coarse(other.test.chance)))
    });
    let (mut texts, least): (Vec<_>, Vec<_>) = texts(database, table, groups).into_iter().unzip();
    correct(texts.iter_mut().map(|of| &mut of.chance).zip(least));
    rank(&mut texts);
    Apart { figures, texts }
}

impl Separation<'_> {
    /// True if the difference is significant, once its probability is corrected.
    pub fn is_sure(&self) -> bool {
        self.test.chance < SURE
    }
}

/// Comparison of each metric in two groups, and the lowest probability that it can have.
/// Probabilities are not corrected.
fn figures<'t>(table: &'t Table, groups: [&[usize]; 2]) -> Vec<(Separation<'t>, f64)> {
    let of = |figures: &'t Figures| {
        let mut values = groups.map(|group| {
            let values = group
                .iter()
                .filter_map(|&row| figures.values.get(row).copied());
            values.filter(|value| !value.is_nan()).collect::<Vec<f64>>()
        });
        let spreads = [0, 1].map(|at| Spread::of(values[at].iter().copied()));
        let [first, second] = &mut values;
        let compared = numbers([first, second]);
        let (chance, least) = chance_of(&compared, spreads.map(|of| of.executions));
        let separation = Separation {
            figures,
            groups: spreads,
            test: test(spreads, chance),
            higher: compared.higher,
        };
        (separation, least)
    };
    table.figures.iter().map(of).collect()
}

/// Probability of a difference of at least this size by chance, by means or by ranks; and the
/// lowest possible probability.
fn chance_of(compared: &Numbers, executions: [u64; 2]) -> (f64, f64) {
    let least = least_chance(executions, compared.differing);
    let is_enough = executions.iter().all(|&count| count > 1);
    let chance = match is_enough {
        true => surer(compared.by_mean.two_sided(), compared.by_ranks.two_sided()),
        false => 1.0,
    };
    (chance.max(least), least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Column;

    fn table(durations: Vec<f64>) -> Table {
        Table {
            ids: (1..=durations.len() as u32).collect(),
            figures: vec![Figures {
                column: Column {
                    name: "duration_ns".to_owned(),
                    ..Column::default()
                },
                values: durations,
            }],
            ..Table::default()
        }
    }

    #[test]
    fn the_slowest_are_beside_those_around_the_median() {
        let many = table((0..1000).rev().map(f64::from).collect());
        let [typical, slow] = typical_and_slow(&many).unwrap();
        assert_eq!((typical.len(), typical[0], typical[499]), (500, 250, 749));
        assert_eq!(slow, (0..10).collect::<Vec<_>>());
        let few = typical_and_slow(&table(vec![3.0, 1.0, 2.0, 9.0])).unwrap();
        assert_eq!(few, [vec![0, 2], vec![3]]);
        assert_eq!(
            typical_and_slow(&table(vec![])).unwrap(),
            [Group::new(), Group::new()]
        );
    }

    #[test]
    fn figures_that_tell_groups_apart_come_first() {
        let higher = |first: &[f64], second: &[f64]| {
            numbers([&mut first.to_vec(), &mut second.to_vec()]).higher
        };
        assert_eq!(higher(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(higher(&[3.0, 4.0], &[1.0, 2.0]), 0.0);
        assert_eq!(higher(&[1.0, 2.0, 3.0], &[2.0]), 0.5);
        assert_eq!(higher(&[], &[2.0]), 0.5);
    }
}
