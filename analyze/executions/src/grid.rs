//! Division of time into parts: the events of a part are played on any thread and become known all
//! at once.
//!
//! Time is divided into intervals, independent of chunks. A part lies within one interval, so the
//! knowledge at the beginning of each interval does not depend on how the trace is read. An
//! execution that must be made at some time is made at the beginning of the next interval.
//!
//! An interval contains enough packets to keep all threads busy. Executions of at most two
//! intervals are made at a time, and the cost of composing a part is linear in the number of
//! threads, connections and CPUs in it, regardless of the number of their events.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_graph::CutSlice;

/// Larger packets are distributed over steps: as large as packets of tracers usually are.
const PIECE: u64 = 1 << 20;

/// Minimum length of an interval in nanoseconds: processing an interval takes some microseconds.
const SHORTEST: i64 = 100_000;

/// Consecutive intervals, each at least as long as the delay after its end at which an execution
/// must be made, so that each execution is tried twice before that. All times are in nanoseconds
/// from the origin.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    /// Length of a step; every interval but the first begins at a multiple of it.
    step: i64,
    /// Beginnings of all intervals but the first, ascending; `None`: each step is an interval.
    begins: Option<Arc<[i64]>>,
}

/// Intervals, and the ends of traces in them. All times are in nanoseconds from the origin.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    intervals: Intervals,
    /// Ends of the traces that end earlier than others, ascending. A part also ends right after
    /// each trace.
    ends: Vec<i64>,
}

/// Range of time whose events are taken out of the merged chunks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    from: i64,
    /// Exclusive end; `i64::MAX` stands for the end of all traces.
    pub(crate) until: i64,
}

/// End of a part (`None`: the end of all traces) and its graph events (`None`: no events for the
/// graph).
pub(crate) type CutPart = (Option<i64>, Option<CutSlice>);

/// Beginning of the step that contains `time`.
fn begin_of(time: i64, step: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(step))
}

/// Bytes of the packets in each step, by the beginning of the step. The bytes of a packet are
/// distributed evenly over the time from its begin to its end. `None` if a packet of at least
/// `least` bytes does not contain both times: an interval could then contain the whole trace.
/// Smaller packets without a begin time are ignored.
fn bytes_by_step(set: &TraceSet, step: i64, least: u64) -> Option<BTreeMap<i64, u64>> {
    let mut by_step = BTreeMap::new();
    for (trace, stream) in set.streams() {
        let Some(clock) = trace.clock(stream) else {
            continue;
        };
        for packet in &stream.packets {
            let time = |cycles: Option<u64>| cycles.map(|cycles| clock.timestamp(cycles).0);
            match (time(packet.begin), time(packet.end)) {
                (Some(begin), Some(end)) => {
                    distribute(packet.bytes, (begin, end), step, &mut by_step)
                }
                _ if packet.bytes >= least => return None,
                (Some(begin), None) => {
                    *by_step.entry(begin_of(begin, step)).or_default() += packet.bytes
                }
                (None, _) => {}
            }
        }
    }
    Some(by_step)
}

/// Adds the bytes of a packet to the steps of its time, in pieces of at most [`PIECE`] bytes.
fn distribute(bytes: u64, (begin, end): (i64, i64), step: i64, by_step: &mut BTreeMap<i64, u64>) {
    let pieces = bytes.div_ceil(PIECE).max(1);
    let length = (i128::from(end) - i128::from(begin)).max(0);
    for piece in 0..pieces {
        let time = i128::from(begin) + length * i128::from(piece) / i128::from(pieces);
        let of_piece = bytes / pieces + u64::from(piece < bytes % pieces);
        *by_step.entry(begin_of(time as i64, step)).or_default() += of_piece;
    }
}

/// Beginnings of all intervals but the first. Each interval but the last contains at least `least`
/// bytes.
fn begins(by_step: BTreeMap<i64, u64>, step: i64, least: u64) -> Vec<i64> {
    let mut begins = Vec::new();
    let mut bytes = 0u64;
    for (begin, of_step) in by_step {
        bytes = bytes.saturating_add(of_step);
        if bytes >= least {
            begins.extend(begin.checked_add(step));
            bytes = 0;
        }
    }
    begins
}

