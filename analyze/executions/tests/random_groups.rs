//! Comparisons of random groups of plain requests of a real program, which must not be significant;
//! and known causes, compared with a plain permutation test.

use tracebraid_engine::Options;
use tracebraid_executions::{Contexts, Times, compare};

use crate::truth::{SURE, of_cause, requests};

/// Number of plain requests, and sizes of the smaller group.
const PLAIN: usize = 1806;
const SIZES: [usize; 4] = [20, 100, 200, 903];

/// Fisher and Yates, with a linear congruential generator (Knuth's constants).
struct Shuffle(u64);

impl Shuffle {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// Shuffles this number of random elements to the beginning of a list.
    fn choose<T>(&mut self, list: &mut [T], count: usize) {
        for at in 0..count {
            let other = at + self.below(list.len() - at);
            list.swap(at, other);
        }
    }
}

/// At most 5 % of random splits may show a significant difference, in own and total times together.
/// Of 400 splits at a rate of 5 %, at most 28 are significant with a probability of 97 %. 1 % is
/// expected for each of both lists.
#[test]
fn random_groups_of_any_size_do_not_differ() {
    const SPLITS: usize = 100;
    let (requests, contexts, _) = requests(Options::default());
    let mut plain = of_cause(&requests, "none");
    plain.truncate(PLAIN);
    assert_eq!(plain.len(), PLAIN);
    let mut shuffle = Shuffle(1);
    let mut wrong = [0; SIZES.len()];
    for (size, wrong) in SIZES.iter().zip(&mut wrong) {
        for split in 0..SPLITS {
            shuffle.choose(&mut plain, *size);
            let (few, many) = plain.split_at(*size);
            let groups = if split % 2 == 0 {
                [few, many]
            } else {
                [many, few]
            };
            let surest = compare(&contexts, groups)
                .first()
                .map_or(1.0, |of| of.test.chance);
            *wrong += usize::from(surest < SURE);
        }
    }
    println!("{wrong:?} of {SPLITS} splits are significant, with groups of {SIZES:?}");
    assert!(
        wrong.iter().all(|&wrong| wrong * 100 <= 5 * SPLITS),
        "{wrong:?}"
    );
}

/// A plain permutation test with the maximum over contexts (Westfall and Young, "Resampling-based
/// multiple testing", 1993): for each context, the probability that any context of a random group
/// of this size is as far from its expected value.
struct Maximum {
    expected: Vec<f64>,
    deviation: Vec<f64>,
    size: usize,
    /// The greatest distance of each random group, ascending.
    greatest: Vec<f64>,
}

