//! Texts that separate two groups of executions: thread, host, captured texts.
//!
//! For each text, its shares in the two groups are compared. Pearson's chi-squared test (1900)
//! compares all texts at once; rare texts are taken together (Cochran, "Some methods for
//! strengthening the common χ² tests", 1954). Fisher's exact test compares each text by itself; the
//! most significant result is corrected for the number of texts. The strength of the association is
//! Cramér's V, corrected for its bias (Bergsma, "A bias-correction for Cramér's V and Tschuprow's
//! T", 2013): a text that differs in each execution has no association.

use std::collections::HashMap;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::compare::SURE;
use crate::database::{Database, Source, Table};
use crate::multiple_testing::{corrected, least_chance};
use crate::names::Names;
use crate::statistics::{coarse, presence, surer};

/// A text column in two groups.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSeparation {
    /// Name: `thread`, `host`, `label`, or that of a captured text.
    pub name: String,
    /// Number of executions in each group.
    pub groups: [u64; 2],
    /// Cramér's V: 0 without association, 1 if the texts separate the groups.
    pub association: f64,
    /// The text that differs most between the groups; `None` if it is the absence of a text.
    pub value: Option<String>,
    /// Share of that text in each group.
    pub shares: [f64; 2],
    /// Probability of so different texts by chance; corrected for the number of text columns that
    /// are tested.
    pub chance: f64,
}

/// A text column.
struct Column<'t> {
    name: &'t str,
    texts: Vec<&'t str>,
    /// Index in `texts` by execution.
    codes: Vec<Option<u32>>,
}

/// Comparison of all text columns in two groups, and the lowest probability that each can have.
/// Probabilities are not corrected.
pub(crate) fn texts(
    database: &Database,
    table: &Table,
    groups: [&[usize]; 2],
) -> Vec<(TextSeparation, f64)> {
    let columns = columns(database, table);
    columns
        .iter()
        .map(|column| tested(column, groups))
        .collect()
}

/// Sorts significant differences first, then by association.
pub(crate) fn rank(texts: &mut [TextSeparation]) {
    texts.sort_by(|one, other| {
        let by_sureness = other.is_sure().cmp(&one.is_sure());
        by_sureness.then(coarse(other.association).total_cmp(&coarse(one.association)))
    });
}

impl TextSeparation {
    /// True if the difference is significant, once its probability is corrected.
    pub fn is_sure(&self) -> bool {
        self.chance < SURE
    }

    /// True if the column is worth a row. With many different texts, the association may be 0
    /// although one of them separates the groups significantly.
    pub fn tells(&self) -> bool {
        self.association > 0.0 || self.is_sure()
    }
}

fn columns<'t>(database: &'t Database, table: &'t Table) -> Vec<Column<'t>> {
    let by_source = |name, text: fn(&Source) -> Option<&str>| {
        let texts: Vec<Option<&str>> = database.sources.iter().map(text).collect();
        let of = |source: &u32| texts.get(*source as usize).copied().flatten();
        column(name, table.sources.iter().map(of))
    };
    let thread = |thread: &Option<u32>| {
        let found = thread.and_then(|thread| database.threads.get(thread as usize));
        found.and_then(|thread| thread.name.as_deref())
    };
    let mut columns = vec![
        column("thread", table.threads.iter().map(thread)),
        by_source("host", |source| source.host.as_deref()),
        by_source("label", |source| Some(&source.label)),
    ];
    columns.extend(table.texts.iter().map(|of| Column {
        name: &of.column.name,
        texts: of.texts.iter().map(String::as_str).collect(),
        codes: of.codes.clone(),
    }));
    columns
}

/// A text column with distinct texts.
fn column<'t>(name: &'t str, of_rows: impl Iterator<Item = Option<&'t str>>) -> Column<'t> {
    let mut names = Names::default();
    let mut texts = Vec::new();
    let code = |text: Option<&'t str>| {
        let id = names.id(text?).0;
        if id as usize == texts.len() {
            texts.extend(text);
        }
        Some(id)
    };
    let codes = of_rows.map(code).collect();
    Column { name, texts, codes }
}

