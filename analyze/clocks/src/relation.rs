//! The relation of two clocks over one stretch of time: all possible lines, and the line in their
//! middle.
//!
//! A message is an inequality: whatever the two clocks show, it was sent before it was received.
//! With the time by the first clock as x and the time by the second as y, each message is a point,
//! and the line y = αx + β that converts the first clock to the second lies above the points of one
//! direction and below those of the other. Only the corners of two convex hulls matter. (A. Duda,
//! G. Harrus, Y. Haddad, G. Bernard: Estimating global time in distributed systems, 1987; B.
//! Poirier, R. Roy, M. Dagenais: Accurate offline synchronization of distributed traces using
//! kernel-level events, 2010; M. Jabbarifar, M. Dagenais, A. Shameli-Sendi: Streaming mode
//! incremental clock synchronization, 2015.)
//!
//! The steepest and the flattest possible line each touch both hulls. The set of possible lines is
//! convex, so the mean of these two lines is possible, too.

use serde::{Deserialize, Serialize};

use crate::fixed::Fixed;
use crate::hull::{Hull, LIMIT, Point, Slope};

/// How tightly messages bound the relation of two clocks, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accuracy {
    /// Messages of both directions bound offset and drift.
    Accurate,
    /// Messages of both directions bound the offset, but the drift only on one side or more loosely
    /// than the assumed range of clock drifts, which is used instead.
    Approximate,
    /// Only messages of one direction exist: the offset is bounded on one side.
    Incomplete,
    /// No messages exist.
    #[default]
    Absent,
    /// No line fits: some message would have been received before it was sent. The inequalities
    /// that do not contradict each other are used all the same, if a line fits them.
    Fail,
}

/// The inequalities between two clocks that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// Points on or below the line.
    below: Hull,
    /// Points on or above the line, with y negated.
    above: Hull,
}

/// No line fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

/// Assumed range of drifts where messages do not bound them: one part in a thousand. Quartz is ten
/// times better, and clock steering stays within half of it.
const USUAL: (Slope, Slope) = (Slope::new(999, 1000), Slope::new(1001, 1000));
/// Range of drifts that any clock can have.
const POSSIBLE: (Slope, Slope) = (Slope::new(1, 2), Slope::new(3, 2));

impl Relation {
    /// At time `x` by the first clock, the second clock shows `y` or later. Returns false if a time
    /// is out of range and was ignored.
    pub fn not_before(&mut self, x: i64, y: i64) -> bool {
        self.below.insert(Point { x, y })
    }

    /// At time `x` by the first clock, the second clock shows `y` or earlier. Returns false if a
    /// time is out of range and was ignored.
    pub fn not_after(&mut self, x: i64, y: i64) -> bool {
        y > -LIMIT && self.above.insert(Point { x, y: -y })
    }

    /// Adds the inequalities of another relation of the same clocks. The order of merging does not
    /// matter.
    pub fn merge(&mut self, other: &Relation) {
        self.below.merge(&other.below);
        self.above.merge(&other.above);
    }

    /// The first and the last x of any inequality.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let corners = || self.below.corners().iter().chain(self.above.corners());
        let places = || corners().map(|corner| corner.x);
        Some((places().min()?, places().max()?))
    }

    /// All possible lines; `None` without inequalities.
    ///
    /// # Errors
    /// If no line is possible.
    pub fn solve(&self) -> Result<Option<Fit>, Contradiction> {
        let (is_below, is_above) = (
            !self.below.corners().is_empty(),
            !self.above.corners().is_empty(),
        );
        if !is_below && !is_above {
            return Ok(None);
        }
        let (flattest, steepest) = (self.flattest()?, self.steepest()?);
        let (low, high) = within(flattest, steepest)?;
        // If the assumed range of drifts bounds the slopes on both sides, messages do not.
        let is_bound = flattest == Some(low) && steepest == Some(high);
        let accuracy = match (is_below && is_above, is_bound) {
            (true, true) => Accuracy::Accurate,
            (true, false) => Accuracy::Approximate,
            _ => Accuracy::Incomplete,
        };
        let (low, high) = (self.tangents(low), self.tangents(high));
        if low.is_contradiction() || high.is_contradiction() {
            return Err(Contradiction);
        }
        Ok(Some(Fit {
            relation: self.clone(),
            low,
            high,
            accuracy,
        }))
    }

    /// The lines of `slope` that touch the hulls.
    fn tangents(&self, slope: Slope) -> Tangents {
        let upright = |point: Point| Point {
            y: -point.y,
            ..point
        };
        Tangents {
            slope,
            below: self.below.touched(slope),
            above: self.above.touched(slope.negated()).map(upright),
        }
    }

    /// The slope of the steepest line that messages allow, if the first message of one direction
    /// precedes the last message of the other.
    ///
    /// The distance between the two lines of a slope that touch the hulls is a concave function of
    /// the slope. Newton's method, started from the right, finds its greatest zero in few steps.
    ///
    /// # Errors
    /// If no line is possible.
    pub fn steepest(&self) -> Result<Option<Slope>, Contradiction> {
        let (Some(&left), Some(right)) =
            (self.below.corners().first(), self.above.corners().last())
        else {
            return Ok(None);
        };
        if right.x <= left.x {
            return Ok(None);
        }
        let right = Point {
            y: -right.y,
            ..*right
        };
        let mut slope = Slope::between(left, right);
        loop {
            let lines = self.tangents(slope);
            match (lines.below, lines.above) {
                (Some(below), Some(above)) if lines.is_contradiction() => {
                    if above.x <= below.x {
                        return Err(Contradiction);
                    }
                    slope = Slope::between(below, above);
                }
                _ => return Ok(Some(slope)),
            }
        }
    }

    /// The slope of the flattest line that messages allow; see `steepest`.
    ///
    /// # Errors
    /// If no line is possible.
    pub fn flattest(&self) -> Result<Option<Slope>, Contradiction> {
        let (Some(left), Some(&right)) =
            (self.above.corners().first(), self.below.corners().last())
        else {
            return Ok(None);
        };
        if right.x <= left.x {
            return Ok(None);
        }
        let left = Point {
            y: -left.y,
            ..*left
        };
        let mut slope = Slope::between(left, right);
        loop {
            let lines = self.tangents(slope);
            match (lines.below, lines.above) {
                (Some(below), Some(above)) if lines.is_contradiction() => {
                    if below.x <= above.x {
                        return Err(Contradiction);
                    }
                    slope = Slope::between(above, below);
                }
                _ => return Ok(Some(slope)),
            }
        }
    }
}

