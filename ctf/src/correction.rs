//! Corrections of times: from the clock of one machine to the clock of another.
//!
//! A correction is a list of steps, applied one after the other. Each step is a line or a sequence
//! of lines. All arithmetic uses integers: equal times remain equal, and order is preserved.

use crate::timestamp::Timestamp;

/// A straight line: the amount that is added to all times from `from` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Start of the piece, by the uncorrected clock. The first piece of a step also applies to all
    /// earlier times.
    pub from: Timestamp,
    /// Amount added at `from`: whole nanoseconds.
    pub offset_ns: i64,
    /// Amount added at `from`, besides `offset_ns`: billionths of a nanosecond, less than 10⁹.
    pub offset_e9: u32,
    /// Amount added for each nanosecond since `from`, in 10⁻¹⁸ nanoseconds. A clock that is slow by
    /// one part in a million has 10¹².
    pub drift_e18: i64,
}

/// Converts times of one clock to times of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    steps: Vec<Vec<Line>>,
}

/// The reason why pieces form no valid correction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorrectionError {
    /// A step without pieces.
    #[error("a step has no pieces")]
    Empty,
    /// Drift is more than a half.
    #[error("a piece has a drift of {0} parts in 10¹⁸: expecting at most 5·10¹⁷")]
    Drift(i64),
    /// Offset is more than 73 years.
    #[error("a piece has an offset of {0} ns: expecting at most 2305843009213693952 (73 years)")]
    Offset(i64),
    /// Fraction is 10⁹ or more.
    #[error(
        "a piece has a fraction of {0} billionths of a nanosecond: expecting less than 1000000000"
    )]
    Fraction(u32),
    /// Pieces are not in order, or time would go back from one piece to the next.
    #[error("time goes back at the piece from {0} ns")]
    Backwards(i64),
}

/// Largest drift, in 10⁻¹⁸. With at most a half, no calculation overflows, and time never goes
/// back.
const MOST_DRIFT: i64 = E18 / 2;
/// Largest offset, in nanoseconds: 73 years, more than the time since 1970.
const MOST_OFFSET: u64 = 1 << 61;
/// Corrected times are clamped to ±`FARTHEST`, so that the difference of two times never overflows.
const FARTHEST: i64 = (1 << 62) - 1;
const E18: i64 = 1_000_000_000_000_000_000;
const E9: i128 = 1_000_000_000;
/// Binary places after the point.
const PLACES: u32 = 62;

/// A piece in the form used for calculation: fractions of a nanosecond are in units of 2⁻⁶².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    from: i64,
    /// At most 2¹²⁴.
    offset: i128,
    /// At most 2⁶¹.
    rate: i64,
}

impl Line {
    fn new(piece: &Piece) -> Result<Line, CorrectionError> {
        if piece.drift_e18.unsigned_abs() > MOST_DRIFT.unsigned_abs() {
            return Err(CorrectionError::Drift(piece.drift_e18));
        }
        if piece.offset_ns.unsigned_abs() > MOST_OFFSET {
            return Err(CorrectionError::Offset(piece.offset_ns));
        }
        if i128::from(piece.offset_e9) >= E9 {
            return Err(CorrectionError::Fraction(piece.offset_e9));
        }
        let one = 1i128 << PLACES;
        let fraction = i128::from(piece.offset_e9) * one / E9;
        let rate = (i128::from(piece.drift_e18) * one).div_euclid(i128::from(E18));
        Ok(Line {
            from: piece.from.0,
            offset: i128::from(piece.offset_ns) * one + fraction,
            rate: i64::try_from(rate).map_err(|_| CorrectionError::Drift(piece.drift_e18))?,
        })
    }

    /// Rounds to the nearest nanosecond, so that relations that hold for exact times and whole
    /// nanoseconds are preserved.
    fn at(&self, time: i64) -> i64 {
        // At most 2⁶⁴ × 2⁶¹, so the sum stays below 2¹²⁷.
        let since = i128::from(time) - i128::from(self.from);
        let moved = self.offset + since * i128::from(self.rate) + (1i128 << (PLACES - 1));
        let time = i128::from(time) + (moved >> PLACES);
        time.clamp(i128::from(-FARTHEST), i128::from(FARTHEST)) as i64
    }
}

