//! Times at which threads turn to another execution; these times bound the hand-over of an
//! execution.
//!
//! A thread that takes executions from a queue ends an execution before it turns to the next. A
//! thread that hands executions on begins the next after it has handed on the previous one. See
//! [`tracebraid_graph::Passed`].

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use tracebraid_graph::ActorId;
use tracebraid_language::Datum;
use tracebraid_periods::Bound;

/// The thread of an event record, if the record contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordThread {
    pub(crate) trace: u32,
    pub(crate) cpu: Option<u32>,
    pub(crate) tid: Option<i64>,
}

impl RecordThread {
    /// The thread in the last capture of a bound.
    pub(crate) fn of(bound: &Bound) -> RecordThread {
        let tid = match bound.captures.last() {
            Some(Datum::Integer(tid)) => i64::try_from(*tid).ok(),
            _ => None,
        };
        RecordThread {
            trace: bound.trace,
            cpu: bound.cpu,
            tid,
        }
    }

    /// True if both are certainly the same thread.
    fn is_surely(&self, other: &RecordThread) -> bool {
        self.trace == other.trace && self.tid.is_some() && self.tid == other.tid
    }
}

/// Identifies executions of one kind: a definition of periods, or a name of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Label(u64);

impl Label {
    pub(crate) fn of_period(kind: usize) -> Label {
        Label(kind as u64)
    }

    pub(crate) fn of_span(name: &[u8]) -> Label {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Label(hasher.finish() | 1 << 63)
    }
}

/// Begin or end of an execution in a thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// Nanoseconds from the origin.
    pub(crate) time: i64,
    pub(crate) thread: RecordThread,
    pub(crate) label: Label,
    /// For an end: time and thread of the begin.
    pub(crate) begun: Option<(i64, RecordThread)>,
}

impl Turn {
    /// Turn at the end of an execution; `None` if it began in the same thread.
    pub(crate) fn ends(
        label: Label,
        begin: (i64, RecordThread),
        end: (i64, RecordThread),
    ) -> Option<Turn> {
        (!begin.1.is_surely(&end.1)).then_some(Turn {
            time: end.0,
            thread: end.1,
            label,
            begun: Some(begin),
        })
    }
}

/// End, in one thread, of an execution that began in another thread.
#[derive(Clone, Copy, Debug)]
struct End {
    time: i64,
    begin: i64,
    label: Label,
}

/// The turns of a thread, in the order of time.
#[derive(Clone, Debug, Default)]
struct OfThread {
    begins: Vec<(i64, Label)>,
    ends: Vec<End>,
    /// True if earlier ends were dropped.
    has_ended: bool,
}

/// The turns of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Turns whose threads are not resolved yet, in the order of time.
    new: VecDeque<Turn>,
    threads: BTreeMap<ActorId, OfThread>,
}

/// Bounds of the time at which an execution was handed over; see [`tracebraid_graph::Passed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) busy_until: Option<i64>,
    pub(crate) next: Option<i64>,
    pub(crate) was_free: bool,
}

impl Turns {
    pub(crate) fn extend(&mut self, turns: impl IntoIterator<Item = Turn>) {
        let known = self.new.len();
        self.new.extend(turns);
        if self.new.len() > known {
            // Stable. Fast, since the turns left from earlier calls are sorted.
            self.new.make_contiguous().sort_by_key(|turn| turn.time);
        }
    }

    /// Resolves the threads of turns earlier than `until`; without it, of all turns. The cost is
    /// linear in the number of these turns.
    pub(crate) fn look_up(
        &mut self,
        until: Option<i64>,
        thread: impl Fn(i64, &RecordThread) -> Option<ActorId>,
    ) {
        let is_known = |turn: &Turn| until.is_none_or(|until| turn.time < until);
        while self.new.front().is_some_and(is_known)
            && let Some(turn) = self.new.pop_front()
        {
            let Some(actor) = thread(turn.time, &turn.thread) else {
                continue;
            };
            let Some((begin, first)) = turn.begun else {
                let begins = &mut self.threads.entry(actor).or_default().begins;
                let at = begins.partition_point(|begin| begin.0 <= turn.time);
                begins.insert(at, (turn.time, turn.label));
                continue;
            };
            if thread(begin, &first) == Some(actor) {
                continue;
            }
            let ends = &mut self.threads.entry(actor).or_default().ends;
            let at = ends.partition_point(|end| end.time <= turn.time);
            let end = End {
                time: turn.time,
                begin,
                label: turn.label,
            };
            ends.insert(at, end);
        }
    }

