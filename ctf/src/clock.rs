//! Clocks: convert values in cycles to nanoseconds from the clock's origin.

use crate::correction::Correction;
use crate::schema::{ClockClass, ClockOrigin};
pub use crate::timestamp::Timestamp;

const SECOND: i64 = 1_000_000_000;

/// End of messages on times that a [`Timestamp`] cannot hold. An origin for each trace, so that
/// only differences are stored, was rejected: times of two traces, of `--from` and of histories
/// could then not be compared. A clock that reads the year 2300 has a wrong description;
/// babeltrace2 refuses such a trace.
pub(crate) const OUT_OF_RANGE: &str = "is more than 292 years from the clock's origin, out of the range of 64-bit \
    nanoseconds, and is replaced by the nearest time in range (check the clock's frequency and offset in the metadata)";

/// Converts the values of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockConversion {
    frequency: u64,
    /// The time of value 0. It may be out of range even if later values are in range.
    base: i128,
    /// Equals `base` if `is_plain`.
    plain_base: i64,
    /// Cycles are nanoseconds, no correction applies, and the base is in range.
    is_plain: bool,
    correction: Option<&'static Correction>,
}

impl ClockConversion {
    /// For a clock class; for streams without a clock, use [`ClockConversion::NONE`].
    pub fn new(clock: &ClockClass) -> Self {
        let frequency = clock.frequency.max(1);
        let cycles = i128::from(clock.offset_cycles);
        let whole = cycles.div_euclid(i128::from(frequency));
        let rest = cycles.rem_euclid(i128::from(frequency));
        let base = (i128::from(clock.offset_seconds) + whole) * i128::from(SECOND)
            + nanoseconds(u64::try_from(rest).unwrap_or_default(), frequency);
        let plain_base = i64::try_from(base)
            .ok()
            .filter(|_| frequency == SECOND as u64);
        ClockConversion {
            frequency,
            base,
            plain_base: plain_base.unwrap_or_default(),
            is_plain: plain_base.is_some(),
            correction: None,
        }
    }

    /// For streams without a clock: values are nanoseconds from 0.
    pub const NONE: ClockConversion = ClockConversion {
        frequency: SECOND as u64,
        base: 0,
        plain_base: 0,
        is_plain: true,
        correction: None,
    };

    /// The same conversion with a correction of its times.
    pub fn corrected(self, correction: &'static Correction) -> Self {
        ClockConversion {
            is_plain: false,
            correction: Some(correction),
            ..self
        }
    }

    /// Nanoseconds from the origin. Saturates, see [`ClockConversion::is_out_of_range`].
    #[inline(always)]
    pub fn timestamp(self, cycles: u64) -> Timestamp {
        if self.is_plain {
            return Timestamp(self.plain_base.saturating_add_unsigned(cycles));
        }
        self.converted(cycles)
    }

    fn converted(self, cycles: u64) -> Timestamp {
        let time = Timestamp(saturated(self.exact(cycles)));
        self.correction
            .map_or(time, |correction| correction.apply(time))
    }

    /// Nanoseconds before the correction.
    fn exact(self, cycles: u64) -> i128 {
        self.base + nanoseconds(cycles, self.frequency)
    }

    /// Whether the time of this value is out of range for [`Timestamp`] or for the correction, so
    /// that [`ClockConversion::timestamp`] saturates.
    pub fn is_out_of_range(self, cycles: u64) -> bool {
        let exact = self.exact(cycles);
        let Ok(time) = i64::try_from(exact) else {
            return true;
        };
        self.correction
            .is_some_and(|correction| correction.saturates(Timestamp(time)))
    }

    /// The smallest value in cycles whose timestamp is not before `time`.
    pub fn cycles_at(self, time: Timestamp) -> u64 {
        let (mut low, mut high) = (0u64, u64::MAX);
        if self.timestamp(low) >= time {
            return 0;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.timestamp(middle) >= time {
                high = middle
            } else {
                low = middle
            }
        }
        high
    }
}

/// babeltrace2 converts in double precision; equal output needs equal rounding.
fn nanoseconds(cycles: u64, frequency: u64) -> i128 {
    if frequency == SECOND as u64 {
        return i128::from(cycles);
    }
    (1e9 * cycles as f64 / frequency as f64) as i128
}

fn saturated(nanoseconds: i128) -> i64 {
    let least = if nanoseconds < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(nanoseconds).unwrap_or(least)
}