impl Intervals {
    /// Intervals that consist of steps of `behind` nanoseconds (at least [`SHORTEST`]): the delay
    /// after its end at which an execution must be made. Each interval but the last one contains at
    /// least `bytes` bytes of packets. Each step is an interval if `bytes` is 0, or if a packet of
    /// at least `bytes` bytes lacks its begin or end time.
    pub(crate) fn new(set: &TraceSet, behind: u64, bytes: u64) -> Intervals {
        let step = i64::try_from(behind).unwrap_or(i64::MAX).max(SHORTEST);
        let by_step = (bytes > 0)
            .then(|| bytes_by_step(set, step, bytes))
            .flatten();
        let begins = by_step.map(|by_step| begins(by_step, step, bytes).into());
        Intervals { step, begins }
    }

    /// Beginning of the interval that contains `time`; `i64::MIN` for the first one.
    pub(crate) fn begin_of(&self, time: i64) -> i64 {
        let Some(begins) = &self.begins else {
            return begin_of(time, self.step);
        };
        let next = begins.partition_point(|&begin| begin <= time);
        let last = next.checked_sub(1).and_then(|last| begins.get(last));
        last.copied().unwrap_or(i64::MIN)
    }

    /// Beginning of the interval after the one that contains `time`; `None` if the last interval
    /// contains `time`.
    fn end_of(&self, time: i64) -> Option<i64> {
        match &self.begins {
            None => begin_of(time, self.step).checked_add(self.step),
            Some(begins) => {
                let next = begins.partition_point(|&begin| begin <= time);
                begins.get(next).copied()
            }
        }
    }

    /// Beginning of the first interval at or after `time`.
    pub(crate) fn next_begin(&self, time: i64) -> Option<i64> {
        match self.begin_of(time) == time {
            true => Some(time),
            false => self.end_of(time),
        }
    }

    /// Lower bound for the times of events in a part that ends at `until` (exclusive).
    pub(crate) fn begin_of_part(&self, until: i64) -> i64 {
        self.begin_of(until.saturating_sub(1))
    }
}

impl Grid {
    /// `ends`: the end times of traces that end earlier than others, in any order.
    pub(crate) fn new(intervals: Intervals, mut ends: Vec<i64>) -> Grid {
        ends.sort_unstable();
        Grid { intervals, ends }
    }