    /// Bounds for an execution that begins in the first thread and ends in the second one.
    pub(crate) fn bounds(
        &self,
        [first, last]: [ActorId; 2],
        (begin, end): (i64, i64),
        label: Label,
    ) -> Bounds {
        let mut bounds = Bounds::default();
        if let Some(of) = self.threads.get(&first) {
            let after = of.begins.partition_point(|of| of.0 <= begin);
            let later = of.begins.get(after..).unwrap_or_default().iter();
            let mut later = later.take_while(|of| of.0 < end);
            bounds.next = later.find(|of| of.1 == label).map(|of| of.0);
        }
        if let Some(of) = self.threads.get(&last) {
            // An execution of another kind that begins within it may be a part of it.
            let is_other = |of: &&End| of.label == label || of.begin <= begin;
            let before = of.ends.partition_point(|of| of.time < end);
            let earlier = of.ends.get(..before).unwrap_or_default().iter().rev();
            let mut within = earlier.take_while(|of| of.time > begin);
            bounds.busy_until = within.find(is_other).map(|of| of.time);
            bounds.was_free = of.has_ended || of.ends.first().is_some_and(|of| of.time <= begin);
        }
        bounds
    }

    /// Drops turns before a time: later queries begin after it.
    pub(crate) fn drop_before(&mut self, cut: i64) {
        for of in self.threads.values_mut() {
            let begins = of.begins.partition_point(|of| of.0 < cut);
            of.begins.drain(..begins);
            let ends = of.ends.partition_point(|of| of.time < cut);
            of.has_ended |= ends > 0;
            of.ends.drain(..ends);
        }
        self.threads
            .retain(|_, of| of.has_ended || !of.begins.is_empty() || !of.ends.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: u32 = 0;

    fn thread(tid: i64) -> RecordThread {
        RecordThread {
            trace: TRACE,
            cpu: None,
            tid: Some(tid),
        }
    }

    fn begins(time: i64, tid: i64, kind: usize) -> Turn {
        Turn {
            time,
            thread: thread(tid),
            label: Label::of_period(kind),
            begun: None,
        }
    }

    fn ends(kind: usize, begin: (i64, i64), end: (i64, i64)) -> Option<Turn> {
        let of = |(time, tid)| (time, thread(tid));
        Turn::ends(Label::of_period(kind), of(begin), of(end))
    }

    fn bounds(turns: &Turns, window: (i64, i64)) -> Bounds {
        turns.bounds([ActorId(1), ActorId(2)], window, Label::of_period(0))
    }

    #[test]
    fn bounds_are_other_executions_within() {
        let mut turns = Turns::default();
        // An execution that begins and ends in one thread has no turn.
        assert!(ends(0, (5, 2), (50, 2)).is_none());
        turns.extend([10, 40, 90].map(|time| begins(time, 1, 0)));
        turns.extend([begins(20, 1, 1)]);
        // An execution of another kind that begins within it may be a part of it.
        turns.extend(
            [
                ends(0, (0, 1), (30, 2)),
                ends(1, (15, 1), (45, 2)),
                ends(0, (10, 1), (60, 2)),
            ]
            .into_iter()
            .flatten(),
        );
        turns.look_up(None, |_, thread| Some(ActorId(thread.tid? as u32)));
        let expected = Bounds {
            busy_until: Some(30),
            next: Some(40),
            was_free: false,
        };
        assert_eq!(bounds(&turns, (10, 60)), expected);
        let after = Bounds {
            busy_until: None,
            next: Some(90),
            was_free: true,
        };
        assert_eq!(bounds(&turns, (60, 100)), after);
        turns.drop_before(60);
        assert_eq!(bounds(&turns, (60, 100)), after);
        turns.drop_before(80);
        assert_eq!(
            bounds(&turns, (80, 90)),
            Bounds {
                next: None,
                ..after
            }
        );
    }

    #[test]
    fn threads_are_looked_up_once_they_are_known() {
        let mut turns = Turns::default();
        turns.extend([begins(10, 1, 0), begins(40, 1, 0)]);
        let look = |_, thread: &RecordThread| Some(ActorId(thread.tid? as u32));
        turns.look_up(Some(40), look);
        assert_eq!(bounds(&turns, (5, 60)).next, Some(10));
        assert_eq!(bounds(&turns, (10, 60)).next, None);
        turns.look_up(Some(41), look);
        assert_eq!(bounds(&turns, (10, 60)).next, Some(40));
    }
}
