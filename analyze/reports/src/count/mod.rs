//! The count report: how many event records, of which event classes, in which streams, when.

mod report;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::scan::{Counted, Counts};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_fold::{Analysis, Chunk, Feed, Lane, Record, StreamPlace, StreamRef};

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
        Count { set, window, cpus, bounds: bounds(set, window, parts.max(1)) }
    }

    /// A counter of single event records, for who chooses them one by one.
    pub fn counter(&self) -> Counter<'_> {
        Counter { count: self, partial: CountPartial::default() }
    }

    fn is_chosen(&self, stream: StreamRef) -> bool {
        self.cpus.0.is_none() || report::cpu_of(self.set, stream).is_some_and(|cpu| self.cpus.contains(cpu))
    }

    /// Counts the event records of the lane's current packet.
    fn packet_of(&self, partial: &mut CountPartial, lane: &mut Lane<'_>, counts: &mut Two) {
        let Some(clock) = lane.clock else {
            let counted = lane.scanner.count(&mut counts.wanted, u64::MAX);
            return partial.add(lane.stream, counted, None, None);
        };
        let begin = clock.timestamp(lane.scanner.clock()).0;
        // Parts 0 and `parts + 1` are what lies before and behind the window.
        let mut part = self.bounds.partition_point(|&bound| bound <= begin);
        let inner = 1..self.bounds.len();
        loop {
            let limit = match self.bounds.get(part) {
                Some(&bound) if part + 1 < self.bounds.len() || self.window.to.is_some() => {
                    clock.cycles_at(Timestamp(bound))
                }
                _ => u64::MAX,
            };
            let wanted = inner.contains(&part) || (part == 0 && self.window.from.is_none());
            let counts = if wanted { &mut counts.wanted } else { &mut counts.unwanted };
            let counted = lane.scanner.count(counts, limit);
            if wanted && counted.events > 0 {
                let times = (clock.timestamp(counted.first).0, clock.timestamp(counted.last).0);
                partial.add(lane.stream, counted, Some(times), Some(part.max(1) - 1));
            }
            if counted.ended || limit == u64::MAX {
                return;
            }
            part += 1;
        }
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
        let Some((trace_index, stream_index)) = place(self.count.set, trace, stream) else { return };
        let classes = trace.layout.streams.get(stream.class).map_or(0, |layout| layout.events.len());
        let key = (trace_index, stream.class as u32);
        let counts = self.partial.classes.entry(key).or_insert_with(|| vec![0; classes]);
        if let Some(count) = counts.get_mut(class) {
            *count += 1;
        }
        let counted = Counted { events: 1, ..Counted::default() };
        let part = self.count.bounds.partition_point(|&bound| bound <= time.0).max(1) - 1;
        let part = part.min(self.count.bounds.len().saturating_sub(2));
        let stream = StreamRef { trace: trace_index, stream: stream_index };
        self.partial.add(stream, counted, Some((time.0, time.0)), Some(part));
    }

    /// The report on all that were given.
    pub fn finish(self) -> CountReport {
        self.count.finish(self.partial)
    }
}

fn place(set: &TraceSet, trace: &Trace, stream: &Stream) -> Option<(u32, u32)> {
    let trace_index = set.traces.iter().position(|other| std::ptr::eq(other, trace))?;
    let stream_index = trace.streams.iter().position(|other| std::ptr::eq(other, stream))?;
    Some((trace_index as u32, stream_index as u32))
}

/// Equal parts of the window, or of the time that the packets say they cover.
fn bounds(set: &TraceSet, window: Window, parts: usize) -> Vec<i64> {
    let mut covered: Option<(i64, i64)> = None;
    for trace in &set.traces {
        for stream in &trace.streams {
            let Some(clock) = trace.clock(stream) else { continue };
            for packet in &stream.packets {
                for time in [packet.begin, packet.end].into_iter().flatten().map(|cycles| clock.timestamp(cycles).0) {
                    let (from, to) = covered.get_or_insert((time, time));
                    (*from, *to) = ((*from).min(time), (*to).max(time));
                }
            }
        }
    }
    let (from, to) = covered.unwrap_or((0, 0));
    let from = window.from.map_or(from, |time| time.0.max(from));
    let to = window.to.map_or(to.saturating_add(1), |time| time.0.min(to.saturating_add(1))).max(from);
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
    fn add(&mut self, stream: StreamRef, counted: Counted, times: Option<(i64, i64)>, part: Option<usize>) {
        let count = StreamCount { events: counted.events, times };
        self.add_stream(stream, count);
        if let Some(part) = part {
            if self.rate.len() <= part {
                self.rate.resize(part + 1, 0);
            }
            self.rate[part] += counted.events;
        }
    }

    fn add_stream(&mut self, stream: StreamRef, count: StreamCount) {
        let known = self.streams.entry(stream).or_insert(StreamCount { events: 0, times: None });
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
                place.get_mut().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
    }
}

impl Analysis for Count<'_> {
    type Partial = CountPartial;
    type Report = CountReport;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        StreamRef::all(set).filter(|&stream| self.is_chosen(stream)).map(|stream| vec![stream]).collect()
    }

    fn wants(&self, _: usize, _: usize, _: usize) -> bool {
        false
    }

    fn begin(&self, _: &Chunk) -> CountPartial {
        CountPartial::default()
    }

    fn packet(&self, _: &mut CountPartial, _: &StreamPlace<'_>) {}

    fn event(&self, _: &mut CountPartial, _: &mut Record<'_>) {}

    /// Event records are counted where they are scanned; none is looked at by itself.
    fn chunk(&self, partial: &mut CountPartial, feed: &mut Feed<'_>) {
        let set = feed.set();
        for lane in feed.lanes() {
            let Some((trace, stream)) = lane.stream.of(set) else { continue };
            let Some(layout) = trace.layout.streams.get(stream.class) else { continue };
            let mut counts = Two { wanted: Counts::new(layout), unwanted: Counts::new(layout) };
            while lane.next_packet().is_some() {
                self.packet_of(partial, lane, &mut counts);
            }
            partial.add_classes((lane.stream.trace, stream.class as u32), counts.wanted.take(layout));
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
        earlier.rate.iter_mut().zip(later.rate).for_each(|(sum, count)| *sum += count);
    }

    fn finish(&self, partial: CountPartial) -> CountReport {
        report::make(self.set, &self.bounds, partial)
    }
}
