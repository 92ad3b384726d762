//! The count report: how many event records, of which event classes, in which streams, when.

mod report;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::scan::{Counted, Counts, LANES, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_fold::{Analysis, Chunk, Feed, Lane, Record, Shared, StreamPlace, StreamRef};

use crate::kernel::{CpuSet, Window};
pub use report::{CountReport, LossRow, Rate, StreamRow};

/// Counts event records.
#[derive(Debug)]
pub struct Count<'t> {
    set: &'t TraceSet,
    window: Window,
    cpus: CpuSet,
    /// Boundaries of the parts of the time range, ascending: one more than there are parts.
    bounds: Vec<i64>,
}

/// Counts of some chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountPartial {
    /// By trace and stream class: counts by event class.
    classes: BTreeMap<(u32, u32), Vec<u64>>,
    streams: BTreeMap<StreamRef, StreamCount>,
    /// Event records in each part of the time range.
    rate: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StreamCount {
    events: u64,
    /// Times of the first and the last event record.
    times: Option<(i64, i64)>,
}

impl<'t> Count<'t> {
    /// Counts what is in the window and on those CPUs, in `parts` parts of equal length.
    pub fn new(set: &'t TraceSet, window: Window, cpus: CpuSet, parts: usize) -> Self {
        Count {
            set,
            window,
            cpus,
            bounds: bounds(set, window, parts.max(1)),
        }
    }

    /// A counter of single event records, for who chooses them one by one.
    pub fn counter(&self) -> Counter<'_> {
        Counter {
            count: self,
            partial: CountPartial::default(),
        }
    }

    fn is_chosen(&self, stream: StreamRef) -> bool {
        self.cpus.0.is_none() || report::cpu_of(self.set, stream).is_some_and(|cpu| self.cpus.contains(cpu))
    }

    /// The part of the time range that the lane's current packet begins in. Parts 0 and
    /// `parts + 1` are what lies before and behind the window.
    fn first_part(&self, lane: &Lane<'_>) -> Part {
        match lane.clock {
            Some(clock) => {
                let begin = clock.timestamp(lane.scanner.clock()).0.min(LAST);
                self.part(lane, self.bounds.partition_point(|&bound| bound <= begin))
            }
            None => Part {
                index: 0,
                limit: u64::MAX,
                wanted: true,
            },
        }
    }

    fn part(&self, lane: &Lane<'_>, index: usize) -> Part {
        let limit = match (self.bounds.get(index), lane.clock) {
            (Some(&bound), Some(clock)) if index + 1 < self.bounds.len() || self.window.to.is_some() => {
                clock.cycles_at(Timestamp(bound))
            }
            _ => u64::MAX,
        };
        let inner = 1..self.bounds.len();
        Part {
            index,
            limit,
            wanted: inner.contains(&index) || (index == 0 && self.window.from.is_none()),
        }
    }

    /// Takes over what was counted in a part of a packet.
    fn close(&self, partial: &mut CountPartial, lane: &Lane<'_>, run: &Run) {
        if run.events == 0 {
            return;
        }
        let times = lane
            .clock
            .map(|clock| (clock.timestamp(run.first).0, clock.timestamp(run.last).0));
        let part = lane.clock.map(|_| run.part.index.max(1) - 1);
        partial.add(
            lane.stream,
            StreamCount {
                events: run.events,
                times,
            },
            part,
        );
    }

    /// Goes on by one event record, one part or one packet.
    fn step(&self, partial: &mut CountPartial, lane: &mut Lane<'_>, run: &mut Run, counts: &mut Two) {
        if !run.part.wanted {
            // What is left out is gone over in one go.
            let counted = lane.scanner.count(&mut counts.unwanted, run.part.limit);
            return if counted.ended {
                run.state = State::Closed
            } else {
                run.go_to(self.part(lane, run.part.index + 1))
            };
        }
        let counted = lane.scanner.nudge(&mut counts.wanted, run.part.limit);
        run.add(counted);
        run.waits = run.events == 0;
        if counted.ended || counted.limited {
            self.close(partial, lane, run);
            if counted.ended {
                run.state = State::Closed
            } else {
                run.go_to(self.part(lane, run.part.index + 1))
            }
        }
    }

    /// Goes to the next packet.
    fn open(&self, shared: &mut Shared<'_>, index: usize, run: &mut Run) {
        run.state = if shared.next_packet(index) {
            State::Open
        } else {
            State::Finished
        };
        if let Some(lane) = shared.lanes.get(index) {
            run.go_to(self.first_part(lane));
        }
    }

    /// Counts in several packets of one stream at once, and in what is left one by one.
    fn stream(&self, partial: &mut CountPartial, shared: &mut Shared<'_>, counts: &mut Two) {
        let mut runs = [Run::CLOSED; LANES];
        loop {
            for (index, run) in runs.iter_mut().enumerate() {
                match (run.state, shared.lanes.get_mut(index)) {
                    (State::Closed, _) => self.open(shared, index, run),
                    (State::Open, Some(lane)) if run.waits => self.step(partial, lane, run, counts),
                    _ => {}
                }
            }
            let [a, b, c] = &mut *shared.lanes else { break };
            if runs.iter().any(|run| run.state == State::Finished) {
                break;
            }
            let is_ready = |run: &Run| run.state == State::Open && run.part.wanted && !run.waits;
            if runs.iter().all(is_ready) {
                let scanners = [&mut a.scanner, &mut b.scanner, &mut c.scanner];
                let limits = runs.each_ref().map(|run| run.part.limit);
                let (counted, stopped) = Scanner::count_together(scanners, &mut counts.wanted, limits);
                for ((run, events), lane) in runs.iter_mut().zip(counted).zip([&*a, &*b, &*c]) {
                    run.events += events;
                    run.last = lane.scanner.clock();
                }
                runs[stopped].waits = true;
            }
        }
        for (index, run) in runs.iter_mut().enumerate() {
            while run.state != State::Finished {
                match (run.state, shared.lanes.get_mut(index)) {
                    (State::Open, Some(lane)) => self.alone(partial, lane, run, counts),
                    _ => self.open(shared, index, run),
                }
            }
        }
    }

    /// Counts what is left of a lane's packet.
    fn alone(&self, partial: &mut CountPartial, lane: &mut Lane<'_>, run: &mut Run, counts: &mut Two) {
        while run.state == State::Open {
            let into = if run.part.wanted {
                &mut counts.wanted
            } else {
                &mut counts.unwanted
            };
            let counted = lane.scanner.count(into, run.part.limit);
            run.add(counted);
            if run.part.wanted {
                self.close(partial, lane, run);
            }
            if counted.ended {
                run.state = State::Closed
            } else {
                run.go_to(self.part(lane, run.part.index + 1))
            }
        }
    }
}