impl Correction {
    /// Creates a correction from steps, which are applied one after the other. The pieces of each
    /// step are in the order of time.
    ///
    /// # Errors
    /// If a step has no pieces, a drift is more than a half, an offset is more than 73 years, or a
    /// piece begins before the time that the previous piece has reached.
    pub fn new<'p>(
        steps: impl IntoIterator<Item = &'p [Piece]>,
    ) -> Result<Correction, CorrectionError> {
        let steps = steps.into_iter().map(|pieces| {
            let lines: Result<Vec<Line>, _> = pieces.iter().map(Line::new).collect();
            let lines = lines?;
            if lines.is_empty() {
                return Err(CorrectionError::Empty);
            }
            for (before, after) in lines.iter().zip(lines.iter().skip(1)) {
                let goes_on =
                    before.from < after.from && before.at(after.from - 1) <= after.at(after.from);
                if !goes_on {
                    return Err(CorrectionError::Backwards(after.from));
                }
            }
            Ok(lines)
        });
        Ok(Correction {
            steps: steps.collect::<Result<_, _>>()?,
        })
    }

    /// Whether [`Correction::apply`] saturates for this time.
    pub(crate) fn saturates(&self, time: Timestamp) -> bool {
        self.apply(time).0.unsigned_abs() >= FARTHEST.unsigned_abs()
    }

    /// The same moment by the other clock. Monotonic; saturates in the years 1823 and 2116.
    pub fn apply(&self, time: Timestamp) -> Timestamp {
        let step = |time, lines: &Vec<Line>| {
            let later = lines.partition_point(|line| line.from <= time);
            let line = lines.get(later.saturating_sub(1));
            line.map_or(time, |line| line.at(time))
        };
        Timestamp(self.steps.iter().fold(time.0, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from: i64, offset_ns: i64, drift_e18: i64) -> Piece {
        Piece {
            from: Timestamp(from),
            offset_ns,
            offset_e9: 0,
            drift_e18,
        }
    }

    #[test]
    fn lines_follow_each_other() {
        // A millisecond ahead and 100 ppm slow; from second 1 on at the speed of the other clock.
        let first = piece(0, 1_000_000, 100_000_000_000_000);
        let second = piece(1_000_000_000, 1_100_000, 0);
        let correction = Correction::new([&[first, second][..]]).expect("sound");
        let at = |time| correction.apply(Timestamp(time)).0 - time;
        assert_eq!(at(0), 1_000_000);
        assert_eq!(at(-1_000_000_000), 900_000);
        assert_eq!(at(500_000_000), 1_050_000);
        assert_eq!([at(1_000_000_000), at(9_000_000_000)], [1_100_000; 2]);
        let twice = Correction::new([&[first][..], &[piece(0, -7, 0)][..]]).expect("sound");
        assert_eq!(twice.apply(Timestamp(0)).0, 999_993);
    }

    #[test]
    fn parts_of_nanoseconds_count() {
        let half = Piece {
            offset_e9: 500_000_000,
            ..piece(0, 0, 250_000_000_000_000_000)
        };
        let correction = Correction::new([&[half][..]]).expect("sound");
        let at = |time| correction.apply(Timestamp(time)).0;
        // 0.5, 1.75, 3 and 4.25 are rounded to the nearest integer, halves up.
        assert_eq!([at(0), at(1), at(2), at(3)], [1, 2, 3, 4]);
    }

    #[test]
    fn absurd_corrections_are_refused_or_saturate() {
        let refused = |pieces: &[Piece]| Correction::new([pieces]).is_err();
        assert!(refused(&[]));
        assert!(refused(&[piece(0, 0, i64::MAX)]) && refused(&[piece(0, 0, i64::MIN)]));
        assert!(refused(&[piece(0, i64::MAX, 0)]) && refused(&[piece(0, i64::MIN, 0)]));
        assert!(refused(&[piece(5, 0, 0), piece(5, 0, 0)]));
        assert!(refused(&[piece(0, 10, 0), piece(5, 0, 0)]));
        let fraction = Piece {
            offset_e9: 1_000_000_000,
            ..Piece::default()
        };
        assert!(refused(&[fraction]));
        for from in [i64::MIN, 0, i64::MAX] {
            for offset in [-1 << 61, 0, 1 << 61] {
                for drift in [-MOST_DRIFT, 0, MOST_DRIFT] {
                    let correction =
                        Correction::new([&[piece(from, offset, drift)][..]]).expect("sound");
                    let times = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
                    let found = times.map(|time| correction.apply(Timestamp(time)));
                    assert!(found.is_sorted(), "{from} {offset} {drift}: {found:?}");
                    assert!(found[6].0.checked_sub(found[0].0).is_some());
                }
            }
        }
    }
}
