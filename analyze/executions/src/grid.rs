//! Parts of time: what happens in each of them is played on any thread, and becomes known at once.
//!
//! Time is divided into intervals of one length, which do not depend on chunks. A part lies within one interval, so what is known
//! at the beginning of each interval is the same in whatever way the trace is read. An execution that must be made at some time
//! is made at the beginning of the next interval.

use tracebraid_graph::{CutSlice, GraphAnalysis, GraphPartial};

/// Intervals are so many times shorter than the time behind its end at which an execution must be made.
const SHORTER: u64 = 4;

/// They are at least as long, in nanoseconds: each takes some microseconds to be gone through.
const SHORTEST: i64 = 100_000;

/// The intervals, and what was taken out of the traces in them. All times are in nanoseconds from the origin.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    length: i64,
    /// Ends of traces that end before others do, at which parts end, too: the next one at the end.
    ends: Vec<i64>,
    /// What happened before was taken out.
    until: i64,
}

/// What happened up to a time, or to the end of everything; nothing if nothing happened that the graph is made of.
pub(crate) type CutPart = (Option<i64>, Option<CutSlice>);

/// The beginning of the interval of a time.
fn begin_of(time: i64, length: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(length))
}

/// Length of the intervals for executions that are made so long behind their ends, in nanoseconds.
pub(crate) fn length(behind: u64) -> i64 {
    i64::try_from(behind / SHORTER).unwrap_or(i64::MAX).max(SHORTEST)
}

/// The beginning of the first interval at or behind a time.
pub(crate) fn next_begin(time: i64, length: i64) -> Option<i64> {
    let begin = begin_of(time, length);
    if begin == time {
        Some(time)
    } else {
        begin.checked_add(length)
    }
}

/// What happens in a part that ends before that time does not happen before this one.
pub(crate) fn begin_of_part(until: i64, length: i64) -> i64 {
    begin_of(until.saturating_sub(1), length)
}

impl Grid {
    /// Intervals of that length; `ends`: traces that end before others do, by when.
    pub(crate) fn new(length: i64, mut ends: Vec<i64>) -> Grid {
        ends.sort_unstable_by_key(|end| std::cmp::Reverse(*end));
        Grid {
            length,
            ends,
            until: i64::MIN,
        }
    }

    /// Takes out the parts before a watermark; for the greatest time, up to the end of everything.
    pub(crate) fn cut(
        &mut self,
        graph: &GraphAnalysis,
        partial: &mut GraphPartial,
        watermark: i64,
    ) -> Vec<CutPart> {
        let mut parts = Vec::new();
        while let Some(first) = partial.first_item().filter(|&first| first < watermark) {
            let next = begin_of(first, self.length).saturating_add(self.length);
            let until = self.end_before(next).unwrap_or(next);
            if until >= watermark {
                break;
            }
            parts.push((Some(until), graph.rules().cut(partial, until)));
            self.until = until;
        }
        match watermark {
            i64::MAX => parts.push((None, graph.rules().cut(partial, watermark))),
            _ if watermark > self.until => {
                parts.push((Some(watermark), graph.rules().cut(partial, watermark)));
            }
            _ => {}
        }
        self.until = self.until.max(watermark);
        parts
    }

    /// The next time behind the end of a trace, if that is before that time.
    fn end_before(&mut self, until: i64) -> Option<i64> {
        while self
            .ends
            .last()
            .is_some_and(|&end| end.saturating_add(1) <= self.until)
        {
            self.ends.pop();
        }
        let end = self.ends.last()?.saturating_add(1);
        (end < until).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_one_length() {
        let begins = [-11, -10, -1, 0, 9, 10].map(|time| begin_of(time, 10));
        assert_eq!(begins, [-20, -10, -10, 0, 0, 10]);
        let next = [-11, -10, 0, 1, i64::MAX].map(|time| next_begin(time, 10));
        assert_eq!(next, [Some(-10), Some(-10), Some(0), Some(10), None]);
        let parts = [0, 1, 10, 11].map(|until| begin_of_part(until, 10));
        assert_eq!(parts, [-10, 0, 0, 10]);
        assert_eq!([0, 3, 4_000_000].map(length), [SHORTEST, SHORTEST, 1_000_000]);
    }
}
