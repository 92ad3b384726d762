//! How many threads wait for a CPU, over time.
//!
//! A chunk does not know who waited when it began. Its curve counts from there on, and goes down
//! and up by what it knows; what it does not know happened at marks (see `partial`), and merging
//! adds it from those marks on. So the curve keeps its greatest value between any two marks.

use serde::{Deserialize, Serialize};

/// The number of threads that wait, from mark to mark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Curve(
    /// In the order of marks; before the first one nobody waits.
    Vec<Segment>,
);

/// From a mark to the next segment's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Segment {
    mark: u64,
    /// The greatest number from there on.
    peak: i64,
    /// The number at the end.
    end: i64,
}

impl Curve {
    /// How many wait at the end.
    pub(super) fn end(&self) -> i64 {
        self.0.last().map_or(0, |last| last.end)
    }

    /// So many more wait from now on; `mark` is the last one.
    #[inline]
    pub(super) fn change(&mut self, mark: u64, by: i64) {
        let before = self.end();
        let end = before + by;
        match self.0.last_mut() {
            Some(last) if last.mark == mark => {
                last.end = end;
                last.peak = last.peak.max(end);
            }
            _ => self.0.push(Segment {
                mark,
                peak: before.max(end),
                end,
            }),
        }
    }

    /// Of those that are known to wait nobody is known to wait any longer: at this mark, the last.
    pub(super) fn clear(&mut self, mark: u64) {
        self.0.push(Segment {
            mark,
            peak: 0,
            end: 0,
        });
    }

    /// The segment that begins at a mark, which is made if there is none.
    fn split(&mut self, mark: u64) -> usize {
        let at = self.0.partition_point(|segment| segment.mark < mark);
        if self.0.get(at).is_none_or(|segment| segment.mark != mark) {
            let end = match at {
                0 => 0,
                at => self.0[at - 1].end,
            };
            let segment = Segment { mark, peak: end, end };
            self.0.insert(at, segment);
        }
        at
    }

    /// So many more wait from a mark on.
    pub(super) fn shift(&mut self, mark: u64, by: i64) {
        let at = self.split(mark);
        for segment in &mut self.0[at..] {
            segment.peak += by;
            segment.end += by;
        }
    }

    /// Goes on with a later one, whose marks come after so many.
    pub(super) fn append(&mut self, later: Curve, marks: u64) {
        let end = self.end();
        self.0.extend(later.0.into_iter().map(|segment| Segment {
            mark: segment.mark + marks,
            peak: segment.peak + end,
            end: segment.end + end,
        }));
    }

    /// Forgets what only other marks than these need; they are in their order.
    pub(super) fn keep(&mut self, marks: &[u64]) {
        let mut kept: Vec<Segment> = Vec::new();
        for segment in self.0.drain(..) {
            let apart = |last: &Segment| {
                let next = marks.partition_point(|&mark| mark <= last.mark);
                marks.get(next).is_some_and(|&mark| mark <= segment.mark)
            };
            match kept.last_mut() {
                Some(last) if !apart(last) => {
                    last.peak = last.peak.max(segment.peak);
                    last.end = segment.end;
                }
                _ => kept.push(segment),
            }
        }
        self.0 = kept;
    }

    /// The greatest number between two marks.
    pub(super) fn peak(&mut self, from: u64, until: u64) -> u64 {
        if from >= until {
            return 0;
        }
        let first = self.split(from);
        let within = self.0[first..].iter().take_while(|segment| segment.mark < until);
        let peak = within.map(|segment| segment.peak).max().unwrap_or(0);
        u64::try_from(peak).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_later_counts_from_its_mark_on() {
        let mut curve = Curve::default();
        [1, 1, -1].iter().for_each(|&by| curve.change(0, by));
        curve.change(4, 1);
        curve.change(7, -1);
        assert_eq!((curve.peak(0, 9), curve.end()), (2, 1));
        // Somebody waited up to mark 5.
        let mut more = curve.clone();
        more.shift(0, 1);
        more.shift(5, -1);
        assert_eq!([more.peak(0, 4), more.peak(4, 5), more.peak(5, 7)], [3, 3, 2]);
        assert_eq!((more.peak(7, 9), more.end()), (2, 1));
        let mut both = curve.clone();
        both.append(more, 10);
        assert_eq!((both.peak(0, 10), both.peak(10, 20), both.end()), (2, 4, 2));
    }

    #[test]
    fn only_marks_that_are_needed_stay() {
        let mut curve = Curve::default();
        for (mark, by) in [(0, 3), (2, -2), (5, 4), (6, -1)] {
            curve.change(mark, by);
        }
        let mut few = curve.clone();
        few.keep(&[5]);
        assert_eq!(few.0.len(), 2);
        assert_eq!((few.peak(0, 5), few.peak(5, 9)), (3, 5));
        assert_eq!(few.end(), curve.end());
        few.shift(5, -1);
        assert_eq!(few.peak(5, 9), 4);
        curve.clear(8);
        assert_eq!((curve.end(), curve.peak(8, 9)), (0, 0));
    }
}
