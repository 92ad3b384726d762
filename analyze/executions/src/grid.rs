//! Division of time into parts: the events of a part are played on any thread and become known all at once.
//!
//! Time is divided into intervals of equal length, independent of chunks. A part lies within one interval, so the
//! knowledge at the beginning of each interval does not depend on how the trace is read. An execution that must be made
//! at some time is made at the beginning of the next interval.

use tracebraid_graph::CutSlice;

/// Minimum length of an interval in nanoseconds: processing an interval takes some microseconds.
const SHORTEST: i64 = 100_000;

/// Intervals of equal length. All times are in nanoseconds from the origin.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    length: i64,
    /// Ends of the traces that end earlier than others, ascending. A part also ends right after each of them.
    ends: Vec<i64>,
}

/// Time between two watermarks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    from: i64,
    /// Exclusive end; `i64::MAX` stands for the end of all traces.
    pub(crate) until: i64,
}

/// End of a part (`None`: the end of all traces) and its graph events (`None`: no events for the graph).
pub(crate) type CutPart = (Option<i64>, Option<CutSlice>);

/// Beginning of the interval that contains `time`.
fn begin_of(time: i64, length: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(length))
}

/// Interval length in nanoseconds if executions must be made `behind` nanoseconds after their ends. Both are equal
/// (except below [`SHORTEST`]), so that each execution is tried twice before it must be made.
pub(crate) fn length(behind: u64) -> i64 {
    i64::try_from(behind).unwrap_or(i64::MAX).max(SHORTEST)
}

/// Beginning of the first interval at or after `time`.
pub(crate) fn next_begin(time: i64, length: i64) -> Option<i64> {
    let begin = begin_of(time, length);
    if begin == time {
        Some(time)
    } else {
        begin.checked_add(length)
    }
}

/// Lower bound for the times of events in a part that ends at `until` (exclusive).
pub(crate) fn begin_of_part(until: i64, length: i64) -> i64 {
    begin_of(until.saturating_sub(1), length)
}

impl Grid {
    /// `ends`: the end times of traces that end earlier than others, in any order.
    pub(crate) fn new(length: i64, mut ends: Vec<i64>) -> Grid {
        ends.sort_unstable();
        Grid { length, ends }
    }

    /// Divides the events of a stage into consecutive parts.
    pub(crate) fn parts(&self, Stage { from, until }: Stage, mut cut: Option<CutSlice>) -> Vec<CutPart> {
        let mut parts = Vec::new();
        let mut begin = from;
        while let Some(rest) = &mut cut
            && let Some(first) = rest.first()
        {
            let next = begin_of(first, self.length).saturating_add(self.length);
            let end = self.end_between(begin, next).unwrap_or(next);
            if end >= until {
                break;
            }
            parts.push((Some(end), rest.split(end)));
            begin = end;
        }
        parts.push((Some(until).filter(|&until| until < i64::MAX), cut));
        parts
    }

    /// First time in `from + 1..until` that directly follows the end of a trace.
    fn end_between(&self, from: i64, until: i64) -> Option<i64> {
        let next = self.ends.partition_point(|&end| end.saturating_add(1) <= from);
        let end = self.ends.get(next)?.saturating_add(1);
        (end < until).then_some(end)
    }
}

impl Stage {
    /// Stage from one watermark to the next; `None` if the second is not later, unless it is the end of all traces.
    pub(crate) fn between(from: i64, until: i64) -> Option<Stage> {
        (until > from || until == i64::MAX).then_some(Stage { from, until })
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
        assert_eq!([0, 3, 4_000_000].map(length), [SHORTEST, SHORTEST, 4_000_000]);
        let grid = Grid::new(10, vec![25, 7]);
        let ends = [(0, 10), (8, 30), (26, 30), (0, 8)].map(|(from, until)| grid.end_between(from, until));
        assert_eq!(ends, [Some(8), Some(26), None, None]);
    }
}
