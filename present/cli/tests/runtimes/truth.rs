//! The log of a program and its recording, compared interval by interval.

use std::collections::{BTreeMap, HashMap};

use crate::recorded::Event;

/// Code of a task between two calls of its runtime.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) task: String,
    pub(crate) tid: i64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The task has a lock meanwhile.
    pub(crate) holds: bool,
}

/// Lines `[holds] TASK TID BEGIN END`; others are left out.
pub(crate) fn segments(log: &str) -> Vec<Segment> {
    let segment = |line: &str| {
        let rest = line.strip_prefix("holds ").unwrap_or(line);
        let words: Vec<&str> = rest.split(' ').collect();
        let &[task, tid, begin, end] = &words[..] else {
            return None;
        };
        Some(Segment {
            task: task.to_owned(),
            tid: tid.parse().ok()?,
            begin: begin.parse().ok()?,
            end: end.parse().ok()?,
            holds: line.starts_with("holds "),
        })
    };
    log.lines().filter_map(segment).collect()
}

/// A user-level thread ran on an LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) tid: i64,
    pub(crate) ult: u64,
}

/// A wait of a user-level thread.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) ult: u64,
    pub(crate) reason: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The user-level thread that ran on the waker's LWP; 0 for the scheduler.
    pub(crate) waker: u64,
}

/// The content of a recording.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) intervals: Vec<Interval>,
    pub(crate) waits: Vec<Wait>,
    pub(crate) names: BTreeMap<u64, String>,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Ready,
    Running,
    Blocked(String, u64),
    Ended,
}

/// Follows the event records. Each must be possible in the state in which it finds its user-level
/// thread.
pub(crate) fn follow(events: &[Event]) -> Recorded {
    let mut follower = Follower::default();
    for event in events {
        follower.take(event);
    }
    follower.found
}

#[derive(Default)]
struct Follower {
    found: Recorded,
    states: HashMap<u64, State>,
    /// By LWP: the user-level thread that runs there, and since when.
    current: HashMap<i64, (u64, u64)>,
}

impl Follower {
    fn take(&mut self, event: &Event) {
        match event.name.as_str() {
            "tracebraid:ult_switch" => self.switch(event),
            "tracebraid:ult_create" => {
                let ult = event.number("ult");
                let was = self.states.insert(ult, State::Ready);
                assert!(ult > 0 && was.is_none(), "{ult} exists");
                self.name(event);
            }
            "tracebraid:ult_name" => self.name(event),
            "tracebraid:ult_block" => {
                let ult = event.number("ult");
                let blocked = State::Blocked(event.text("reason").to_owned(), event.time);
                let was = self.states.insert(ult, blocked);
                let is_possible = matches!(was, Some(State::Ready | State::Running));
                assert!(is_possible, "{ult}: {was:?}");
            }
            "tracebraid:ult_wake" => self.wake(event),
            "tracebraid:ult_exit" => {
                let ult = event.number("ult");
                let was = self.states.insert(ult, State::Ended);
                assert!(was.is_some() && was != Some(State::Ended), "{ult}: {was:?}");
            }
            _ => {}
        }
    }

    fn name(&mut self, event: &Event) {
        let name = event.text("name").to_owned();
        self.found.names.insert(event.number("ult"), name);
    }

    fn switch(&mut self, event: &Event) {
        let time = event.time;
        let (prev, next) = (event.number("prev_ult"), event.number("next_ult"));
        let was = self.current.insert(event.tid, (next, time));
        let (running, since) = was.unwrap_or((0, 0));
        assert_eq!(running, prev, "at {time} on {}", event.tid);
        if prev > 0 {
            self.found.intervals.push(Interval {
                begin: since,
                end: time,
                tid: event.tid,
                ult: prev,
            });
            if self.states.get(&prev) == Some(&State::Running) {
                self.states.insert(prev, State::Ready);
            }
        }
        if next > 0 {
            let was = self.states.insert(next, State::Running);
            assert_eq!(was, Some(State::Ready), "{next} runs at {time}");
        }
    }

    fn wake(&mut self, event: &Event) {
        let ult = event.number("ult");
        let was = self.states.insert(ult, State::Ready);
        let Some(State::Blocked(reason, begin)) = was else {
            panic!("{ult} is woken at {}: {was:?}", event.time);
        };
        self.found.waits.push(Wait {
            ult,
            reason,
            begin,
            end: event.time,
            waker: self.current.get(&event.tid).map_or(0, |of| of.0),
        });
    }
}

/// Nanoseconds by which a time of the program and one of the recorder may differ.
const SLACK: u64 = 100;

/// Nanoseconds by which the clocks of a program and its recorder may differ for some time: the recorder
/// derives the time from the cycle counter, and the kernel corrects its own clock now and then.
const MOST_SHIFT: i64 = 2000;