fn sums(contexts: &Contexts, group: &[Times<'_>]) -> Vec<f64> {
    let mut sums = vec![0.0; contexts.count()];
    for (context, time) in group.iter().flat_map(|times| times.iter()) {
        sums[context.0 as usize] += *time as f64;
    }
    sums
}

impl Maximum {
    fn new(contexts: &Contexts, all: &mut [Times<'_>], size: usize, rounds: usize) -> Maximum {
        let count = all.len() as f64;
        let mean: Vec<f64> = sums(contexts, all).iter().map(|sum| sum / count).collect();
        let mut squares = vec![0.0; mean.len()];
        for (context, time) in all.iter().flat_map(|times| times.iter()) {
            squares[context.0 as usize] += (*time as f64).powi(2);
        }
        let deviation = squares.iter().zip(&mean).map(|(squares, mean)| {
            let variance = squares / count - mean * mean;
            (variance * size as f64 * (count - size as f64) / (count - 1.0)).sqrt()
        });
        let mut found = Maximum {
            expected: mean.iter().map(|mean| mean * size as f64).collect(),
            deviation: deviation.collect(),
            size,
            greatest: Vec::new(),
        };
        let mut shuffle = Shuffle(7);
        for _ in 0..rounds {
            shuffle.choose(all, size);
            let far = found.far(contexts, &all[..size]);
            found.greatest.push(far.into_iter().fold(0.0, f64::max));
        }
        found.greatest.sort_by(f64::total_cmp);
        found
    }

    /// For each context, the distance of a group from its expected value.
    fn far(&self, contexts: &Contexts, group: &[Times<'_>]) -> Vec<f64> {
        assert_eq!(group.len(), self.size);
        let sums = sums(contexts, group);
        let of = |at: usize| match self.deviation[at] > 0.0 {
            true => ((sums[at] - self.expected[at]) / self.deviation[at]).abs(),
            false => 0.0,
        };
        (0..sums.len()).map(of).collect()
    }

    fn chance(&self, far: f64) -> f64 {
        let below = self.greatest.partition_point(|greatest| *greatest < far);
        (self.greatest.len() - below + 1) as f64 / (self.greatest.len() + 1) as f64
    }
}

/// Differences that the permutation test finds are significant here, too. Differences that are
/// significant here are among the most extreme of random groups.
#[test]
fn differences_are_those_of_a_permutation_test() {
    const ROUNDS: usize = 1500;
    let (requests, contexts, _) = requests(Options::default());
    let mut plain = of_cause(&requests, "none");
    plain.truncate(PLAIN);
    let causes = [
        "preempt",
        "lock_sleep",
        "lock_run",
        "backend_sleep",
        "backend_run",
        "disk",
    ];
    let [mut both, mut ours_alone, mut theirs_alone] = [0; 3];
    for cause in causes {
        for size in [12, 30] {
            let slow: Vec<Times<'_>> = of_cause(&requests, cause).into_iter().take(size).collect();
            let mut all = [&plain[..], &slow].concat();
            let model = Maximum::new(&contexts, &mut all, size, ROUNDS);
            let far = model.far(&contexts, &slow);
            let differences = compare(&contexts, [&plain, &slow]);
            let own: Vec<_> = differences.iter().filter(|of| !of.is_whole).collect();
            for of in &own {
                let theirs = model.chance(far[of.context.0 as usize]);
                // Equally significant differences are found by the maximum, too, except in rare
                // contexts, whose share in the maximum hides others.
                both += u32::from(of.is_sure() && theirs < SURE);
                ours_alone += u32::from(of.is_sure() && theirs >= SURE);
                theirs_alone += u32::from(!of.is_sure() && theirs < SURE);
                assert!(
                    theirs >= SURE || of.test.chance < 0.2,
                    "{cause}, {size}: {of:?} {theirs}"
                );
                // If no execution of a small group is in a common context, the deviation is small,
                // but significant.
                let is_far = far[of.context.0 as usize] > 3.0 || of.test.more < 0.0;
                assert!(!of.is_sure() || is_far, "{cause}, {size}: {of:?}");
            }
            let most = own
                .iter()
                .max_by(|one, other| one.test.more.total_cmp(&other.test.more))
                .unwrap();
            assert!(most.is_sure(), "{cause}, {size}: {most:?}");
        }
    }
    println!(
        "sure by both: {both}; here alone: {ours_alone}; by the maximum alone: {theirs_alone}"
    );
    assert!(
        both > 20 && theirs_alone * 5 <= both,
        "{both} {ours_alone} {theirs_alone}"
    );
}

/// Both tests on random groups: neither exceeds its stated error rate.
#[test]
fn a_permutation_test_finds_as_little_in_random_groups() {
    const SPLITS: usize = 60;
    let (requests, contexts, _) = requests(Options::default());
    let mut plain = of_cause(&requests, "none");
    plain.truncate(PLAIN);
    let model = Maximum::new(&contexts, &mut plain.clone(), 100, 800);
    let mut shuffle = Shuffle(3);
    let mut wrong = [0; 2];
    for _ in 0..SPLITS {
        shuffle.choose(&mut plain, 100);
        let (few, many) = plain.split_at(100);
        let differences = compare(&contexts, [many, few]);
        let ours = differences
            .iter()
            .filter(|of| !of.is_whole)
            .any(|of| of.is_sure());
        let theirs = model
            .far(&contexts, few)
            .into_iter()
            .any(|far| model.chance(far) < SURE);
        wrong[0] += usize::from(ours);
        wrong[1] += usize::from(theirs);
    }
    assert!(wrong.iter().all(|&wrong| wrong * 20 <= SPLITS), "{wrong:?}");
}