/// A part of the time range, for a stream.
#[derive(Clone, Copy, Debug)]
struct Part {
    index: usize,
    /// Clock value at which it ends, in cycles.
    limit: u64,
    wanted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between packets.
    Closed,
    /// In a packet.
    Open,
    /// Behind the last packet.
    Finished,
}

/// Where counting is in a lane, and what it has counted in this part of this packet.
#[derive(Clone, Copy, Debug)]
struct Run {
    state: State,
    part: Part,
    /// A step must come first: at the beginning of each part, which finds its first event record,
    /// and where several lanes at once cannot go on.
    waits: bool,
    events: u64,
    first: u64,
    last: u64,
}

impl Run {
    const CLOSED: Run = Run {
        state: State::Closed,
        part: Part {
            index: 0,
            limit: 0,
            wanted: false,
        },
        waits: true,
        events: 0,
        first: 0,
        last: 0,
    };

    fn go_to(&mut self, part: Part) {
        (self.part, self.waits, self.events) = (part, true, 0);
    }

    fn add(&mut self, counted: Counted) {
        if self.events == 0 {
            self.first = counted.first;
        }
        self.events += counted.events;
        self.last = counted.last;
    }
}

/// Counts event records that are given to it.
#[derive(Debug)]
pub struct Counter<'a> {
    count: &'a Count<'a>,
    partial: CountPartial,
}

impl Counter<'_> {
    /// Counts one, by the index of its class.
    pub fn add(&mut self, trace: &Trace, stream: &Stream, class: usize, time: Timestamp) {
        let Some((trace_index, stream_index)) = place(self.count.set, trace, stream) else {
            return;
        };
        let classes = trace
            .layout
            .streams
            .get(stream.class)
            .map_or(0, |layout| layout.events.len());
        let key = (trace_index, stream.class as u32);
        let counts = self
            .partial
            .classes
            .entry(key)
            .or_insert_with(|| vec![0; classes]);
        if let Some(count) = counts.get_mut(class) {
            *count += 1;
        }
        let count = StreamCount {
            events: 1,
            times: Some((time.0, time.0)),
        };
        let part = self.count.bounds.partition_point(|&bound| bound <= time.0).max(1) - 1;
        let part = part.min(self.count.bounds.len().saturating_sub(2));
        let stream = StreamRef {
            trace: trace_index,
            stream: stream_index,
        };
        self.partial.add(stream, count, Some(part));
    }

    /// The report on all that were given.
    pub fn finish(self) -> CountReport {
        self.count.finish(self.partial)
    }
}

