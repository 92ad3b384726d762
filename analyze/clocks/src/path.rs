//! Conversion from one clock to another over the whole time: one line if one fits, else one line
//! for each stretch.
//!
//! A stretch is extended while some line fits all of its inequalities. If these do not bound the
//! drift (after the last message of one direction, for example), its line must also fit the cells
//! before it, back to the first contradiction. Two neighbouring stretches share a cell of the
//! timeline where possible; within the shared cell the correction moves from one line to the other.
//! Both lines fit there, and so does every point between them: no inequality is violated, the
//! correction is continuous, and time never goes back.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::correction::{Correction, Piece};

use crate::fixed::Fixed;
use crate::hull::Slope;
use crate::relation::{Accuracy, Contradiction, Fit, Relation};
use crate::timeline::Timeline;

/// An interval of time in which one line fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Time of the first message, by the first clock.
    pub first: i64,
    /// Time of the last message, by the first clock.
    pub last: i64,
    /// The lines that fit.
    pub fit: Fit,
}

/// The conversion from the time of one clock to that of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// In the order of time; never empty.
    stretches: Vec<Stretch>,
    /// Corners of the polyline that converts times, at least two.
    corners: Vec<(i64, Fixed)>,
    /// Cells of the timeline that contradict themselves and are ignored.
    left_out: usize,
}

/// Minimum duration of a line, in nanoseconds, for its slope to be meaningful.
const LEAST: i64 = 1_000_000_000;

impl Path {
    /// Fits lines to a timeline; `None` if it contains no messages.
    ///
    /// # Errors
    /// If every inequality contradicts others, or a clock would have to go back or to drift more
    /// than any clock does.
    pub fn of(timeline: &Timeline) -> Result<Option<Path>, Contradiction> {
        let is_sound = |cell: &&Relation| cell.solve().is_ok();
        let cells: Vec<&Relation> = timeline.cells().filter(is_sound).collect();
        let left_out = timeline.cells().count() - cells.len();
        if cells.is_empty() {
            return match left_out {
                0 => Ok(None),
                _ => Err(Contradiction),
            };
        }
        let mut stretches = Vec::new();
        let mut corners = Vec::new();
        // The stretches keep the lines of their own messages only, so that bounds are not
        // overstated.
        let mut followed: Option<Stretch> = None;
        let mut at = 0;
        while at < cells.len() {
            let (end, stretch) = longest(&cells, at)?;
            let line = Stretch {
                fit: narrowed(&cells, at, &stretch.fit),
                ..stretch
            };
            match &followed {
                None => corners.push((line.first, line.fit.at(line.first))),
                Some(before) => {
                    let new = transition(before, &line, shared(&cells, at));
                    let last = corners
                        .last()
                        .map_or(i64::MIN, |corner: &(i64, Fixed)| corner.0);
                    // A stretch that begins at an existing corner continues the same line.
                    corners.extend(new.into_iter().filter(|corner| corner.0 > last));
                }
            }
            followed = Some(line);
            stretches.push(stretch);
            at = next_start(&cells, at, end);
        }
        if let Some(stretch) = followed {
            let last = corners.last().map_or(stretch.first, |corner| corner.0);
            let end = stretch.last.max(last.saturating_add(LEAST));
            corners.push((end, stretch.fit.at(end)));
        }
        let path = Path {
            stretches,
            corners,
            left_out,
        };
        match path.correction() {
            Some(_) => Ok(Some(path)),
            None => Err(Contradiction),
        }
    }

    /// The stretches, in the order of time.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Accuracy of the worst stretch.
    pub fn accuracy(&self) -> Accuracy {
        if self.left_out > 0 {
            return Accuracy::Fail;
        }
        let accuracies = self.stretches.iter().map(|stretch| stretch.fit.accuracy);
        accuracies.max().unwrap_or_default()
    }

    /// Times of the first and the last message, by the first clock.
    pub fn extent(&self) -> (i64, i64) {
        let first = self.stretches.first().map_or(0, |stretch| stretch.first);
        (
            first,
            self.stretches.last().map_or(first, |stretch| stretch.last),
        )
    }

    /// The least and the greatest slope of any line of any stretch.
    pub fn slopes(&self) -> Option<(Slope, Slope)> {
        let slopes = self.stretches.iter().map(|stretch| stretch.fit.slopes());
        slopes.reduce(|(low, high), (lower, higher)| {
            (
                if lower < low { lower } else { low },
                if higher > high { higher } else { high },
            )
        })
    }

    /// Converts a time of the first clock to the second clock.
    pub fn at(&self, x: i64) -> Option<Fixed> {
        let correction = self.correction()?;
        Some(Fixed::whole(correction.apply(Timestamp(x)).0))
    }

    /// The least and the greatest possible time by the second clock, if the drift is constant
    /// within each stretch.
    pub fn bounds(&self, x: i64) -> (Option<Fixed>, Option<Fixed>) {
        let distance = |stretch: &Stretch| match x {
            _ if x < stretch.first => stretch.first.abs_diff(x),
            _ => x.saturating_sub(stretch.last).max(0).unsigned_abs(),
        };
        let nearest = self.stretches.iter().map(distance).min().unwrap_or(0);
        let near = self
            .stretches
            .iter()
            .filter(|stretch| distance(stretch) == nearest);
        let bounds = near.map(|stretch| stretch.fit.bounds(x));
        let tighter =
            |a: Option<Fixed>, b: Option<Fixed>, choose: fn(Fixed, Fixed) -> Fixed| match (a, b) {
                (Some(a), Some(b)) => Some(choose(a, b)),
                (a, b) => a.or(b),
            };
        bounds
            .reduce(|a, b| (tighter(a.0, b.0, Ord::max), tighter(a.1, b.1, Ord::min)))
            .unwrap_or_default()
    }

