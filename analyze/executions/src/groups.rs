//! Two groups of executions of a table, and which figures and texts tell them apart.

use crate::compare::{SURE, Times};
use crate::database::{Database, Figures, Table};
use crate::multiple_testing::{correct, least_chance};
use crate::statistics::{Numbers, Spread, Test, coarse, numbers, surer, test};
use crate::texts::{TextSeparation, rank, texts};

/// Places of executions in their table, ascending.
pub type Group = Vec<usize>;

/// The places that are chosen.
pub fn group(chosen: &[bool]) -> Group {
    let places = chosen.iter().enumerate();
    places
        .filter_map(|(place, is)| is.then_some(place))
        .collect()
}

/// Groups when none are asked for: the half around the median, and the slowest hundredth (five at
/// least, if there are twenty). None if durations are not known.
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

/// Times of a group's executions.
pub fn times<'t>(table: &'t Table, group: &[usize]) -> Vec<Times<'t>> {
    group.iter().map(|&row| table.rows.of(row)).collect()
}

/// A figure in two groups.
#[derive(Clone, Copy, Debug)]
pub struct Separation<'t> {
    /// The figure.
    pub figures: &'t Figures,
    /// The groups.
    pub groups: [Spread; 2],
    /// How they differ; its chance is corrected for the number of figures.
    pub test: Test,
    /// How probable it is that an execution of the second group has more of it than one of the
    /// first, ties being half: 1 or 0 if it tells the groups apart, 0.5 if it tells nothing (the
    /// area under the ROC curve; Mann and Whitney, 1947).
    pub higher: f64,
}

impl Separation<'_> {
    /// True if the probability [`Separation::higher`] differs from 0.5, so that the figure is worth
    /// a row.
    pub fn tells(&self) -> bool {
        self.higher != 0.5
    }
}

/// What tells two groups apart: the best first.
#[derive(Clone, Debug, Default)]
pub struct Apart<'t> {
    /// Figures, of those as good as each other the surest first.
    pub figures: Vec<Separation<'t>>,
    /// Texts.
    pub texts: Vec<TextSeparation>,
}

/// Which figures and texts tell two groups apart. Chances are corrected for the number of each.
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
    /// Whether the figure differs significantly, if its probability is corrected.
    pub fn is_sure(&self) -> bool {
        self.test.chance < SURE
    }
}

/// The figures in two groups, with the least probability that each can have. Probabilities are not
/// corrected.
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

/// Probability of so large a difference by chance, by means or by ranks; and the least possible
/// one.
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
