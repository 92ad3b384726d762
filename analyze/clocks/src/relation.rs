//! The relation of two clocks over one stretch of time: all lines that are possible, and the one in
//! the middle.
//!
//! A message that one machine sends and another receives tells an inequality: whatever the clocks
//! say, it was sent first. With the time by the one clock as x and the time by the other as y, each
//! message is a point, and the line y = αx + β that turns one clock into the other lies above the
//! points of one direction and below those of the other. Only the corners of two convex hulls
//! matter. (A. Duda, G. Harrus, Y. Haddad, G. Bernard: Estimating global time in distributed
//! systems, 1987; B. Poirier, R. Roy, M. Dagenais: Accurate offline synchronization of distributed
//! traces using kernel-level events, 2010; M. Jabbarifar, M. Dagenais, A. Shameli-Sendi: Streaming
//! mode incremental clock synchronization, 2015.)
//!
//! The steepest and the flattest possible line each touch both hulls. What is possible at all is
//! convex: so the line in the middle of these two is possible, too.

use serde::{Deserialize, Serialize};

use crate::fixed::Fixed;
use crate::hull::{Hull, LIMIT, Point, Slope};

/// How well two clocks are related.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accuracy {
    /// Messages of both directions bound offset and drift.
    Accurate,
    /// Messages of both directions bound the offset, but not the drift from both sides, or not as
    /// well as it is known what drifts clocks have: that is assumed then.
    Approximate,
    /// There are messages of one direction only: the offset is bounded from one side.
    Incomplete,
    /// There are no messages.
    #[default]
    Absent,
    /// No line fits: some message would have been received before it was sent. What does fit is
    /// used all the same, if it is possible at all.
    Fail,
}

/// What is known of two clocks: the inequalities that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// Points that the line is not below.
    below: Hull,
    /// Points that the line is not above, upside down.
    above: Hull,
}

/// No line fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

/// Drifts of clocks that are not known better: one part in a thousand. Quartz is ten times better,
/// and what steers clocks stays within half of it.
const USUAL: (Slope, Slope) = (Slope::new(999, 1000), Slope::new(1001, 1000));
/// No clock is worse than that.
const POSSIBLE: (Slope, Slope) = (Slope::new(1, 2), Slope::new(3, 2));

impl Relation {
    /// The one's time x is, by the other clock, y or later. False if a time is absurd and was not
    /// taken.
    pub fn not_before(&mut self, x: i64, y: i64) -> bool {
        self.below.insert(Point { x, y })
    }

    /// The one's time x is, by the other clock, y or earlier. False if a time is absurd and was not
    /// taken.
    pub fn not_after(&mut self, x: i64, y: i64) -> bool {
        y > -LIMIT && self.above.insert(Point { x, y: -y })
    }

    /// Adds what another knows of the same clocks. The order in which several are joined does not
    /// matter.
    pub fn merge(&mut self, other: &Relation) {
        self.below.merge(&other.below);
        self.above.merge(&other.above);
    }

    /// The first and the last place of which something is known.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let corners = || self.below.corners().iter().chain(self.above.corners());
        let places = || corners().map(|corner| corner.x);
        Some((places().min()?, places().max()?))
    }

    /// All lines that are possible; `None` if nothing is known.
    ///
    /// # Errors
    /// When there is no such line.
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
        // Where a usual drift is what bounds the lines, messages are not.
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

    /// The lines of that slope that touch the hulls.
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

    /// The slope of the steepest line that messages allow, if one direction's first message is
    /// before the other's last one.
    ///
    /// From the right: the distance between the lines of a slope that touch the hulls is a concave
    /// function of the slope, and Newton's way to its greatest zero takes few steps.
    ///
    /// # Errors
    /// When no line is possible.
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

    /// The same of the flattest line.
    ///
    /// # Errors
    /// When no line is possible.
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

/// The slopes that are possible and, if any are, usual.
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
    // Of two ends the one that nothing bounds says nothing.
    Ok(match (flattest, steepest) {
        (Some(_), None) => (low, low),
        (None, Some(_)) => (high, high),
        _ => (low, high),
    })
}

/// Two lines of one slope, which touch the hulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tangents {
    slope: Slope,
    /// Where the lowest possible one touches.
    below: Option<Point>,
    /// Where the highest possible one touches.
    above: Option<Point>,
}

impl Tangents {
    /// True if the lowest is above the highest.
    fn is_contradiction(&self) -> bool {
        match (self.below, self.above) {
            (Some(below), Some(above)) => self.slope.axis(above) < self.slope.axis(below),
            _ => false,
        }
    }

    /// Twice the line in their middle.
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
    /// How well they are bounded.
    pub accuracy: Accuracy,
}

impl Fit {
    /// Adds the inequalities of `other`; `None` if no line satisfies all of them.
    pub(crate) fn with(&self, other: &Relation) -> Option<Fit> {
        let mut all = self.relation.clone();
        all.merge(other);
        all.solve().ok().flatten()
    }

    /// The least and the greatest slope.
    pub fn slopes(&self) -> (Slope, Slope) {
        (self.low.slope, self.high.slope)
    }

    /// The line in the middle, at that time by the one clock: the time by the other.
    pub fn at(&self, x: i64) -> Fixed {
        (self.low.twice(x) + self.high.twice(x)).quarter()
    }

    /// The least and the greatest time by the other clock that any possible line gives.
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
