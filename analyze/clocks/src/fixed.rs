//! Fixed-point times with fractions of a nanosecond.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::hull::{LIMIT, Point, Slope};

/// A time or a duration in units of 2⁻³⁰ ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fixed(i128);

const PLACES: u32 = 30;
const E9: i128 = 1_000_000_000;

impl Fixed {
    /// Converts from whole nanoseconds.
    pub fn whole(nanoseconds: i64) -> Fixed {
        Fixed(i128::from(nanoseconds) << PLACES)
    }

    /// The value at `x` of the line of `slope` through `point`, rounded down. `x` is clamped to
    /// ±[`LIMIT`].
    pub(crate) fn on_line(point: Point, slope: Slope, x: i64) -> Fixed {
        let along = i128::from(x.clamp(-LIMIT, LIMIT)) - i128::from(point.x);
        let rise = along * slope.num();
        let (whole, rest) = (rise.div_euclid(slope.den()), rise.rem_euclid(slope.den()));
        // The result saturates: a line can be steep enough to overflow outside the points that
        // define it.
        let whole = whole
            .saturating_add(i128::from(point.y))
            .saturating_mul(1 << PLACES);
        Fixed(whole.saturating_add((rest << PLACES) / slope.den()))
    }

    /// Rounds to the nearest nanosecond; saturates.
    pub fn round(self) -> i64 {
        let whole = self.0.saturating_add(1 << (PLACES - 1)) >> PLACES;
        whole.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Nanoseconds as a float, for display.
    pub fn nanoseconds(self) -> f64 {
        self.0 as f64 / f64::from(1u32 << PLACES)
    }

    /// Whole nanoseconds, rounded down, and the remainder in units of 10⁻⁹ ns.
    pub(crate) fn parts(self) -> (i64, u32) {
        let whole = self.0 >> PLACES;
        let rest = ((self.0 & ((1 << PLACES) - 1)) * E9) >> PLACES;
        let whole = whole.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        (whole, u32::try_from(rest).unwrap_or(0))
    }

    pub(crate) fn quarter(self) -> Fixed {
        Fixed(self.0 >> 2)
    }

    pub(crate) fn half(self) -> Fixed {
        Fixed(self.0 >> 1)
    }

    pub(crate) fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// This duration divided by `nanoseconds` (at least 1), in units of 10⁻¹⁸; `None` if the ratio
    /// exceeds 9.
    pub(crate) fn over_e18(self, nanoseconds: i64) -> Option<i64> {
        let whole = i128::from(nanoseconds.max(1)) << PLACES;
        // A larger ratio is useless and might overflow.
        if self.0.unsigned_abs() / 9 >= whole.unsigned_abs() {
            return None;
        }
        let scaled = self.0.checked_mul(E9)?;
        let (first, rest) = (scaled.div_euclid(whole), scaled.rem_euclid(whole));
        let second = rest.checked_mul(E9)?.div_euclid(whole);
        i64::try_from(first.checked_mul(E9)?.checked_add(second)?).ok()
    }

    /// Distance to the zero of a linear function that has this value at 0 and the value `end`, of
    /// opposite sign, at `length` nanoseconds.
    pub(crate) fn zero_before(self, end: Fixed, length: i64) -> Option<i64> {
        let all = self.0.checked_sub(end.0)?;
        // 62 bits of the ratio are enough.
        let digits = i128::BITS - all.unsigned_abs().leading_zeros();
        let more = digits.saturating_sub(62);
        let parts = (self.0 >> more).checked_mul(i128::from(length))?;
        i64::try_from(parts.checked_div(all >> more)?).ok()
    }
}

impl Add for Fixed {
    type Output = Fixed;

    fn add(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_add(other.0))
    }
}

impl Sub for Fixed {
    type Output = Fixed;

    fn sub(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_parts_of_nanoseconds() {
        let point = Point { x: 10, y: 100 };
        let at = |x| Fixed::on_line(point, Slope::new(3, 4), x);
        assert_eq!([at(10), at(14)], [Fixed::whole(100), Fixed::whole(103)]);
        assert_eq!(at(11).parts(), (100, 750_000_000));
        assert_eq!(at(9).parts(), (99, 250_000_000));
        assert_eq!([at(12).round(), at(9).round()], [102, 99]);
        assert_eq!((at(11) - at(9)).nanoseconds(), 1.5);
    }

    #[test]
    fn ratios_are_exact() {
        assert_eq!(Fixed::whole(-1).over_e18(3), Some(-333_333_333_333_333_334));
        assert_eq!(Fixed::whole(1).over_e18(1_000_000_000), Some(1_000_000_000));
        assert_eq!(Fixed::whole(i64::MAX).over_e18(1), None);
        assert_eq!(
            Fixed::whole(LIMIT).over_e18(LIMIT),
            Some(1_000_000_000_000_000_000)
        );
        assert_eq!(
            Fixed::whole(10).zero_before(Fixed::whole(-30), 100),
            Some(25)
        );
        let far = (Fixed::whole(-LIMIT), Fixed::whole(LIMIT));
        assert_eq!(far.0.zero_before(far.1, LIMIT), Some(LIMIT / 2));
    }

    #[test]
    fn extremes_saturate() {
        let corner = Point {
            x: LIMIT - 1,
            y: 1 - LIMIT,
        };
        for slope in [
            Slope::new(i64::MAX, 1),
            Slope::new(-i64::MAX, 1),
            Slope::new(3, 2),
        ] {
            for x in [i64::MIN, 0, i64::MAX] {
                let far = Fixed::on_line(corner, slope, x);
                let _ = (
                    far.round(),
                    far.parts(),
                    (far + far).quarter(),
                    far - far,
                    far.over_e18(1),
                );
            }
        }
    }
}