fn tested(column: &Column<'_>, groups: [&[usize]; 2]) -> (TextSeparation, f64) {
    let counts = counts(column, groups);
    let sizes = groups.map(|group| group.len() as u64);
    let (most, by_one) = surest(&counts, sizes);
    let share = |at: usize| {
        let count = counts.get(most).map_or(0, |counts| counts[at]);
        count as f64 / sizes[at].max(1) as f64
    };
    let chance = surer(chi_squared(&counts, sizes), by_one);
    let frequent = counts.iter().map(|of| of[0] + of[1]).max().unwrap_or(0);
    let least = least_chance(sizes, (sizes[0] + sizes[1]).saturating_sub(frequent));
    let separation = TextSeparation {
        name: column.name.to_owned(),
        groups: sizes,
        association: association(&counts, sizes),
        value: column.texts.get(most).map(|&text| text.to_owned()),
        shares: [share(0), share(1)],
        chance: chance.max(least),
    };
    (separation, least)
}

/// Number of executions of each group by text; the last entry counts executions without a text.
fn counts(column: &Column<'_>, groups: [&[usize]; 2]) -> Vec<[u64; 2]> {
    let mut counts = vec![[0; 2]; column.texts.len() + 1];
    for (at, group) in groups.into_iter().enumerate() {
        for &row in group {
            let code = column.codes.get(row).copied().flatten();
            let place = code.map_or(column.texts.len(), |code| code as usize);
            if let Some(counts) = counts.get_mut(place) {
                counts[at] += 1;
            }
        }
    }
    counts
}

/// Index of the text whose shares differ most significantly between the groups, and the probability
/// of that, corrected for the number of texts. Among equally significant texts, the one whose
/// shares differ most.
fn surest(counts: &[[u64; 2]], sizes: [u64; 2]) -> (usize, f64) {
    let mut known: HashMap<[u64; 2], [f64; 2]> = HashMap::new();
    let there = || {
        counts
            .iter()
            .enumerate()
            .filter(|(_, of)| of.iter().sum::<u64>() > 0)
    };
    let apart = |of: &[u64; 2]| {
        let [one, other] = [0, 1].map(|at| of[at] as f64 / sizes[at].max(1) as f64);
        coarse((one - other).abs())
    };
    let chances = there().map(|(place, of)| {
        let chances = *known.entry(*of).or_insert_with(|| {
            let chance = presence(*of, sizes);
            [chance, coarse(chance)]
        });
        (place, chances, apart(of))
    });
    let least = chances.min_by(|one, other| {
        one.1[1]
            .total_cmp(&other.1[1])
            .then(other.2.total_cmp(&one.2))
    });
    let mut possible: Vec<f64> = there()
        .map(|(_, of)| least_chance(sizes, of[0] + of[1]))
        .collect();
    // With two texts, the second test repeats the first.
    if possible.len() == 2 {
        possible.pop();
    }
    possible.sort_by(f64::total_cmp);
    least.map_or((counts.len(), 1.0), |(place, [chance, _], _)| {
        (place, corrected(chance, &possible))
    })
}

/// Expected number of executions of each group with a text, given the number in both.
fn expected(of: &[u64; 2], sizes: [u64; 2]) -> [f64; 2] {
    let all = (sizes[0] + sizes[1]).max(1) as f64;
    sizes.map(|size| (of[0] + of[1]) as f64 * size as f64 / all)
}

/// Pearson's chi-squared statistic.
fn distance(counts: &[[u64; 2]], sizes: [u64; 2]) -> f64 {
    let of_one = |of: &[u64; 2]| {
        let expected = expected(of, sizes);
        let part = |at: usize| match expected[at] {
            expected if expected > 0.0 => (of[at] as f64 - expected).powi(2) / expected,
            _ => 0.0,
        };
        part(0) + part(1)
    };
    counts.iter().map(of_one).sum()
}