/// Whether times of two clocks are comparable: both clocks have the same known origin, or the same
/// uid (CTF 1.8: UUID).
pub fn comparable(a: &ClockClass, b: &ClockClass) -> bool {
    match (&a.origin, &b.origin) {
        (ClockOrigin::UnixEpoch, ClockOrigin::UnixEpoch) => true,
        (
            ClockOrigin::Custom {
                namespace: n1,
                name: m1,
                uid: u1,
            },
            ClockOrigin::Custom {
                namespace: n2,
                name: m2,
                uid: u2,
            },
        ) => n1 == n2 && m1 == m2 && u1 == u2,
        _ => a.uid.is_some() && a.uid == b.uid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(frequency: u64, offset_seconds: i64, offset_cycles: i64) -> ClockClass {
        ClockClass {
            id: "c".into(),
            name: None,
            namespace: None,
            uid: None,
            uuid: None,
            description: None,
            frequency,
            precision: None,
            accuracy: None,
            offset_seconds,
            offset_cycles,
            origin: ClockOrigin::UnixEpoch,
        }
    }

    #[test]
    fn offsets_may_be_negative_or_long() {
        let convert = |frequency, seconds, cycles, value| {
            ClockConversion::new(&clock(frequency, seconds, cycles))
                .timestamp(value)
                .0
        };
        assert_eq!(convert(1_000_000_000, 5, 7, 1), 5_000_000_008);
        assert_eq!(convert(1_000_000_000, -1, 0, 1), -999_999_999);
        assert_eq!(convert(1_000_000_000, 0, -3, 1), -2);
        assert_eq!(convert(1000, 1, 2500, 1), 3_501_000_000);
    }

    #[test]
    fn only_times_out_of_range_saturate() {
        let convert = |frequency, seconds, cycles, value| {
            let conversion = ClockConversion::new(&clock(frequency, seconds, cycles));
            (
                conversion.timestamp(value).0,
                conversion.is_out_of_range(value),
            )
        };
        let far = 9_300_000_000;
        assert_eq!(convert(1_000_000_000, far, 0, 1), (i64::MAX, true));
        assert_eq!(convert(1_000_000_000, -far, 0, 1), (i64::MIN, true));
        assert_eq!(convert(1, 0, i64::MAX, u64::MAX), (i64::MAX, true));
        assert_eq!(convert(u64::MAX, i64::MIN, i64::MIN, 0), (i64::MIN, true));
        // The zero of the clock is out of range, its values are not.
        let value = 12_000_000_000_000_000_007;
        assert_eq!(
            convert(1_000_000_000, -far, 0, value),
            (2_700_000_000_000_000_007, false)
        );
        // Double precision rounds.
        assert_eq!(convert(1, -far, 0, far as u64 + 7), (7_000_000_512, false));
        assert_eq!(convert(1, far, -far, 5), (5_000_000_000, false));
        let last = i64::MAX as u64;
        assert_eq!(convert(1_000_000_000, 0, 0, last), (i64::MAX, false));
        assert_eq!(convert(1_000_000_000, 0, 0, last + 1), (i64::MAX, true));
        assert_eq!(convert(1_000_000_000, 0, -1, last + 1), (i64::MAX, false));
    }

    #[test]
    fn cycles_at_is_the_inverse() {
        for frequency in [1, 1000, 999_999_937, 1_000_000_000, 3_000_000_000] {
            let conversion = ClockConversion::new(&clock(frequency, 3, 1));
            for time in [0, 3_000_000_000, 4_000_000_123, 9_876_543_210_123] {
                let cycles = conversion.cycles_at(Timestamp(time));
                assert!(conversion.timestamp(cycles).0 >= time);
                assert!(cycles == 0 || conversion.timestamp(cycles - 1).0 < time);
            }
        }
    }

    #[test]
    fn corrected_times_have_an_inverse_too() {
        let piece = |from, offset_ns, drift_e18| crate::correction::Piece {
            from: Timestamp(from),
            offset_ns,
            offset_e9: 0,
            drift_e18,
        };
        let pieces = [
            piece(0, -400, -300_000_000_000_000_000),
            piece(1000, -600, 0),
        ];
        let correction = Correction::new([&pieces[..]]).expect("sound");
        let correction: &'static Correction = Box::leak(Box::new(correction));
        let plain = ClockConversion::new(&clock(1_000_000_000, 0, 5));
        let conversion = plain.corrected(correction);
        assert_eq!(conversion.timestamp(1995).0, 1400);
        for time in [-1000, 0, 300, 399, 400, 401, 5000] {
            let cycles = conversion.cycles_at(Timestamp(time));
            assert!(conversion.timestamp(cycles).0 >= time);
            assert!(cycles == 0 || conversion.timestamp(cycles - 1).0 < time);
        }
    }
}
