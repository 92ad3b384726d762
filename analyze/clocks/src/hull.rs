//! One side of a convex hull.
//!
//! The result does not depend on the order in which points are inserted or partial hulls are
//! merged.

use serde::{Deserialize, Serialize};

/// Times at or beyond ±`LIMIT` are rejected: below it no product of two differences exceeds 126
/// bits. In nanoseconds since 1970 it is the year 2116.
pub const LIMIT: i64 = 1 << 62;

/// Maximum number of corners. Only points along a curve need more; every second corner is then
/// dropped. The smaller hull implies weaker bounds, but no wrong ones.
const MOST_CORNERS: usize = 256;

/// A time by one clock and the same moment's bound by another clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Time by the first clock.
    pub x: i64,
    /// Time by the second clock.
    pub y: i64,
}

/// The slope of a line: a fraction with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slope {
    num: i64,
    den: i64,
}

impl Slope {
    /// `num / den`; a denominator below 1 is replaced by 1.
    pub const fn new(num: i64, den: i64) -> Slope {
        let den = if den < 1 { 1 } else { den };
        Slope { num, den }
    }

    /// The slope from one point to another on its right; both within [`LIMIT`].
    pub(crate) fn between(left: Point, right: Point) -> Slope {
        Slope::new(right.y - left.y, right.x - left.x)
    }

    /// The slope as a float, for display.
    pub fn value(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    /// Excess over 1 in parts per million, for display.
    pub fn drift_ppm(self) -> f64 {
        let above = i128::from(self.num) - i128::from(self.den);
        above as f64 * 1e6 / self.den as f64
    }

    pub(crate) fn num(self) -> i128 {
        i128::from(self.num)
    }

    pub(crate) fn den(self) -> i128 {
        i128::from(self.den)
    }

    pub(crate) fn negated(self) -> Slope {
        Slope {
            num: -self.num,
            den: self.den,
        }
    }

    /// The intercept of the line of this slope through `point`, times the denominator.
    pub(crate) fn axis(self, point: Point) -> i128 {
        i128::from(point.y) * self.den() - i128::from(point.x) * self.num()
    }
}

impl PartialOrd for Slope {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.num() * other.den()).partial_cmp(&(other.num() * self.den()))
    }
}

/// Twice the signed area of the triangle; positive if `third` is left of the line `from`–`to`.
fn cross(from: Point, to: Point, third: Point) -> i128 {
    let along = (
        i128::from(to.x) - i128::from(from.x),
        i128::from(to.y) - i128::from(from.y),
    );
    let aside = (
        i128::from(third.x) - i128::from(from.x),
        i128::from(third.y) - i128::from(from.y),
    );
    along.0 * aside.1 - along.1 * aside.0
}

/// The upper side of a convex hull: all inserted points are on it or below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hull {
    /// Sorted by x; the chain turns right at each corner.
    corners: Vec<Point>,
}

impl Hull {
    /// Adds a point. Returns false if it is beyond [`LIMIT`] and was rejected.
    pub fn insert(&mut self, point: Point) -> bool {
        let is_near = |time: i64| -LIMIT < time && time < LIMIT;
        if !is_near(point.x) || !is_near(point.y) {
            return false;
        }
        if let Some(at) = self.place(point) {
            self.straighten(at);
            if self.corners.len() > MOST_CORNERS {
                self.thin();
            }
        }
        true
    }

    /// Inserts a point above the hull and returns its index; `None` if the hull already covers it.
    fn place(&mut self, point: Point) -> Option<usize> {
        let at = self.corners.partition_point(|corner| corner.x < point.x);
        if let Some(same) = self.corners.get_mut(at).filter(|same| same.x == point.x) {
            let is_higher = point.y > same.y;
            same.y = same.y.max(point.y);
            return is_higher.then_some(at);
        }
        let before = at
            .checked_sub(1)
            .and_then(|before| self.corners.get(before));
        if let (Some(&before), Some(&after)) = (before, self.corners.get(at))
            && cross(before, after, point) <= 0
        {
            return None;
        }
        self.corners.insert(at, point);
        Some(at)
    }

    /// Removes the neighbours of a new corner that are no longer corners.
    fn straighten(&mut self, mut at: usize) {
        let turns_right = |corners: &[Point], from: usize| match corners.get(from..from + 3) {
            Some(&[first, second, third]) => cross(first, second, third) < 0,
            _ => true,
        };
        while !turns_right(&self.corners, at) {
            self.corners.remove(at + 1);
        }
        while at >= 2 && !turns_right(&self.corners, at - 2) {
            self.corners.remove(at - 1);
            at -= 1;
        }
    }