    /// The conversion as pieces of a correction.
    pub fn pieces(&self) -> Option<Vec<Piece>> {
        let ways = self.corners.iter().zip(self.corners.iter().skip(1));
        ways.map(|(&(from, begin), &(to, end))| {
            let moved = begin - Fixed::whole(from);
            let (offset_ns, offset_e9) = moved.parts();
            let length = to.checked_sub(from)?;
            let drift = (end - Fixed::whole(to)) - moved;
            Some(Piece {
                from: Timestamp(from),
                offset_ns,
                offset_e9,
                drift_e18: drift.over_e18(length)?,
            })
        })
        .collect()
    }

    /// The conversion as a correction with one step.
    pub fn correction(&self) -> Option<Correction> {
        Correction::new([&self.pieces()?[..]]).ok()
    }
}

/// The longest stretch that begins with cell `at`, and the index of its last cell.
fn longest(cells: &[&Relation], at: usize) -> Result<(usize, Stretch), Contradiction> {
    let cells = cells.get(at..).unwrap_or_default();
    // Most clocks drift so evenly that one line fits the whole recording.
    if at == 0
        && let Some(stretch) = together(cells)?
    {
        return Ok((cells.len() - 1, stretch));
    }
    // Exponential search: double the number of cells while they fit, then halve the step.
    let (mut fits, mut step) = (1, 1);
    while fits + step <= cells.len() && is_one(cells, fits + step) {
        fits += step;
        step *= 2;
    }
    while step > 0 {
        if fits + step <= cells.len() && is_one(cells, fits + step) {
            fits += step;
        }
        step /= 2;
    }
    let stretch = together(cells.get(..fits).unwrap_or_default())?;
    Ok((at + fits - 1, stretch.ok_or(Contradiction)?))
}

/// Narrows the lines of a stretch that begins at cell `at` by the cells before it, from the nearest
/// to the first that contradicts them. Does nothing if the stretch's own messages bound the drift.
///
/// Messages of one direction allow drifts of up to 1,000 ppm, far more than the drift of a clock
/// changes at once. Stopping as soon as messages bound the drift was measured and rejected: after a
/// change of 19 ppm the error 10 s later was 1.4 ms, compared with 0.3 ms with all cells and 4.4 ms
/// with none.
fn narrowed(cells: &[&Relation], at: usize, fit: &Fit) -> Fit {
    let mut fit = fit.clone();
    if fit.accuracy == Accuracy::Accurate {
        return fit;
    }
    for cell in cells.iter().take(at).rev() {
        match fit.with(cell) {
            Some(narrower) => fit = narrower,
            None => break,
        }
    }
    fit
}

fn is_one(cells: &[&Relation], count: usize) -> bool {
    matches!(
        together(cells.get(..count).unwrap_or_default()),
        Ok(Some(_))
    )
}

/// The stretch of these cells, if a single line fits.
///
/// # Errors
/// If no line fits even a single cell.
fn together(cells: &[&Relation]) -> Result<Option<Stretch>, Contradiction> {
    let mut all = Relation::default();
    cells.iter().for_each(|cell| all.merge(cell));
    match (all.solve(), all.extent()) {
        (Ok(Some(fit)), Some((first, last))) => Ok(Some(Stretch { first, last, fit })),
        (Err(_), _) if cells.len() < 2 => Err(Contradiction),
        _ => Ok(None),
    }
}

/// First cell of the next stretch: the last cell of this stretch if one line fits it and its
/// successor, else the successor.
fn next_start(cells: &[&Relation], at: usize, end: usize) -> usize {
    let pair = cells.get(end..end + 2).unwrap_or_default();
    match end > at && pair.len() == 2 && matches!(together(pair), Ok(Some(_))) {
        true => end,
        false => end + 1,
    }
}

/// Extents of the cell with which a stretch begins (middle) and of its two neighbours.
fn shared(cells: &[&Relation], at: usize) -> [Option<(i64, i64)>; 3] {
    let extent = |index: Option<usize>| cells.get(index?)?.extent();
    [
        extent(at.checked_sub(1)),
        extent(Some(at)),
        extent(Some(at + 1)),
    ]
}

/// The corners at which the correction leaves one stretch's line and joins the next.
fn transition(
    before: &Stretch,
    after: &Stretch,
    [previous, own, next]: [Option<(i64, i64)>; 3],
) -> Vec<(i64, Fixed)> {
    let middle = |left: i64, right: i64| left + (right - left) / 2;
    let (from, to) = match (previous, own, next) {
        // The stretches share the cell.
        (Some(previous), Some(own), Some(next)) if before.last >= after.first => {
            (middle(previous.1, own.0), middle(own.1, next.0))
        }
        _ => (before.last, after.first),
    };
    let difference = |x| after.fit.at(x) - before.fit.at(x);
    let (begin, end) = (difference(from), difference(to));
    let mut corners = vec![(from, before.fit.at(from))];
    // Lines that cross are exchanged at the crossing: on each side, the corrected time stays
    // between them.
    if begin.is_negative() != end.is_negative()
        && let Some(way) = begin.zero_before(end, to - from)
        && 0 < way
        && way < to - from
        && before.last >= after.first
    {
        let x = from + way;
        corners.push((x, (before.fit.at(x) + after.fit.at(x)).half()));
    }
    corners.push((to, after.fit.at(to)));
    corners
}