fn place(set: &TraceSet, trace: &Trace, stream: &Stream) -> Option<(u32, u32)> {
    let trace_index = set.traces.iter().position(|other| std::ptr::eq(other, trace))?;
    let stream_index = trace
        .streams
        .iter()
        .position(|other| std::ptr::eq(other, stream))?;
    Some((trace_index as u32, stream_index as u32))
}

/// Something is behind the last part.
const LAST: i64 = i64::MAX - 1;

/// Equal parts of the window, or of the time that the packets say they cover.
fn bounds(set: &TraceSet, window: Window, parts: usize) -> Vec<i64> {
    let mut covered: Option<(i64, i64)> = None;
    for trace in &set.traces {
        for stream in &trace.streams {
            let Some(clock) = trace.clock(stream) else {
                continue;
            };
            for packet in &stream.packets {
                for time in [packet.begin, packet.end]
                    .into_iter()
                    .flatten()
                    .map(|cycles| clock.timestamp(cycles).0.min(LAST))
                {
                    let (from, to) = covered.get_or_insert((time, time));
                    (*from, *to) = ((*from).min(time), (*to).max(time));
                }
            }
        }
    }
    let (from, to) = covered.unwrap_or((0, 0));
    let from = window.from.map_or(from, |time| time.0.max(from));
    let to = window
        .to
        .map_or(to.saturating_add(1), |time| time.0.min(to.saturating_add(1)))
        .max(from);
    let length = i128::from(to) - i128::from(from);
    let bound = |part: usize| (i128::from(from) + length * part as i128 / parts as i128) as i64;
    (0..=parts).map(bound).collect()
}

/// Counts of what is asked for, and of the rest of the packets that reach over the boundary.
struct Two {
    wanted: Counts,
    unwanted: Counts,
}

impl CountPartial {
    fn add(&mut self, stream: StreamRef, count: StreamCount, part: Option<usize>) {
        self.add_stream(stream, count);
        if let Some(part) = part {
            if self.rate.len() <= part {
                self.rate.resize(part + 1, 0);
            }
            self.rate[part] += count.events;
        }
    }

    fn add_stream(&mut self, stream: StreamRef, count: StreamCount) {
        let known = self.streams.entry(stream).or_insert(StreamCount {
            events: 0,
            times: None,
        });
        known.events += count.events;
        known.times = match (known.times, count.times) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    fn add_classes(&mut self, key: (u32, u32), counts: Vec<u64>) {
        match self.classes.entry(key) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(counts);
            }
            std::collections::btree_map::Entry::Occupied(mut place) => {
                place
                    .get_mut()
                    .iter_mut()
                    .zip(counts)
                    .for_each(|(sum, count)| *sum += count);
            }
        }
    }
}

impl Analysis for Count<'_> {
    type Partial = CountPartial;
    type Report = CountReport;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        StreamRef::all(set)
            .filter(|&stream| self.is_chosen(stream))
            .map(|stream| vec![stream])
            .collect()
    }

    fn wants(&self, _: usize, _: usize, _: usize) -> bool {
        false
    }

    fn lanes(&self) -> usize {
        LANES
    }

    fn begin(&self, _: &Chunk) -> CountPartial {
        CountPartial::default()
    }

    fn packet(&self, _: &mut CountPartial, _: &StreamPlace<'_>) {}

    fn event(&self, _: &mut CountPartial, _: &mut Record<'_>) {}

    /// Event records are counted where they are scanned; none is looked at by itself.
    fn chunk(&self, partial: &mut CountPartial, feed: &mut Feed<'_>) {
        let set = feed.set();
        for mut shared in feed.share(LANES) {
            let Some(stream_ref) = shared.lanes.first().map(|lane| lane.stream) else {
                continue;
            };
            let Some((trace, stream)) = stream_ref.of(set) else {
                continue;
            };
            let Some(layout) = trace.layout.streams.get(stream.class) else {
                continue;
            };
            let mut counts = Two {
                wanted: Counts::new(layout),
                unwanted: Counts::new(layout),
            };
            self.stream(partial, &mut shared, &mut counts);
            partial.add_classes(
                (stream_ref.trace, stream.class as u32),
                counts.wanted.take(layout),
            );
            feed.give_back(shared);
        }
    }

    fn end(&self, _: &mut CountPartial, _: &Chunk) {}

    fn merge(&self, earlier: &mut CountPartial, later: CountPartial) {
        for (key, counts) in later.classes {
            earlier.add_classes(key, counts);
        }
        for (stream, count) in later.streams {
            earlier.add_stream(stream, count);
        }
        if earlier.rate.len() < later.rate.len() {
            earlier.rate.resize(later.rate.len(), 0);
        }
        earlier
            .rate
            .iter_mut()
            .zip(later.rate)
            .for_each(|(sum, count)| *sum += count);
    }

    fn finish(&self, partial: CountPartial) -> CountReport {
        report::make(self.set, &self.bounds, partial)
    }
}