/// The user-level thread that ran during a segment.
fn ult_during(intervals: &[Interval], segment: &Segment) -> Option<u64> {
    let from = intervals.partition_point(|interval| interval.end <= segment.begin);
    let overlap = |interval: &Interval| {
        let begin = interval.begin.max(segment.begin);
        interval.end.min(segment.end).saturating_sub(begin)
    };
    let near = intervals[from..].iter().take(3);
    let best = near.max_by_key(|interval| overlap(interval));
    let covers = |interval: &&Interval| {
        interval.begin <= segment.begin + SLACK && interval.end + SLACK >= segment.end
    };
    best.filter(covers).map(|found| found.ult)
}

type ByThread = HashMap<i64, Vec<Interval>>;

/// User-level threads by task, and tasks by user-level thread.
#[derive(Clone, Default)]
struct Pairs {
    ult_of: BTreeMap<String, u64>,
    task_of: HashMap<u64, String>,
}

impl Pairs {
    /// Adds the segments, with the program's times moved by `shift` nanoseconds.
    fn matched(
        mut self,
        by_thread: &ByThread,
        segments: &[Segment],
        shift: i64,
    ) -> Result<Pairs, String> {
        for segment in segments {
            let moved = Segment {
                begin: segment.begin.saturating_add_signed(shift),
                end: segment.end.saturating_add_signed(shift),
                ..segment.clone()
            };
            let intervals = by_thread.get(&segment.tid).map_or(&[][..], |found| found);
            let Some(ult) = ult_during(intervals, &moved) else {
                return Err(format!("no user-level thread ran during {segment:?}"));
            };
            if *self.ult_of.entry(segment.task.clone()).or_insert(ult) != ult {
                return Err(format!("{segment:?} in user-level thread {ult}"));
            }
            let task = self.task_of.entry(ult).or_insert(segment.task.clone());
            if *task != segment.task {
                return Err(format!("{segment:?}: user-level thread {ult} is {task}"));
            }
        }
        Ok(self)
    }

    /// Adds the segments, with the smallest shift that fits; with several, if the clock was corrected
    /// meanwhile.
    fn fitted(self, by_thread: &ByThread, segments: &[Segment]) -> Result<Pairs, String> {
        let without = match self.clone().matched(by_thread, segments, 0) {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let sizes = (1..).map(|step| step * 50);
        let sizes = sizes.take_while(|&shift| shift <= MOST_SHIFT);
        let mut shifts = sizes.flat_map(|size| [size, -size]);
        let shifted = |shift| self.clone().matched(by_thread, segments, shift).ok();
        if let Some(found) = shifts.find_map(shifted) {
            return Ok(found);
        }
        match segments.split_at(segments.len() / 2) {
            ([], _) => Err(without),
            (first, second) => self.fitted(by_thread, first)?.fitted(by_thread, second),
        }
    }
}

/// Checks that each segment lies in an interval of one user-level thread, always the same one for a
/// task, and never that of another task; and that none runs on two LWPs at once. Returns the
/// user-level thread of each task.
pub(crate) fn agree(recorded: &Recorded, segments: &[Segment]) -> BTreeMap<String, u64> {
    assert!(!segments.is_empty(), "the program logs");
    let mut by_thread = ByThread::new();
    let mut by_ult: HashMap<u64, Vec<Interval>> = HashMap::new();
    for interval in &recorded.intervals {
        by_thread.entry(interval.tid).or_default().push(*interval);
        by_ult.entry(interval.ult).or_default().push(*interval);
    }
    for intervals in by_ult.values_mut() {
        intervals.sort_unstable();
        let overlap = intervals
            .windows(2)
            .find(|pair| pair[0].end > pair[1].begin);
        assert_eq!(overlap, None, "a user-level thread runs twice at once");
    }
    by_thread
        .values_mut()
        .for_each(|intervals| intervals.sort_unstable());
    let mut segments = segments.to_vec();
    segments.sort_by_key(|segment| segment.begin);
    let mut pairs = Pairs::default();
    for some in segments.chunks(64) {
        pairs = pairs
            .fitted(&by_thread, some)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    pairs.ult_of
}

/// Checks that user-level threads which wait do not run, although their threads may spin: in the
/// middle of most segments, none runs without a segment of its own. (A thread may be preempted
/// between its segment and its wait.)
pub(crate) fn waiters_do_not_run(recorded: &Recorded, segments: &[Segment]) {
    let long: Vec<&Segment> = segments
        .iter()
        .filter(|of| of.end - of.begin > 20_000)
        .collect();
    assert!(long.len() > 5, "{} segments", long.len());
    let is_disturbed = |middle: u64| {
        let running = recorded
            .intervals
            .iter()
            .filter(|of| of.begin < middle && middle < of.end);
        let logged = segments
            .iter()
            .filter(|of| of.begin < middle && middle < of.end);
        running.count() > logged.count()
    };
    let disturbed = long
        .iter()
        .filter(|of| is_disturbed(of.begin.midpoint(of.end)))
        .count();
    assert!(
        disturbed * 2 < long.len(),
        "{disturbed} of {} segments",
        long.len()
    );
}