/// Minimum expected number of executions of each group with a text; rarer texts are tested
/// together.
const ENOUGH: f64 = 5.0;

/// Probability of so different shares of all texts by chance.
fn chi_squared(counts: &[[u64; 2]], sizes: [u64; 2]) -> f64 {
    let is_enough = |of: &[u64; 2]| expected(of, sizes).iter().all(|&count| count >= ENOUGH);
    let (mut tested, few): (Vec<[u64; 2]>, Vec<_>) = counts.iter().copied().partition(is_enough);
    let together = few
        .iter()
        .fold([0; 2], |sum: [u64; 2], of| [sum[0] + of[0], sum[1] + of[1]]);
    if is_enough(&together) {
        tested.push(together);
    } else if let Some(least) = tested.iter_mut().min_by_key(|of| of[0] + of[1]) {
        *least = [least[0] + together[0], least[1] + together[1]];
    }
    if tested.len() < 2 {
        return 1.0;
    }
    let freedom = tested.len() as f64 - 1.0;
    ChiSquared::new(freedom).map_or(1.0, |distribution| {
        distribution.sf(distance(&tested, sizes))
    })
}

/// Cramér's V, corrected for its bias.
fn association(counts: &[[u64; 2]], sizes: [u64; 2]) -> f64 {
    let all = (sizes[0] + sizes[1]) as f64;
    let texts = counts.iter().filter(|of| of[0] + of[1] > 0).count() as f64;
    if sizes.contains(&0) || texts < 2.0 || all < 3.0 {
        return 0.0;
    }
    let by_chance = |rows: f64| (rows - 1.0) / (all - 1.0);
    let square = distance(counts, sizes) / all - by_chance(texts);
    let narrower = |rows: f64| rows - (rows - 1.0) * by_chance(rows);
    let most = (narrower(2.0) - 1.0).min(narrower(texts) - 1.0);
    match most > 0.0 {
        true => (square.max(0.0) / most).sqrt().min(1.0),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiple_testing::correct;

    fn of_texts<'t>(name: &'t str, texts: &'t [String]) -> Column<'t> {
        column(
            name,
            texts
                .iter()
                .map(|text| (!text.is_empty()).then_some(text.as_str())),
        )
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9 * other.abs().max(1e-3)
    }

    /// With two degrees of freedom the probability is exp(-x / 2) for the statistic x, here 10 + 10
    /// / 18 + 450 / 70.
    #[test]
    fn chances_are_those_of_the_tests() {
        let counts = [[30, 10], [20, 25], [10, 25]];
        let sum = 10.0 + 5.0 / 9.0 + 45.0 / 7.0;
        assert!(near(distance(&counts, [60, 60]), sum));
        assert!(near(chi_squared(&counts, [60, 60]), f64::exp(-sum / 2.0)));
        // The third and the fourth text are too rare: they are taken together.
        let few = [[30, 10], [25, 41], [3, 5], [2, 4]];
        assert!(near(
            chi_squared(&few, [60, 60]),
            chi_squared(&[[30, 10], [25, 41], [5, 9]], [60, 60])
        ));
        assert_eq!(chi_squared(&[[60, 60], [0, 0]], [60, 60]), 1.0);
    }

    #[test]
    fn a_text_that_only_one_group_has_tells_them_apart() {
        let texts: Vec<String> = (0..200)
            .map(|row| {
                if row >= 180 {
                    "disk"
                } else {
                    ["a", "b", "c"][row % 3]
                }
                .to_owned()
            })
            .collect();
        let rows: Vec<usize> = (0..200).collect();
        let found = tested(&of_texts("cause", &texts), [&rows[..180], &rows[180..]]).0;
        assert_eq!(
            (found.value.as_deref(), found.shares),
            (Some("disk"), [0.0, 1.0])
        );
        assert!(
            found.association > 0.98 && found.chance < 1e-12,
            "{found:?}"
        );
        // The absence of a text may separate the groups, too.
        let texts: Vec<String> = (0..40)
            .map(|row| if row < 20 { "" } else { "x" }.to_owned())
            .collect();
        let found = tested(&of_texts("id", &texts), [&rows[..20], &rows[20..40]]).0;
        assert!(found.association > 0.9 && found.chance < 1e-6, "{found:?}");
        assert!(found.shares.contains(&0.0) && found.shares.contains(&1.0));
    }

    #[test]
    fn one_text_among_very_many_tells() {
        // In the second group three of five executions have the text, in the first one in fifty;
        // all other texts are distinct.
        let text = |row: usize| match (row < 500, row % 50, row % 5) {
            (true, 0, _) | (false, _, 0..3) => "/report".to_owned(),
            _ => format!("/item/{row}"),
        };
        let texts: Vec<String> = (0..525).map(text).collect();
        let rows: Vec<usize> = (0..525).collect();
        let found = tested(&of_texts("op", &texts), [&rows[..500], &rows[500..]]).0;
        assert_eq!(
            (found.association, found.value.as_deref()),
            (0.0, Some("/report"))
        );
        assert!(found.tells() && found.chance < 1e-6, "{found:?}");
        let mut list = [
            TextSeparation {
                chance: 0.5,
                association: 0.1,
                ..found.clone()
            },
            found,
        ];
        rank(&mut list);
        assert!(list[0].is_sure());
    }

    #[test]
    fn texts_that_say_nothing_have_no_association() {
        let rows: Vec<usize> = (0..100).collect();
        let groups = [&rows[..90], &rows[90..]];
        let own: Vec<String> = (0..100).map(|row| format!("id {row}")).collect();
        let found = tested(&of_texts("id", &own), groups).0;
        assert!(found.association < 0.01 && found.chance > 0.5, "{found:?}");
        let same = vec!["x".to_owned(); 100];
        let found = tested(&of_texts("same", &same), groups).0;
        assert_eq!((found.association, found.chance), (0.0, 1.0));
        // Empty groups and single executions allow no inference.
        for groups in [
            [&rows[..0], &rows[..0]],
            [&rows[..1], &rows[..0]],
            [&rows[..1], &rows[1..2]],
        ] {
            let found = tested(&of_texts("id", &own), groups).0;
            assert!(found.chance >= 1.0 && found.association == 0.0, "{found:?}");
        }
    }

    /// Random divisions of executions with texts of all sorts are rarely significant.
    #[test]
    fn random_groups_do_not_differ() {
        const SPLITS: usize = 400;
        let mut random = 7u64;
        let mut below = move |bound: usize| {
            // Knuth's constants.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % bound
        };
        let mut made = |text: &mut dyn FnMut(usize) -> String| -> Vec<String> {
            (0..600).map(|_| text(below(1_000_000))).collect()
        };
        let all = [
            made(&mut |number| format!("worker {}", number % 8)),
            made(&mut |number| if number % 100 == 0 { "rare" } else { "" }.to_owned()),
            made(&mut |number| format!("id {number}")),
            made(&mut |number| format!("{}", number.trailing_zeros())),
            made(&mut |number| format!("path {}", number % 250)),
        ];
        let columns: Vec<Column<'_>> = all.iter().map(|texts| of_texts("text", texts)).collect();
        for size in [300, 40, 6] {
            let mut wrong = 0;
            let mut rows: Vec<usize> = (0..600).collect();
            for _ in 0..SPLITS {
                for at in (1..rows.len()).rev() {
                    rows.swap(at, below(at + 1));
                }
                let (few, others) = rows.split_at(size);
                let mut found: Vec<(TextSeparation, f64)> = columns
                    .iter()
                    .map(|column| tested(column, [others, few]))
                    .collect();
                correct(found.iter_mut().map(|(of, least)| (&mut of.chance, *least)));
                let found = found.into_iter().map(|(of, _)| of).collect::<Vec<_>>();
                wrong += usize::from(found.iter().any(|of| of.chance < 0.01));
            }
            // 1 % is expected.
            assert!(wrong <= 8, "{wrong} of {SPLITS} with {size}");
        }
    }
}