/// Intersects the possible slopes with the assumed range, unless the intersection is empty.
fn within(
    flattest: Option<Slope>,
    steepest: Option<Slope>,
) -> Result<(Slope, Slope), Contradiction> {
    let of = |(low, high): (Slope, Slope)| {
        let low = flattest.filter(|&slope| slope > low).unwrap_or(low);
        let high = steepest.filter(|&slope| slope < high).unwrap_or(high);
        (low <= high).then_some((low, high))
    };
    if let Some(usual) = of(USUAL) {
        return Ok(usual);
    }
    let (low, high) = of(POSSIBLE).ok_or(Contradiction)?;
    // An end that no message bounds is replaced by the other end.
    Ok(match (flattest, steepest) {
        (Some(_), None) => (low, low),
        (None, Some(_)) => (high, high),
        _ => (low, high),
    })
}

/// Two lines of equal slope that touch the hulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tangents {
    slope: Slope,
    /// Corner that the lowest possible line touches.
    below: Option<Point>,
    /// Corner that the highest possible line touches.
    above: Option<Point>,
}

impl Tangents {
    /// True if the lowest line is above the highest.
    fn is_contradiction(&self) -> bool {
        match (self.below, self.above) {
            (Some(below), Some(above)) => self.slope.axis(above) < self.slope.axis(below),
            _ => false,
        }
    }

    /// Twice the value at `x` of the line in their middle.
    fn twice(&self, x: i64) -> Fixed {
        let at = |point: Option<Point>| point.map(|point| Fixed::on_line(point, self.slope, x));
        let (below, above) = (at(self.below), at(self.above));
        let none = Fixed::default();
        below.or(above).unwrap_or(none) + above.or(below).unwrap_or(none)
    }
}

/// The lines that are possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    relation: Relation,
    low: Tangents,
    high: Tangents,
    /// How tightly messages bound the lines.
    pub accuracy: Accuracy,
}

impl Fit {
    /// Adds the inequalities of `other`; `None` if no line fits any more.
    pub(crate) fn with(&self, other: &Relation) -> Option<Fit> {
        let mut all = self.relation.clone();
        all.merge(other);
        all.solve().ok().flatten()
    }

    /// The least and the greatest slope.
    pub fn slopes(&self) -> (Slope, Slope) {
        (self.low.slope, self.high.slope)
    }

    /// The value at `x` of the line in the middle: the time by the second clock.
    pub fn at(&self, x: i64) -> Fixed {
        (self.low.twice(x) + self.high.twice(x)).quarter()
    }

    /// The least and the greatest time by the second clock that any possible line gives for `x`.
    pub fn bounds(&self, x: i64) -> (Option<Fixed>, Option<Fixed>) {
        (self.least(x), self.greatest(x))
    }

    fn least(&self, x: i64) -> Option<Fixed> {
        let (low, high) = (self.low.below?, self.high.below?);
        if x >= low.x {
            return Some(Fixed::on_line(low, self.low.slope, x));
        }
        match self.relation.below.around(x).filter(|_| x > high.x) {
            Some((left, right)) => Some(Fixed::on_line(left, Slope::between(left, right), x)),
            None => Some(Fixed::on_line(high, self.high.slope, x)),
        }
    }

    fn greatest(&self, x: i64) -> Option<Fixed> {
        let (low, high) = (self.low.above?, self.high.above?);
        if x >= high.x {
            return Some(Fixed::on_line(high, self.high.slope, x));
        }
        match self.relation.above.around(x).filter(|_| x > low.x) {
            Some((left, right)) => {
                let upright = |point: Point| Point {
                    y: -point.y,
                    ..point
                };
                let (left, right) = (upright(left), upright(right));
                Some(Fixed::on_line(left, Slope::between(left, right), x))
            }
            None => Some(Fixed::on_line(low, self.low.slope, x)),
        }
    }
}
