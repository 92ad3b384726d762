//! Sums of the times of a group's executions in a context, as needed for the mean, the deviation
//! and the test of a difference.
//!
//! All sums are integers, so they do not depend on the order of executions. The page computes the
//! same sums (`web/src/engine/sums.ts`), although it adds and removes executions while a selection
//! moves.

use crate::permutation::Pool;
use crate::statistics::Spread;

/// Sums of times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) present: u64,
    sum: u128,
    squares: u128,
    /// By octave of times, ascending; empty octaves are left out.
    octaves: Vec<Octave>,
}

/// Times of which the greatest is less than twice the least.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Octave {
    number: u32,
    count: u64,
    sum: u128,
}

/// Times below 2^(`FIRST` + 1) ns (2 µs) share one octave.
const FIRST: u32 = 10;
/// Times of 2^35 ns (34 s) and more are one octave.
const OCTAVES: u32 = 26;
/// Maximum ratio of standard deviation to mean within an octave; above it an atom of the octave
/// would be negative.
const WIDEST: f64 = 0.57;

/// Octave of a time, which must not be 0.
fn octave_of(time: u64) -> u32 {
    time.ilog2().saturating_sub(FIRST).min(OCTAVES - 1)
}

impl Sums {
    /// Adds the time of an execution in the context.
    pub(crate) fn add(&mut self, time: u64) {
        if time == 0 {
            return;
        }
        let number = octave_of(time);
        let time = u128::from(time);
        self.present += 1;
        self.sum += time;
        self.squares = self.squares.saturating_add(time * time);
        let place = self
            .octaves
            .partition_point(|octave| octave.number < number);
        match self.octaves.get_mut(place) {
            Some(octave) if octave.number == number => {
                octave.count += 1;
                octave.sum += time;
            }
            _ => {
                let octave = Octave {
                    number,
                    count: 1,
                    sum: time,
                };
                self.octaves.insert(place, octave);
            }
        }
    }

    /// Sum of all times.
    pub(crate) fn sum(&self) -> f64 {
        self.sum as f64
    }

    pub(crate) fn spread(&self, executions: u64) -> Spread {
        let count = executions as f64;
        let mean = self.sum as f64 / count.max(1.0);
        // Computed exactly in integers: it is the difference of two nearly equal numbers.
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

/// Times of two groups together, which have `executions` executions in all. The mean of each octave
/// and the overall deviation are those of the times; all octaves have the same deviation relative
/// to their means.
pub(crate) fn pool([one, other]: [&Sums; 2], executions: u64) -> Pool {
    let mut octaves: Vec<Octave> = one.octaves.iter().chain(&other.octaves).copied().collect();
    octaves.sort_by_key(|octave| octave.number);
    octaves.dedup_by(|next, octave| {
        let is_same = next.number == octave.number;
        if is_same {
            octave.count += next.count;
            octave.sum += next.sum;
        }
        is_same
    });
    let square = |octave: &Octave| (octave.sum as f64).powi(2) / octave.count as f64;
    let between: f64 = octaves.iter().map(square).sum();
    let of_many = octaves.iter().filter(|octave| octave.count > 1);
    let of_many: f64 = of_many.map(square).sum();
    let within = one.squares.saturating_add(other.squares) as f64 - between;
    let relative = match of_many > 0.0 {
        true => (within / of_many).max(0.0).sqrt().min(WIDEST),
        false => 0.0,
    };
    let mut pool = Pool::default();
    let present = one.present + other.present;
    pool.push(0.0, executions.saturating_sub(present) as f64);
    for octave in octaves {
        let (sum, count) = (octave.sum as f64, octave.count as f64);
        let mean = sum / count;
        let deviation = if octave.count > 1 {
            relative * mean
        } else {
            0.0
        };
        pool.push_spread(mean, deviation, count);
    }
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octaves_end_at_powers_of_two() {
        let found = [1, 2047, 2048, 4095, 4096, (1 << 35) - 1, 1 << 35, u64::MAX].map(octave_of);
        assert_eq!(found, [0, 0, 1, 1, 2, 24, 25, 25]);
    }

    #[test]
    fn a_time_of_zero_is_no_presence() {
        let mut sums = Sums::default();
        [0, 5, 0].into_iter().for_each(|time| sums.add(time));
        assert_eq!((sums.present, sums.spread(3).mean), (1, 5.0 / 3.0));
    }
}