    pub(crate) fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// Divides the events of a stage into consecutive parts.
    pub(crate) fn parts(
        &self,
        Stage { from, until }: Stage,
        mut cut: Option<CutSlice>,
    ) -> Vec<CutPart> {
        let mut parts = Vec::new();
        let mut begin = from;
        while let Some(rest) = &mut cut
            && let Some(first) = rest.first()
        {
            let next = self.intervals.end_of(first).unwrap_or(i64::MAX);
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
        let next = self
            .ends
            .partition_point(|&end| end.saturating_add(1) <= from);
        let end = self.ends.get(next)?.saturating_add(1);
        (end < until).then_some(end)
    }
}

impl Intervals {
    /// Next stage after one that ended at `from`, if all events before `watermark` are known. The
    /// stage ends with the last complete interval, so that an interval is not divided into parts.
    /// If no interval is complete, the stage ends at `watermark`: an interval may be too large to
    /// keep until it is complete. `None` if `watermark` is not later than `from`, except at the end
    /// of all traces.
    pub(crate) fn stage(&self, from: i64, watermark: i64) -> Option<Stage> {
        let last = watermark == i64::MAX;
        let begin = self.begin_of(watermark);
        let until = if begin > from && !last {
            begin
        } else {
            watermark
        };
        (until > from || last).then_some(Stage { from, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(step: i64, begins: Option<&[i64]>) -> Intervals {
        let begins = begins.map(Arc::from);
        Intervals { step, begins }
    }

    #[test]
    fn a_step_is_an_interval_if_no_bytes_are_required() {
        let set = TraceSet::default();
        let steps = [0, 3, 4_000_000].map(|behind| Intervals::new(&set, behind, 0).step);
        assert_eq!(steps, [SHORTEST, SHORTEST, 4_000_000]);
        let steps = intervals(10, None);
        let begins = [-11, -10, -1, 0, 9, 10].map(|time| steps.begin_of(time));
        assert_eq!(begins, [-20, -10, -10, 0, 0, 10]);
        let next = [-11, -10, 0, 1, i64::MAX].map(|time| steps.next_begin(time));
        assert_eq!(next, [Some(-10), Some(-10), Some(0), Some(10), None]);
        let parts = [0, 1, 10, 11].map(|until| steps.begin_of_part(until));
        assert_eq!(parts, [-10, 0, 0, 10]);
        let grid = Grid::new(steps, vec![25, 7]);
        let ends =
            [(0, 10), (8, 30), (26, 30), (0, 8)].map(|(from, until)| grid.end_between(from, until));
        assert_eq!(ends, [Some(8), Some(26), None, None]);
    }

    #[test]
    fn bytes_of_large_packets_are_distributed_over_their_time() {
        let mut by_step = BTreeMap::new();
        distribute(3 * PIECE, (5, 35), 10, &mut by_step);
        distribute(7, (-1, 100), 10, &mut by_step);
        distribute(PIECE + 1, (50, 40), 10, &mut by_step);
        let expected = [
            (-10, 7),
            (0, PIECE),
            (10, PIECE),
            (20, PIECE),
            (50, PIECE + 1),
        ];
        assert_eq!(by_step, BTreeMap::from(expected));
    }

    #[test]
    fn intervals_contain_at_least_the_required_bytes() {
        let by_step = BTreeMap::from([
            (-10, 4),
            (0, 3),
            (10, 2),
            (40, 9),
            (50, 1),
            (70, 4),
            (80, 4),
        ]);
        assert_eq!(begins(by_step.clone(), 10, 5), [10, 50, 80]);
        assert_eq!(begins(by_step.clone(), 10, 1), [0, 10, 20, 50, 60, 80, 90]);
        assert_eq!(begins(by_step, 10, 100), [0; 0]);
        assert_eq!(begins(BTreeMap::from([(0, 9)]), i64::MAX, 5), [i64::MAX]);
        assert_eq!(begins(BTreeMap::from([(10, 9)]), i64::MAX, 5), [0; 0]);

        let some = intervals(10, Some(&[10, 50]));
        let begins = [-11, 9, 10, 49, 50, 99].map(|time| some.begin_of(time));
        assert_eq!(begins, [i64::MIN, i64::MIN, 10, 10, 50, 50]);
        let next = [-11, 10, 11, 50, 51].map(|time| some.next_begin(time));
        assert_eq!(next, [Some(10), Some(10), Some(50), Some(50), None]);
        let parts = [10, 11, 50, 51].map(|until| some.begin_of_part(until));
        assert_eq!(parts, [i64::MIN, 10, 10, 50]);
    }

    #[test]
    fn stages_end_with_intervals_that_are_complete() {
        let some = intervals(10, Some(&[10, 50]));
        let stage = |from, watermark| some.stage(from, watermark).map(|stage| stage.until);
        let whole =
            [(0, 9), (0, 10), (0, 40), (10, 60)].map(|(from, watermark)| stage(from, watermark));
        assert_eq!(whole, [Some(9), Some(10), Some(10), Some(50)]);
        let within = [(10, 20), (20, 40), (50, 70)].map(|(from, watermark)| stage(from, watermark));
        assert_eq!(within, [Some(20), Some(40), Some(70)]);
        let last = [(0, i64::MAX), (60, i64::MAX), (i64::MAX, i64::MAX)];
        assert_eq!(
            last.map(|(from, watermark)| stage(from, watermark)),
            [Some(i64::MAX); 3]
        );
        assert_eq!(
            [(10, 10), (20, 15)].map(|(from, watermark)| stage(from, watermark)),
            [None; 2]
        );
    }
}