    fn thin(&mut self) {
        let last = self.corners.len() - 1;
        let mut at = 0;
        self.corners.retain(|_| {
            at += 1;
            at % 2 == 1 || at > last
        });
    }

    /// Adds all points of another hull.
    pub fn merge(&mut self, other: &Hull) {
        for &corner in &other.corners {
            self.insert(corner);
        }
    }

    /// The corners, sorted by x.
    pub fn corners(&self) -> &[Point] {
        &self.corners
    }

    /// The corner that a line of `slope` touches first when it is lowered from above; the left
    /// corner if it touches two.
    pub fn touched(&self, slope: Slope) -> Option<Point> {
        let (mut low, mut high) = (0, self.corners.len().checked_sub(1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            let (&left, &right) = (self.corners.get(middle)?, self.corners.get(middle + 1)?);
            match Slope::between(left, right) > slope {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        self.corners.get(low).copied()
    }

    /// The corners on either side of `x`, which must lie between the first and the last corner.
    pub fn around(&self, x: i64) -> Option<(Point, Point)> {
        let at = self.corners.partition_point(|corner| corner.x <= x);
        let left = self.corners.get(at.checked_sub(1)?)?;
        Some((*left, *self.corners.get(at)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hull(points: &[(i64, i64)]) -> Hull {
        let mut hull = Hull::default();
        for &(x, y) in points {
            hull.insert(Point { x, y });
        }
        hull
    }

    /// A point is a corner if neither a segment between two other points nor a point of equal x is
    /// above it.
    fn is_corner(points: &[(i64, i64)], of: (i64, i64)) -> bool {
        let under = |a: &(i64, i64), b: &(i64, i64)| {
            let point = |(x, y)| Point { x, y };
            a.0 < of.0 && of.0 < b.0 && cross(point(*a), point(*b), point(of)) <= 0
        };
        let beneath = |a: &(i64, i64)| a.0 == of.0 && a.1 > of.1;
        !points.iter().any(beneath) && !points.iter().any(|a| points.iter().any(|b| under(a, b)))
    }

    proptest! {
        #[test]
        fn it_is_that_of_all_points_in_any_order(
            mut points in prop::collection::vec((-20i64..20, -20i64..20), 0..25),
            cut in 0usize..25,
        ) {
            let mut whole = hull(&points);
            let (first, second) = points.split_at(cut.min(points.len()));
            let mut joined = hull(second);
            joined.merge(&hull(first));
            prop_assert_eq!(&joined, &whole);
            points.reverse();
            prop_assert_eq!(&hull(&points), &whole);
            points.sort_unstable();
            points.dedup();
            let expected: Vec<(i64, i64)> =
                points.iter().copied().filter(|&point| is_corner(&points, point)).collect();
            let found: Vec<(i64, i64)> = whole.corners().iter().map(|corner| (corner.x, corner.y)).collect();
            prop_assert_eq!(found, expected);
            whole.merge(&whole.clone());
            prop_assert_eq!(joined, whole);
        }

        #[test]
        fn lines_touch_the_greatest(
            points in prop::collection::vec((-20i64..20, -20i64..20), 1..25),
            num in -9i64..9,
            den in 1i64..9,
        ) {
            let slope = Slope::new(num, den);
            let touched = hull(&points).touched(slope).expect("there are points");
            let greatest = points.iter().map(|&(x, y)| slope.axis(Point { x, y })).max();
            prop_assert_eq!(Some(slope.axis(touched)), greatest);
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let far = LIMIT - 1;
        let mut corners = hull(&[(-far, -far), (0, far), (far, -far), (far, far), (-far, far)]);
        assert_eq!(corners.corners().len(), 2);
        for (x, y) in [(i64::MIN, 0), (0, i64::MAX), (LIMIT, 0), (0, -LIMIT)] {
            assert!(!corners.insert(Point { x, y }));
        }
    }

    #[test]
    fn many_corners_become_fewer_and_stay_below() {
        let curve = |x: i64| -x * x;
        let points: Vec<_> = (-3000..3000).map(|x| (x, curve(x))).collect();
        let hull = hull(&points);
        assert!(hull.corners().len() <= MOST_CORNERS);
        assert!(
            hull.corners()
                .iter()
                .all(|corner| corner.y == curve(corner.x))
        );
        assert_eq!(hull.corners().first().map(|corner| corner.x), Some(-3000));
        assert_eq!(hull.corners().last().map(|corner| corner.x), Some(2999));
    }
}
